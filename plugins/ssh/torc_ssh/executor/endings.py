"""Endings that only this executor causes: what it observes of them, and their classes."""

from collections.abc import Mapping
from typing import Any, Final

from attrs import evolve

from torc_framework.api import ExitClass, ExitObservation, ExitVerdict, StopReason

EXECUTOR: Final = "ssh"
HOST_LOST: Final = "host_lost"
"""Why the host of an attempt lost it, in `ExitObservation.raw`."""
TRANSFER_ERROR: Final = "transfer_error"
"""Why output files could not be brought home, in `ExitObservation.raw`."""
LOG_TRANSFER_ERROR: Final = "log_transfer_error"
"""Why logs could not be brought home, in `ExitObservation.raw`; the class of the ending does not depend on it."""


def host_lost(reason: str, seen: ExitObservation | None = None) -> ExitObservation:
    """Return the observation of an attempt that ended because its host is gone.

    Args:
        reason: What happened to the host; names it.
        seen: How its processes ended, if that was seen before its files could be brought home.
    """
    raw: dict[str, Any] = dict(seen.raw) if seen is not None else {}
    if seen is not None and seen.exit_code is not None:
        raw["exit_code"] = seen.exit_code
    if seen is None:
        return ExitObservation(EXECUTOR, raw={HOST_LOST: reason})
    return evolve(seen, exit_code=None, raw={**raw, HOST_LOST: reason})


def cannot_begin(reason: str) -> ExitObservation:
    """Return the observation of an attempt that could not be started."""
    return ExitObservation(EXECUTOR, launch_error=reason)


def over_memory_limit(seen: ExitObservation, size: int) -> ExitObservation:
    """Return the observation of an attempt that was killed because it used so many bytes of memory."""
    peak = max(seen.peak_memory_bytes or 0, size)
    return evolve(seen, stop_reason=StopReason.MEMORY_LIMIT, stop_forced=True, peak_memory_bytes=peak)


def with_raw(seen: ExitObservation, facts: Mapping[str, Any]) -> ExitObservation:
    """Return an observation with further facts."""
    return evolve(seen, raw={**seen.raw, **facts}) if facts else seen


def classify(seen: ExitObservation) -> ExitVerdict | None:
    """Return the verdict on an ending that this executor caused; None for all others."""
    if seen.executor != EXECUTOR:
        return None
    lost = seen.raw.get(HOST_LOST)
    if isinstance(lost, str):
        return ExitVerdict(ExitClass.NODE_FAILURE, lost, 1.0, ("raw",))
    failed = seen.raw.get(TRANSFER_ERROR)
    if isinstance(failed, str) and seen.exit_code == 0 and seen.stop_reason is None:
        return ExitVerdict(ExitClass.SERVICE_ERROR, f"exit code 0, but {failed}", 1.0, ("raw", "exit_code"))
    return None
