"""Evidence that a failed attempt ran out of memory or of run time."""

from typing import Final

from torc_framework.api import (
    ExitClass,
    FailedJob,
    MemoryEvidence,
    StopReason,
    diagnose_memory,
    format_duration,
    format_memory,
)

NEAR: Final = 0.9
"""An attempt that failed after more than this part of its run time limit ran out of time."""
_OUT_OF_TIME: Final = 152


def lacked_memory(job: FailedJob) -> tuple[str, ...]:
    """Return the evidence that the job ran out of memory; empty if it probably did not."""
    failure, seen = job.failure, job.failure.observation
    found = diagnose_memory(
        exit_class=failure.verdict.exit_class,
        oom_kills=seen.oom_kills,
        peak_bytes=seen.peak_memory_bytes,
        limit_bytes=job.memory_bytes if job.has_own_request else None,
        return_code=failure.return_code,
        was_stopped=seen.stop_reason is not None,
        runtime_s=seen.runtime_s,
        runtime_limit_s=job.runtime_s or None if job.has_own_request else None,
    )
    match found:
        case MemoryEvidence.EXIT_CLASS:
            return (f"exit_class=oom: {failure.verdict.reason}",)
        case MemoryEvidence.OOM_KILLS:
            return (f"oom_kills={seen.oom_kills}: the kernel killed for lack of memory while it ran",)
        case MemoryEvidence.MEMORY_EXCEEDED:
            peak = format_memory(seen.peak_memory_bytes or 0)
            return (f"memory_exceeded: peak {peak} of {format_memory(job.memory_bytes)}",)
        case MemoryEvidence.SIGKILL:
            return ("sigkill_137: killed long before its run time was over",)
    return ()


def lacked_time(job: FailedJob) -> tuple[str, ...]:
    """Return the evidence that the job ran out of its run time; empty if it probably did not."""
    failure, stop = job.failure, job.failure.observation.stop_reason
    if stop is StopReason.RUNTIME_LIMIT:
        return (f"stop_reason=runtime_limit: {failure.verdict.reason}",)
    seconds = failure.observation.runtime_s or 0.0
    if job.has_own_request and job.runtime_s and seconds > NEAR * job.runtime_s:
        return (f"near_runtime: ran {format_duration(round(seconds))} of {format_duration(job.runtime_s)}",)
    if stop is not None:
        return ()  # the runner stopped it for a reason other than its run time limit
    if failure.verdict.exit_class is ExitClass.TIMEOUT:
        return (f"exit_class=timeout: {failure.verdict.reason}",)
    return ("sigxcpu_152",) if failure.return_code == _OUT_OF_TIME else ()
