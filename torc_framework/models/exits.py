"""How an attempt ended: what was seen, what it is called, how it is rendered as a number.

The three never mix. An `ExitObservation` is lossless and infers nothing; a classifier turns it
into an `ExitVerdict`; numbers such as 137 are only a rendering (`render_return_code`).
"""

import signal
from collections.abc import Callable, Mapping
from enum import StrEnum
from typing import Any, Final, Literal

from attrs import field, frozen


class ExitClass(StrEnum):
    """The names an ending can have."""

    SUCCESS = "success"
    USER_ERROR = "user_error"
    SIGNALED = "signaled"
    OOM = "oom"
    TIMEOUT = "timeout"
    INTERRUPTED = "interrupted"
    """It ended only because its runner had to end; the next runner goes on with it."""
    PREEMPTED = "preempted"
    EVICTED = "evicted"
    NODE_FAILURE = "node_failure"
    LAUNCH_FAILURE = "launch_failure"
    IMAGE_PULL = "image_pull"
    PREFLIGHT = "preflight"
    SERVICE_ERROR = "service_error"
    INFRA_ERROR = "infra_error"
    UPSTREAM_FAILED = "upstream_failed"
    CANCELED = "canceled"
    OUTPUT_MISSING = "output_missing"
    ORPHANED = "orphaned"
    UNKNOWN = "unknown"


class StopReason(StrEnum):
    """Why a runner stopped an attempt itself."""

    CANCELED = "canceled"
    """The workflow was canceled."""
    RUNTIME_LIMIT = "runtime_limit"
    """The attempt used up the run time its job asked for."""
    MEMORY_LIMIT = "memory_limit"
    """The attempt used more memory than its job asked for."""
    SHUTDOWN = "shutdown"
    """The runner itself had to end: its walltime, SIGTERM or Ctrl-C."""


CleanExit = Literal["auto", "completed", "interrupted"]
"""What an exit code of 0 means after the runner asked a job to stop, by the job's ``clean_exit_after_stop``.

- ``auto``: Where the runner had to end, the job is completed if it declares output files and wrote all of them in this
  attempt, else interrupted. At the job's own run time limit it is a time-out.
- ``completed``: Its work is done, unless a declared output file is missing.
- ``interrupted``: It saved its state, and another attempt goes on from there.
"""

TIMEOUT_RETURN_CODE: Final = 152
"""Rendering of an attempt stopped at a time limit: 128 + SIGXCPU, by Torc's convention."""
OOM_RETURN_CODE: Final = 137
"""Rendering of an attempt stopped by our memory monitor or, a failed one, by the kernel for lack of memory."""
ORPHANED_RETURN_CODE: Final = -128
"""Rendering of an attempt whose runner is gone and whose end nobody saw."""
CANCELED_RETURN_CODE: Final = 143
"""Rendering of an attempt stopped because its workflow was canceled, when no code was seen."""


_SAYING_NO_MORE: Final = (None, "COMPLETED", "FAILED")
"""Words of a batch system that add nothing to an exit code."""


