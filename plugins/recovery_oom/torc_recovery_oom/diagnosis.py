"""Evidence that a failed attempt ran out of memory or of run time."""

from torc_framework.api import (
    FailedJob,
    MemoryEvidence,
    TimeEvidence,
    diagnose_memory,
    diagnose_time,
    duration_text,
    size_text,
)


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
            peak = size_text(seen.peak_memory_bytes or 0)
            return (f"memory_exceeded: peak {peak} of {size_text(job.memory_bytes, exact=True)}",)
        case MemoryEvidence.SIGKILL:
            return ("sigkill_137: killed long before its run time was over",)
    return ()


def lacked_time(job: FailedJob) -> tuple[str, ...]:
    """Return the evidence that the job ran out of its run time; empty if it probably did not."""
    failure, seen = job.failure, job.failure.observation
    found = diagnose_time(
        exit_class=failure.verdict.exit_class,
        return_code=failure.return_code,
        stop_reason=seen.stop_reason,
        runtime_s=seen.runtime_s,
        runtime_limit_s=job.runtime_s or None if job.has_own_request else None,
    )
    match found:
        case TimeEvidence.STOPPED:
            return (f"stop_reason=runtime_limit: {failure.verdict.reason}",)
        case TimeEvidence.EXIT_CLASS:
            return (f"exit_class=timeout: {failure.verdict.reason}",)
        case TimeEvidence.RETURN_CODE:
            return ("sigxcpu_152",)
        case TimeEvidence.NEAR_RUNTIME:
            ran = duration_text(seen.runtime_s or 0)
            return (f"near_runtime: ran {ran} of {duration_text(job.runtime_s, exact=True)}",)
    return ()
