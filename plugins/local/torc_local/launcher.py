"""The launcher of local jobs: attempts are processes of this machine, with a supervisor as their parent."""

import os
import signal
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, ClassVar, Final

from torc_framework.api import (
    Adoption,
    Attempt,
    AttemptKey,
    Capabilities,
    ConfigError,
    Launcher,
    LauncherEvent,
    LaunchError,
    RunnerContext,
    shell_command,
)
from torc_framework.api.supervision import (
    AttemptCommand,
    CgroupsUnavailable,
    SupervisedAttempts,
    SupervisionError,
    launcher_event,
)
from torc_local.options import LocalOptions

STATE_DIR: Final = ".torc_runner"
"""Folder for journals, within the output directory."""


class LocalLauncher(Launcher):
    """Runs attempts as processes of this machine."""

    name: ClassVar[str] = "local"
    description: ClassVar[str] = "Processes of this machine"
    capabilities: Capabilities = Capabilities(can_launch=True, survives_runner=True, queues=True, follows=True)
    Options: ClassVar[type[Any]] = LocalOptions

    def __init__(self, options: LocalOptions, context: RunnerContext) -> None:
        super().__init__(options, context)
        shell_command(context.shell)  # raises before any job runs if the workflow's shell is missing
        ids = f"wf{context.workflow_id}_r{context.run_id}_p{os.getpid()}_{os.urandom(4).hex()}"
        try:
            with _launch_errors():
                self._attempts = SupervisedAttempts(
                    Path(context.output_dir) / STATE_DIR / f"local_{context.hostname}_{ids}.journal",
                    memory_cgroup=options.memory_cgroup,
                    needs_cgroups=context.enforces_limits,
                )
        except CgroupsUnavailable as error:
            raise ConfigError(
                f"memory_cgroup of executor local is 'require', but {error}; {error.fix}, or set it to 'auto'"
            ) from error

    @property
    def hindrance(self) -> str | None:  # type: ignore[override] # a launcher's attribute may be computed
        """Why attempts cannot begin at present; None if they can."""
        return self._attempts.hindrance

    def start(self, attempts: Sequence[Attempt]) -> None:
        """Start these attempts; queued ones among them start at once."""
        self._attempts.start(map(self._command, attempts))

    def queue(self, attempts: Sequence[Attempt]) -> None:
        """Start each of these attempts when a running one of its lane ends."""
        self._attempts.queue(map(self._command, attempts))

    def follow(self, attempts: Sequence[tuple[AttemptKey, Attempt]]) -> None:
        """Start each of these attempts when the one before it has ended with exit code 0."""
        self._attempts.follow((_plain(predecessor), self._command(attempt)) for predecessor, attempt in attempts)

    def unfollow(self) -> None:
        """Start none of the attempts of `follow` that has not started."""
        self._attempts.unfollow()

    def _command(self, attempt: Attempt) -> AttemptCommand:
        return AttemptCommand(
            attempt.key.job_id,
            attempt.key.attempt_id,
            attempt.command,
            attempt.environment,
            attempt.stdout_path,
            attempt.stderr_path,
            attempt.working_dir,
            attempt.lane,
            attempt.shell,
            attempt.memory_limit_bytes,
        )

    def stop(self, keys: Iterable[AttemptKey], *, force: bool) -> None:
        """Send SIGTERM, or SIGKILL with ``force``, to the processes of these attempts."""
        self._attempts.stop(map(_plain, keys), signal.SIGKILL if force else signal.SIGTERM)

    def withdraw(self, keys: Iterable[AttemptKey]) -> None:
        """Withdraw those of these attempts that are queued."""
        self._attempts.withdraw(map(_plain, keys))

    def processes(self, keys: Iterable[AttemptKey]) -> Mapping[AttemptKey, Sequence[int]]:
        """Return the first process of each of these attempts."""
        return {AttemptKey(*key): [pid] for key, pid in self._attempts.pids(map(_plain, keys)).items()}

    def memory_limited(self, keys: Iterable[AttemptKey]) -> Collection[AttemptKey]:
        """Return those of these attempts that are in control groups of their own."""
        return [AttemptKey(*key) for key in self._attempts.memory_limited(map(_plain, keys))]

    def wait_fd(self) -> int:
        """Return a descriptor that is readable when there are events."""
        return self._attempts.fileno()

    def poll(self) -> list[LauncherEvent]:
        """Return the events since the last call."""
        with _launch_errors():
            return [launcher_event(self.name, report) for report in self._attempts.poll()]

    def state(self) -> dict[str, Any]:
        """Return what a later runner needs to adopt the attempts."""
        return self._attempts.state()

    def adopt(self, state: Mapping[str, Any], keys: Sequence[AttemptKey]) -> Adoption:
        """Take over the attempts of a dead runner; kill those that are not among ``keys``."""
        with _launch_errors():
            found = self._attempts.adopt(state, map(_plain, keys))
        return Adoption(*(tuple(AttemptKey(*key) for key in kind) for kind in found))

    def forget(self, state: Mapping[str, Any]) -> None:
        """Remove the journals of a dead runner, and the control groups of its attempts."""
        self._attempts.forget(state)

    def abandon(self) -> None:
        """Leave the running attempts to their supervisor, which records their ends."""
        self._attempts.abandon()

    def close(self) -> None:
        """Wait for the supervisors to exit, and remove their journals."""
        self._attempts.close()


@contextmanager
def _launch_errors() -> Iterator[None]:
    try:
        yield
    except CgroupsUnavailable:
        raise
    except SupervisionError as error:
        raise LaunchError(str(error)) from error


def _plain(key: AttemptKey) -> tuple[int, int]:
    return key.job_id, key.attempt_id