@frozen
class ExitObservation:
    """What was seen when one attempt ended; nothing is inferred.

    Attributes:
        executor: Name of the executor that ran it.
        exit_code: Code the process ended with, 0 to 255; None if a signal ended it or nobody saw it.
        signal: Number of the signal that ended it; None if it ended by itself.
        core_dumped: The kernel wrote a core file.
        started_at: Start, seconds since the epoch, UTC; None if it never started.
        ended_at: End, seconds since the epoch, UTC.
        duration_s: Seconds from start to end by a clock that is never set; None where only the two times are known.
        stop_reason: Why the runner stopped it; None if the runner did not.
        stop_cause: What made the runner itself end: a signal's name, or which time was over. None unless the stop
            reason is ``shutdown``.
        stop_forced: The runner had to send SIGKILL.
        clean_exit: What the job says that an exit code of 0 means after a stop.
        outputs_written: The job declares output files, and all of them were modified after the attempt's start. Only
            looked at where the runner stopped the attempt and it ended with code 0.
        launch_error: Why it could not be started; None if it was.
        lost: The runner that held it is gone and nobody saw its end.
        log_disk_full: The file system of its logs was full when it ended: they may lack what it wrote last.
        missing_outputs: Paths of declared output files that were not there at the end.
        scheduler_state: Word of the batch system or cluster for the ending, as it was spelled.
        scheduler_reason: The reason that it gave, as it was spelled.
        peak_memory_bytes: Largest resident set of any process of the attempt, or of all together if that was measured.
        cpu_time_s: CPU seconds, user and system, of all processes that were waited for.
        memory_limit_bytes: Memory the job asked for; None if it asked for nothing.
        runtime_limit_s: Run time the job asked for, in seconds; None if it asked for nothing.
        oom_kills: Processes of the attempt that the kernel killed because memory ran out; None if nobody counted.
        raw: Whatever else the executor saw, by its own names. JSON values only.
    """

    executor: str
    exit_code: int | None = None
    signal: int | None = None
    core_dumped: bool = False
    started_at: float | None = None
    ended_at: float | None = None
    duration_s: float | None = None
    stop_reason: StopReason | None = None
    stop_cause: str | None = None
    stop_forced: bool = False
    clean_exit: CleanExit = "auto"
    outputs_written: bool = False
    launch_error: str | None = None
    lost: bool = False
    log_disk_full: bool = False
    missing_outputs: tuple[str, ...] = ()
    scheduler_state: str | None = None
    scheduler_reason: str | None = None
    peak_memory_bytes: int | None = None
    cpu_time_s: float | None = None
    memory_limit_bytes: int | None = None
    runtime_limit_s: float | None = None
    oom_kills: int | None = None
    raw: Mapping[str, Any] = field(factory=dict)

    @property
    def is_own_exit(self) -> bool:
        """The program ended by itself with a code of its own: nobody stopped or killed it."""
        return (
            self.exit_code is not None
            and self.signal is None
            and self.stop_reason is None
            and self.launch_error is None
            and self.scheduler_state in _SAYING_NO_MORE
            and not self.lost
        )

    @property
    def runtime_s(self) -> float | None:
        """Seconds between start and end: as they were measured, or else the difference of the two times, if known."""
        if self.duration_s is not None:
            return self.duration_s
        if self.started_at is None or self.ended_at is None:
            return None
        return max(0.0, self.ended_at - self.started_at)


@frozen
class ExitVerdict:
    """What an ending is called, and why.

    Attributes:
        exit_class: The name.
        reason: One sentence for people.
        confidence: 0 to 1; 1 is proof.
        evidence: Names of the observation's fields that it rests on.
    """

    exit_class: ExitClass
    reason: str
    confidence: float = 1.0
    evidence: tuple[str, ...] = ()


def signal_name(number: int) -> str:
    """Return ``SIGKILL`` for 9, ``signal 99`` for an unknown number."""
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"signal {number}"


_STOPPED_CODES: Final[Mapping[StopReason, int]] = {
    StopReason.MEMORY_LIMIT: OOM_RETURN_CODE,
    StopReason.RUNTIME_LIMIT: TIMEOUT_RETURN_CODE,
    StopReason.SHUTDOWN: TIMEOUT_RETURN_CODE,
    StopReason.CANCELED: CANCELED_RETURN_CODE,
}
"""Renderings of attempts that the runner stopped and a signal ended."""


def _killed_code(seen: ExitObservation) -> int | None:
    """Return the number of a failed attempt of which the kernel killed somebody for lack of memory."""
    failed_itself = seen.stop_reason is None and (seen.signal is not None or bool(seen.exit_code))
    return OOM_RETURN_CODE if seen.oom_kills and failed_itself else None


def _stopped_code(seen: ExitObservation) -> int | None:
    if seen.stop_reason is not None and (seen.signal is not None or seen.stop_reason is StopReason.MEMORY_LIMIT):
        return _STOPPED_CODES[seen.stop_reason]
    return None


_RENDERINGS: Final[tuple[Callable[[ExitObservation], int | None], ...]] = (
    lambda seen: ORPHANED_RETURN_CODE if seen.lost else None,
    _stopped_code,
    _killed_code,
    lambda seen: None if seen.signal is None else 128 + seen.signal,
    lambda seen: seen.exit_code or None,
    # A clean exit after the limit is a time-out all the same (exit codes of Spur, "limit signalled").
    lambda seen: TIMEOUT_RETURN_CODE if seen.stop_reason is StopReason.RUNTIME_LIMIT else None,
    lambda seen: 1 if seen.launch_error is not None or seen.missing_outputs else None,
    lambda seen: seen.exit_code,
    lambda seen: ORPHANED_RETURN_CODE,
)


def render_return_code(observation: ExitObservation) -> int:
    """Return the one number that Torc's ``return_code`` has room for.

    A rendering, never evidence: 128+n for signal n, 152 for a time limit, 137 for lack of memory,
    -128 for an end that nobody saw, 1 for a clean exit with an output missing or a failed launch. The
    first rule of the table that speaks decides.
    """
    return next(code for rule in _RENDERINGS if (code := rule(observation)) is not None)
