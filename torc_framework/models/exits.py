"""The end of an attempt in three forms: observation, verdict and return code.

An `ExitObservation` holds everything that was observed and infers nothing. A classifier derives an `ExitVerdict` from
it. A return code such as 137 is only a rendering of the observation as one number (`render_return_code`).
"""

import signal
from collections.abc import Callable, Mapping
from enum import StrEnum
from typing import Any, Final, Literal

from attrs import field, frozen

from torc_framework.models.stdio import StdioMode


class ExitClass(StrEnum):
    """Classes of endings."""

    SUCCESS = "success"
    """The attempt did its work: exit code 0 and no missing output file."""
    USER_ERROR = "user_error"
    """The program ended by itself with an exit code other than 0."""
    SIGNALED = "signaled"
    """A signal ended the program, and there is no evidence of its reason."""
    OOM = "oom"
    """The memory ran out: the kernel, torc's own limit, or the batch system stopped the attempt."""
    TIMEOUT = "timeout"
    """The attempt was stopped at a time limit."""
    INTERRUPTED = "interrupted"
    """The attempt ended only because its runner had to end; the next runner resumes the job."""
    PREEMPTED = "preempted"
    """The batch system gave the nodes to a job of higher priority."""
    EVICTED = "evicted"
    """The cluster removed the attempt from its node, for example for lack of disk space."""
    NODE_FAILURE = "node_failure"
    """The node failed or was lost."""
    LAUNCH_FAILURE = "launch_failure"
    """The attempt could not be started."""
    IMAGE_PULL = "image_pull"
    """The container image could not be loaded."""
    PREFLIGHT = "preflight"
    """A test of the node before the attempt failed."""
    SERVICE_ERROR = "service_error"
    """A service that the attempt uses failed, such as the transfer of its data."""
    INFRA_ERROR = "infra_error"
    """A service of the cluster or of the machine failed."""
    UPSTREAM_FAILED = "upstream_failed"
    """A job that this one depends on failed."""
    CANCELED = "canceled"
    """A person canceled the workflow, the allocation or the attempt."""
    OUTPUT_MISSING = "output_missing"
    """The program ended with code 0, and a declared output file is missing."""
    ORPHANED = "orphaned"
    """No process observed the end: the runner and all processes that watched the attempt were gone."""
    UNKNOWN = "unknown"
    """The batch system reported a state or code that is in no table."""


class StopReason(StrEnum):
    """Why the runner stopped an attempt."""

    CANCELED = "canceled"
    """The workflow was canceled."""
    RUNTIME_LIMIT = "runtime_limit"
    """The attempt reached the run time that its job requests."""
    MEMORY_LIMIT = "memory_limit"
    """The attempt used more memory than its job requests."""
    SHUTDOWN = "shutdown"
    """The runner itself had to end: its walltime, SIGTERM or Ctrl-C."""


CleanExit = Literal["auto", "completed", "interrupted"]
"""What exit code 0 means after the runner asked a job to stop: the job's ``clean_exit_after_stop``.

- ``auto``: Where the runner had to end, the job is completed if it declares output files and wrote all of them in this
  attempt, else interrupted. At the job's own run time limit it is a time-out.
- ``completed``: The job's work is done, unless a declared output file is missing.
- ``interrupted``: The job saved its state, and another attempt resumes from it.
"""

TIMEOUT_RETURN_CODE: Final = 152
"""Rendering of an attempt stopped at a time limit: 128 + SIGXCPU, by Torc's convention."""
OOM_RETURN_CODE: Final = 137
"""Rendering of an attempt that the memory monitor stopped, or that failed and had processes killed by the kernel
for lack of memory."""
ORPHANED_RETURN_CODE: Final = -128
"""Rendering of an attempt whose runner is gone and whose end was not observed."""
CANCELED_RETURN_CODE: Final = 143
"""Rendering of an attempt stopped because its workflow was canceled, when no exit code was observed."""


_SAYING_NO_MORE: Final = (None, "COMPLETED", "FAILED")
"""States of a batch system that add no information to an exit code."""


@frozen
class ExitObservation:
    """What was observed when one attempt ended; nothing is inferred.

    Attributes:
        executor: Name of the executor that ran it.
        exit_code: Exit code of the process, 0 to 255; None if a signal ended it or the code was not observed.
        signal: Number of the signal that ended it; None if it ended by itself.
        core_dumped: The kernel wrote a core file.
        started_at: Start, seconds since the epoch, UTC; None if it never started.
        ended_at: End, seconds since the epoch, UTC.
        duration_s: Seconds from start to end by a monotonic clock; None where only the two times are known.
        stop_reason: Why the runner stopped it; None if the runner did not stop it.
        stop_cause: Why the runner itself had to end: a signal's name, or the time limit that was reached. None unless
            the stop reason is ``shutdown``.
        stop_forced: The runner had to send SIGKILL.
        clean_exit: What exit code 0 means after a stop, by the job's declaration.
        outputs_written: The job declares output files, and all of them were modified after the attempt's start. The
            runner checks this only if it stopped the attempt and the exit code is 0.
        launch_error: Why it could not be started; None if it was started.
        lost: The runner that held it is gone and its end was not observed.
        log_disk_full: The file system of its logs was full when it ended: the end of its output may be missing there.
        stdio: Where the runner had its output go.
        delete_stdio_on_success: The runner deletes the files of its output if it completed.
        missing_outputs: Paths of declared output files that did not exist at the end.
        scheduler_state: State that the batch system or cluster reported for the ending, verbatim.
        scheduler_reason: Reason that it reported, verbatim.
        peak_memory_bytes: Largest resident set of any process of the attempt, or of all together if that was measured.
        cpu_time_s: CPU seconds, user and system, of all processes that were waited for.
        memory_limit_bytes: Memory that the job requests; None if it requests none.
        runtime_limit_s: Run time that the job requests, in seconds; None if it requests none.
        oom_kills: Number of processes of the attempt that the kernel killed for lack of memory; None if not counted.
        raw: Further observations of the executor, under its own names. JSON values only.
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
    stdio: StdioMode = "separate"
    delete_stdio_on_success: bool = False
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
        """The program ended by itself with a code of its own: it was neither stopped nor killed."""
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
        """Seconds from start to end: the measured duration, else the difference of the two times; None if unknown."""
        if self.duration_s is not None:
            return self.duration_s
        if self.started_at is None or self.ended_at is None:
            return None
        return max(0.0, self.ended_at - self.started_at)


@frozen
class ExitVerdict:
    """The class given to an ending, and why.

    Attributes:
        exit_class: The class.
        reason: One sentence for people.
        confidence: 0 to 1; 1 is proof.
        evidence: Names of the observation's fields on which the class rests.
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
    """Return the code of a failed attempt of which the kernel killed a process for lack of memory; None for others."""
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
    """Return the one number for the field ``return_code`` of Torc's HTTP contract.

    It is a rendering, never evidence: 128+n for signal n, 152 for a time limit, 137 for lack of memory, -128 for an
    end that was not observed, 1 for a clean exit with an output missing or a failed launch. The first function in the
    table that returns a number decides.
    """
    return next(code for rule in _RENDERINGS if (code := rule(observation)) is not None)
