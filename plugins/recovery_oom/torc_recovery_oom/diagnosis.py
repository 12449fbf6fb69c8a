"""What a failed attempt lacked, and the evidence for it.

The strongest evidence is the name of the ending, which rests on who stopped the attempt or on the batch system's
word, and the kernel's count of those whom it killed for lack of memory. Weaker, for attempts of which only a code and
figures are known: use beyond the request, and the code.
"""

from typing import Final

from torc_framework.api import ExitClass, FailedJob, StopReason, format_duration, format_memory

NEAR: Final = 0.9
"""An attempt that failed after more than this part of its run time ran out of it."""
EARLY: Final = 0.8
"""An attempt that was killed before this part of its run time was not killed for the time."""
_KILLED: Final = 137
_OUT_OF_TIME: Final = 152


def lacked_memory(job: FailedJob) -> tuple[str, ...]:
    """Return why the job probably ran out of memory; empty if it probably did not."""
    failure = job.failure
    if failure.verdict.exit_class is ExitClass.OOM:
        return (f"exit_class=oom: {failure.verdict.reason}",)
    peak, kills = failure.observation.peak_memory_bytes, failure.observation.oom_kills
    if kills is not None:  # the kernel held it to its memory and knows
        return (f"oom_kills={kills}: the kernel killed for lack of memory while it ran",) if kills else ()
    if job.has_own_request and peak is not None and peak > job.memory_bytes:
        return (f"memory_exceeded: peak {format_memory(peak)} of {format_memory(job.memory_bytes)}",)
    seconds = failure.observation.runtime_s
    was_early = not job.has_own_request or not job.runtime_s or (seconds or 0.0) < EARLY * job.runtime_s
    if failure.return_code == _KILLED and failure.observation.stop_reason is None and was_early:
        return ("sigkill_137: killed long before its run time was over",)
    return ()


def lacked_time(job: FailedJob) -> tuple[str, ...]:
    """Return why the job probably ran out of its run time; empty if it probably did not."""
    failure, stop = job.failure, job.failure.observation.stop_reason
    if stop is StopReason.RUNTIME_LIMIT:
        return (f"stop_reason=runtime_limit: {failure.verdict.reason}",)
    seconds = failure.observation.runtime_s or 0.0
    if job.has_own_request and job.runtime_s and seconds > NEAR * job.runtime_s:
        return (f"near_runtime: ran {format_duration(round(seconds))} of {format_duration(job.runtime_s)}",)
    if stop is not None:
        return ()  # its runner had to end, or killed it for another reason: not for its own run time
    if failure.verdict.exit_class is ExitClass.TIMEOUT:
        return (f"exit_class=timeout: {failure.verdict.reason}",)
    return ("sigxcpu_152",) if failure.return_code == _OUT_OF_TIME else ()
