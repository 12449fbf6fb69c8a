"""Conversion of recorded ends of attempts into exit observations."""

import os
import time
from typing import Any, Final

from torc_framework.api import ExitObservation
from torc_local.journal import JournalEntry, RecordedExit

EXECUTOR: Final = "local"


def observe_exit(end: RecordedExit) -> ExitObservation:
    """Return the observation of an ended process, without loss.

    The peak of a control group counts as the attempt's peak only if its memory ran out: otherwise it may include cache
    that the kernel could have freed.
    """
    raw: dict[str, Any] = dict(end.cgroup_facts)
    kills, group_peak = raw.pop("oom_kills", None), raw.pop("peak", None)
    peak = end.peak_kib * 1024 if end.peak_kib > 0 else None
    if end.peak_kib < 0:
        raw["peak_memory_below_bytes"] = -end.peak_kib * 1024
    if group_peak is not None:
        raw["cgroup_peak_memory_bytes"] = group_peak
    if kills and group_peak:
        peak = max(peak or 0, group_peak)
    number = os.WTERMSIG(end.status) if os.WIFSIGNALED(end.status) else None
    return ExitObservation(
        EXECUTOR,
        exit_code=os.WEXITSTATUS(end.status) if number is None else None,
        signal=number,
        core_dumped=number is not None and os.WCOREDUMP(end.status),
        started_at=end.started_at,
        ended_at=end.at,
        duration_s=end.duration_s,
        peak_memory_bytes=peak,
        cpu_time_s=end.cpu_s,
        oom_kills=kills,
        raw=raw,
    )


def observe_entry(entry: JournalEntry | None) -> ExitObservation:
    """Return the observation of an attempt that a journal records as over; None stands for an end that was not seen."""
    if entry is None:
        return ExitObservation(EXECUTOR, lost=True)
    if entry.end is not None:
        return observe_exit(entry.end)
    return launch_failure(entry.failure or "", entry.at)


def launch_failure(reason: str, at: float | None = None) -> ExitObservation:
    """Return the observation of an attempt that could not be started."""
    return ExitObservation(EXECUTOR, launch_error=reason, ended_at=at)


def age_s(boottime: float) -> float:
    """Return the age of a process that started at ``boottime``, in seconds."""
    return max(0.0, time.clock_gettime(time.CLOCK_BOOTTIME) - boottime)
