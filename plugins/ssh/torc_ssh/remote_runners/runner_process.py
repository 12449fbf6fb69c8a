"""The process of a runner on a host: its files, its start, its state, and its end."""

import asyncio
import posixpath
from collections.abc import Mapping, Sequence
from typing import Any, Final

from attrs import frozen

from torc_framework.api import UserError, signal_name
from torc_ssh.session import HelperError, HostSession

DEFAULT_OUTPUT_DIR: Final = "torc_output"
LOG_TAIL_LINES: Final = 10
LOG_TAIL_BYTES: Final = 8192
STOP_PATIENCE_S: Final = 5.0
"""Time after the signals for a runner to end, before `stop_runner` returns, or kills it."""
FIRST_PATIENCE_S: Final = 1.0
"""Time before the second signal of `stop_runner` with force."""
_POLL_S: Final = 0.2


@frozen
class RunnerFiles:
    """The files of one workflow's runner on a host.

    Attributes:
        output_dir: Its output directory: an absolute path, or one that is relative to the home folder.
        workflow_id: Its workflow.
    """

    output_dir: str
    workflow_id: int

    def absolute_dir(self, home: str) -> str:
        """Return the absolute path of the output directory."""
        return posixpath.join(home, self.output_dir)

    @property
    def record(self) -> str:
        """The file in which the helper describes the process."""
        return posixpath.join(self.output_dir, f"torc_worker_{self.workflow_id}.json")

    @property
    def log(self) -> str:
        """The file with the runner's standard output and standard error (Torc's name)."""
        return posixpath.join(self.output_dir, f"torc_worker_{self.workflow_id}.log")


def check_output_dir(text: str, flag: str) -> str:
    """Return the path of an output directory on hosts without a ``~/`` at its beginning.

    Raises:
        UserError: it is the root, the home folder, or leads above it.
    """
    path = posixpath.normpath(text.strip().removeprefix("~/") or ".")
    if path in (".", "~", "/", "//") or path.split("/")[0] == ".." or "\0" in path or path.startswith("~"):
        raise UserError(f"{flag} is {text!r}; expected a folder below the home folder, or an absolute path")
    return path


@frozen
class RunnerState:
    """What a host tells about a runner.

    Attributes:
        state: ``running``; ``ended``; ``gone`` if it is no longer there and its exit is not known; ``none`` if none was
            started.
        pid: Process id.
        identity: Process id, start in clock ticks since the boot, and id of the boot.
        age_s: Seconds since its start if it runs, else since its end; None if that is not known.
        exit_code: Exit code; minus the number of the signal that ended it.
    """

    state: str
    pid: int | None = None
    identity: tuple[int, int, str] | None = None
    age_s: float | None = None
    exit_code: int | None = None

    @property
    def is_running(self) -> bool:
        """Whether it runs."""
        return self.state == "running"

    @property
    def exit_text(self) -> str:
        """How it ended."""
        if self.exit_code is None:
            return "its exit is not known"
        if self.exit_code < 0:
            return f"ended by {signal_name(-self.exit_code)}"
        return f"exit code {self.exit_code}"


async def runner_state(session: HostSession, files: RunnerFiles) -> RunnerState:
    """Return the state of a runner."""
    answer = await session.request("process", record=files.record)
    return _state(answer, session)


def _state(answer: Any, session: HostSession) -> RunnerState:
    if not isinstance(answer, dict) or answer.get("state") not in ("running", "ended", "gone", "none"):
        raise HelperError("invalid", "the host's answer about a process is not as it has to be")
    now = session.facts.time
    numbers = {
        name: answer[name]
        for name in ("pid", "pid_start", "exit_code", "started_at", "ended_at", "now")
        if isinstance(answer.get(name), int | float)
    }
    began = numbers.get("started_at") if answer["state"] == "running" else numbers.get("ended_at")
    identity = None
    if "pid" in numbers and "pid_start" in numbers and isinstance(answer.get("boot_id"), str):
        identity = (int(numbers["pid"]), int(numbers["pid_start"]), answer["boot_id"])
    return RunnerState(
        answer["state"],
        int(numbers["pid"]) if "pid" in numbers else None,
        identity,
        None if began is None else max(0.0, numbers.get("now", now) - began),
        int(numbers["exit_code"]) if "exit_code" in numbers else None,
    )


async def start_runner(
    session: HostSession, files: RunnerFiles, argv: Sequence[str], environment: Mapping[str, str]
) -> RunnerState | None:
    """Start a runner in a session of its own, without a terminal; return None if one runs already.

    The environment, which may contain secrets, reaches the host over the standard input of the helper.
    """
    try:
        await session.request(
            "spawn",
            argv=list(argv),
            environment=dict(environment),
            log=files.log,
            cwd=session.facts.home,
            record=files.record,
        )
    except HelperError as error:
        if error.kind != "exists":
            raise
        return None
    return await runner_state(session, files)


@frozen
class StoppedRunner:
    """What `stop_runner` did.

    Attributes:
        before: The runner before that.
        after: The runner after that.
        killed: Processes of it and of its jobs that were killed.
    """

    before: RunnerState
    after: RunnerState
    killed: int = 0


async def stop_runner(session: HostSession, files: RunnerFiles, *, force: bool) -> StoppedRunner:
    """Ask a runner to end.

    The first signal lets the runner stop its jobs with their time to end. With ``force`` a second one follows soon,
    at which the runner kills its jobs and reports that; after `STOP_PATIENCE_S` everything that is left of it and of
    its jobs is killed, also of a runner that was killed before.
    """
    before = await runner_state(session, files)
    if before.state == "none" or not (before.is_running or force):
        return StoppedRunner(before, before)
    after = before
    for patience_s in (FIRST_PATIENCE_S, STOP_PATIENCE_S) if force else (STOP_PATIENCE_S,):
        if after.is_running:
            await session.request("kill", record=files.record, signal="TERM")
            after = await _wait_for_end(session, files, patience_s)
    if not force:
        return StoppedRunner(before, after)
    killed = int(await session.request("kill", record=files.record, signal="KILL"))
    return StoppedRunner(before, await _wait_for_end(session, files, STOP_PATIENCE_S), killed)


async def _wait_for_end(session: HostSession, files: RunnerFiles, patience_s: float) -> RunnerState:
    """Return the state of a runner when it has ended, or after this many seconds."""
    clock = asyncio.get_running_loop()
    deadline = clock.time() + patience_s
    while (state := await runner_state(session, files)).is_running and clock.time() < deadline:
        await asyncio.sleep(_POLL_S)
    return state


async def log_tail(session: HostSession, files: RunnerFiles) -> list[str]:
    """Return the last lines of a runner's log; none if it has no log."""
    answer = await session.request("run", argv=["tail", "-c", str(LOG_TAIL_BYTES), files.log])
    return [line for line in str(answer["stdout"]).splitlines() if line.strip()][-LOG_TAIL_LINES:]
