"""Recovery scripts: processes that run between two attempts of a job while the runner's loop goes on."""

import contextlib
import os
import signal
import subprocess
from collections.abc import Callable, Iterable
from pathlib import Path

from attrs import define, frozen

from torc_framework.errors import LaunchError
from torc_framework.runner.attempts.held_jobs import AttemptFactory, HeldJob
from torc_framework.runner.process.runner_log import RunnerLog
from torc_framework.system.processes import start_process_with_retry
from torc_framework.system.shells import shell_command


@frozen
class DueScript:
    """A recovery script that is due if the retry is granted.

    Attributes:
        script: Text for the shell.
        shell: Shell of the job; empty is the default.
        environment: That of the failed attempt, with ``TORC_RETURN_CODE``.
        log_path: File for its output.
    """

    script: str
    shell: str
    environment: dict[str, str]
    log_path: str


@define
class _RunningScript:
    item: HeldJob
    process: "subprocess.Popen[bytes]"
    fd: int | None


class RecoveryScripts:
    """The scripts that are due and those that run. A failure of a script is logged; its job runs all the same.

    Args:
        working_dir: Where they run.
        attempts: Knows the shells, environments and logs of attempts.
        log: The runner's log.
        watch: Called with a descriptor that becomes readable when one has ended.
        unwatch: Called with it afterwards.
    """

    def __init__(
        self,
        working_dir: str,
        attempts: AttemptFactory,
        log: RunnerLog,
        watch: Callable[[int], None],
        unwatch: Callable[[int], object],
    ) -> None:
        self._working_dir, self._attempts, self._log, self._watch, self._unwatch = (
            working_dir,
            attempts,
            log,
            watch,
            unwatch,
        )
        self._due: dict[int, DueScript] = {}
        self._running: list[_RunningScript] = []

    def schedule(self, item: HeldJob, script: str, return_code: int) -> None:
        """Run a script before the next attempt of a job, if the server grants one.

        Args:
            item: The job, with the attempt that failed.
            script: Text for the shell.
            return_code: That of the attempt.
        """
        environment = {**self._attempts.environment(item), "TORC_RETURN_CODE": str(return_code)}
        log_path = self._attempts.log_path(item.key, "_recovery.log")
        self._due[item.key.job_id] = DueScript(script, self._attempts.shell(item), environment, log_path)

    def cancel(self, job_ids: Iterable[int]) -> None:
        """Drop the scripts of these jobs: they have no next attempt, or its script has begun."""
        for job_id in job_ids:
            self._due.pop(job_id, None)

    def begin(self, item: HeldJob) -> bool:
        """Start the script that is due before ``item`` runs; return whether there is one to wait for."""
        due = self._due.pop(item.key.job_id, None)
        if due is None:
            return False
        try:
            process = self._start(due)
        except (OSError, LaunchError) as error:
            self._log.warning("recovery_script_not_started", job_id=item.key.job_id, reason=str(error))
            return False
        self._running.append(_RunningScript(item, process, self._open(process.pid)))
        return True

    def _start(self, due: DueScript) -> "subprocess.Popen[bytes]":
        with Path(due.log_path).open("wb") as log:
            return start_process_with_retry(
                lambda: subprocess.Popen(
                    [*shell_command(due.shell), "-c", due.script],
                    cwd=self._working_dir,
                    env={**os.environ, **due.environment},
                    stdin=subprocess.DEVNULL,
                    stdout=log,
                    stderr=subprocess.STDOUT,
                    start_new_session=True,
                )
            )

    def _open(self, pid: int) -> int | None:
        try:
            fd = os.pidfd_open(pid)
        except OSError:  # before Linux 5.3 there is no pidfd_open(2); the loop calls `finished` each second anyway
            return None
        self._watch(fd)
        return fd

    def finished(self) -> list[HeldJob]:
        """Return the items whose scripts have ended."""
        if not self._running:
            return []
        ended = [each for each in self._running if each.process.poll() is not None]
        self._running = [each for each in self._running if each not in ended]
        for each in ended:
            if each.fd is not None:
                self._unwatch(each.fd)
                os.close(each.fd)
            if code := each.process.returncode:
                self._log.warning("recovery_script_failed", job_id=each.item.key.job_id, return_code=code)
        return [each.item for each in ended]

    def kill(self) -> None:
        """Kill all scripts; `finished` returns their items as always."""
        for each in self._running:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(each.process.pid, signal.SIGKILL)
