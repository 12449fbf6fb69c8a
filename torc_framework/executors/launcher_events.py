"""Conversion of the reports about supervised attempts into the events of a launcher."""

import os
from collections.abc import Sequence
from typing import Any

from torc_framework.executors.attempts import (
    AttemptEnded,
    AttemptFollowed,
    AttemptKey,
    AttemptStarted,
    AttemptWithdrawn,
    LauncherEvent,
)
from torc_framework.models.exits import ExitObservation


def launcher_event(executor: str, report: Sequence[Any], clock_offset_s: float = 0.0) -> LauncherEvent:
    """Return the event that a report stands for.

    Args:
        executor: Name of the executor.
        report: One report of `SupervisedAttempts.poll`.
        clock_offset_s: Added to the times in the report, if they are those of another machine's clock, seconds.
    """
    kind, job, attempt, *details = report
    key = AttemptKey(job, attempt)
    match kind:
        case "S":
            at, age_s = details
            return AttemptStarted(key, at + clock_offset_s, age_s)
        case "E":
            return AttemptEnded(key, _observe_exit(executor, details, clock_offset_s))
        case "L":
            at, reason = details
            ended_at = None if at is None else at + clock_offset_s
            return AttemptEnded(key, ExitObservation(executor, launch_error=reason, ended_at=ended_at))
        case "X":
            return AttemptEnded(key, ExitObservation(executor, lost=True))
        case "F":
            return AttemptFollowed(key, AttemptKey(*details))
        case "R":
            return AttemptWithdrawn(key)
        case _:
            raise ValueError(f"unknown report {report!r}")


def _observe_exit(executor: str, values: Sequence[Any], clock_offset_s: float) -> ExitObservation:
    """Return the observation of an ended process, without loss.

    The peak of a control group counts as the attempt's peak only if its memory ran out: otherwise it may include cache
    that the kernel could have freed.

    Args:
        executor: Name of the executor.
        values: The values of a `torc_framework.supervision.journal.RecordedExit`.
        clock_offset_s: Added to the times.
    """
    status, at, started_at, duration_s, peak_kib, cpu_s, cgroup_facts = values
    raw: dict[str, Any] = dict(cgroup_facts)
    kills, group_peak = raw.pop("oom_kills", None), raw.pop("peak", None)
    peak = peak_kib * 1024 if peak_kib > 0 else None
    if peak_kib < 0:
        raw["peak_memory_below_bytes"] = -peak_kib * 1024
    if group_peak is not None:
        raw["cgroup_peak_memory_bytes"] = group_peak
    if kills and group_peak:
        peak = max(peak or 0, group_peak)
    number = os.WTERMSIG(status) if os.WIFSIGNALED(status) else None
    return ExitObservation(
        executor,
        exit_code=os.WEXITSTATUS(status) if number is None else None,
        signal=number,
        core_dumped=number is not None and os.WCOREDUMP(status),
        started_at=started_at + clock_offset_s,
        ended_at=at + clock_offset_s,
        duration_s=duration_s,
        peak_memory_bytes=peak,
        cpu_time_s=cpu_s,
        oom_kills=kills,
        raw=raw,
    )
