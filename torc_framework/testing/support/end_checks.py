"""Checks of the events and observations of a launcher: types, units, and that nothing is inferred."""

import json
from collections.abc import Mapping
from typing import Any, Final

from torc_framework.api import AttemptStarted, ExitObservation
from torc_framework.testing.support.clauses import require, require_types

CLOCK_SLACK_S: Final = 30.0
"""How much the clocks of the runner and of an attempt's machine may differ."""
LEAST_PEAK_BYTES: Final = 2**16
MOST_PEAK_BYTES: Final = 2**42
_NUMBER: Final = (int, float)
_TYPES: Final[Mapping[str, type | tuple[type, ...]]] = {
    "executor": str,
    "exit_code": (int, type(None)),
    "signal": (int, type(None)),
    "core_dumped": bool,
    "started_at": (*_NUMBER, type(None)),
    "ended_at": (*_NUMBER, type(None)),
    "duration_s": (*_NUMBER, type(None)),
    "launch_error": (str, type(None)),
    "lost": bool,
    "scheduler_state": (str, type(None)),
    "scheduler_reason": (str, type(None)),
    "peak_memory_bytes": (int, type(None)),
    "cpu_time_s": (*_NUMBER, type(None)),
    "oom_kills": (int, type(None)),
}
EPOCH: Final = "is in seconds since the epoch, UTC"


def check_start(event: AttemptStarted, given_at: float, now: float) -> None:
    """Check the time of a start.

    Args:
        given_at: When the launcher was given the attempt, seconds since the epoch.
        now: When it returned the event.
    """
    require_types(event, {"at": _NUMBER, "age_s": _NUMBER}, "AttemptStarted")
    _require_time(event.at, given_at, now, f"at of AttemptStarted {EPOCH}")
    is_age = 0 <= event.age_s <= now - given_at + CLOCK_SLACK_S
    require(is_age, "age_s of AttemptStarted is in seconds since the start", event)


def check_end(
    seen: ExitObservation, executor: str, given_at: float, now: float, *, checks_outputs: bool = False
) -> None:
    """Check one observation of an end; ``given_at`` and ``now`` as for `check_start`.

    Args:
        checks_outputs: The launcher looked for output files of the attempt itself.
    """
    require(isinstance(seen, ExitObservation), "AttemptEnded holds an ExitObservation", seen)
    require_types(seen, _TYPES, "ExitObservation")
    require(seen.executor == executor, "an observation names its executor", seen)
    _check_wait_status(seen)
    _check_times(seen, given_at, now)
    _check_use(seen, now - given_at)
    clause = "a launcher infers nothing: what the runner knows is left to it"
    require((seen.stop_reason, seen.stop_cause, seen.log_disk_full) == (None, None, False), clause, seen)
    require(checks_outputs or (seen.missing_outputs, seen.outputs_written) == ((), False), clause, seen)
    require(_is_json(seen.raw), "raw holds JSON values", seen.raw)


def _check_wait_status(seen: ExitObservation) -> None:
    code, number = seen.exit_code, seen.signal
    require(code is None or 0 <= code <= 255, "exit_code is from 0 to 255", seen)
    require(number is None or 1 <= number <= 64, "signal is the number of a signal", seen)
    require(code is None or number is None, "an end has an exit code or a signal, never both", seen)
    if seen.launch_error is not None:
        clause = "an attempt that could not be started ends with launch_error, and neither code nor signal"
        require(seen.launch_error.strip() and code is None and number is None, clause, seen)
        return
    is_known = code is not None or number is not None or seen.lost or seen.scheduler_state is not None
    require(is_known, "an end has an exit code, a signal or a launch_error, unless it was lost", seen)


def _check_times(seen: ExitObservation, given_at: float, now: float) -> None:
    for name in ("started_at", "ended_at"):
        at = getattr(seen, name)
        if at is not None:
            _require_time(at, given_at, now, f"{name} {EPOCH}")
    if seen.started_at is not None and seen.ended_at is not None:
        times = (seen.started_at, seen.ended_at)
        require(seen.started_at <= seen.ended_at + 0.1, "the end is after the start", times)
        if seen.duration_s is not None:
            is_same = abs(seen.duration_s - (seen.ended_at - seen.started_at)) <= 2
            clause = "duration_s is in seconds from start to end"
            require(is_same, clause, (seen.duration_s, *times))
    if seen.duration_s is not None:
        is_within = 0 <= seen.duration_s <= now - given_at + CLOCK_SLACK_S
        require(is_within, "duration_s is in seconds from start to end", seen.duration_s)


def _check_use(seen: ExitObservation, elapsed_s: float) -> None:
    """Check the memory and CPU time of a command with one thread."""
    peak = seen.peak_memory_bytes
    is_bytes = peak is None or LEAST_PEAK_BYTES <= peak <= MOST_PEAK_BYTES
    require(is_bytes, "peak_memory_bytes is in bytes (the kernel's ru_maxrss is in KiB)", peak)
    cpu = seen.cpu_time_s
    is_seconds = cpu is None or 0 <= cpu <= 2 * elapsed_s + 1
    require(is_seconds, "cpu_time_s is in seconds, of this attempt alone", (cpu, f"{elapsed_s:.1f} s elapsed"))
    require(seen.oom_kills is None or seen.oom_kills >= 0, "oom_kills is a number of processes", seen)


def _require_time(at: float, given_at: float, now: float, clause: str) -> None:
    require(given_at - CLOCK_SLACK_S <= at <= now + CLOCK_SLACK_S, clause, f"{at}, when the time was {now}")


def _is_json(values: Any) -> bool:
    try:
        return bool(json.loads(json.dumps(dict(values), allow_nan=False)) == dict(values))
    except (TypeError, ValueError):
        return False
