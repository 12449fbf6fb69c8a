"""Times of attempts, from what results store: the end as a text that a client sent, and the run time."""

from collections.abc import Sequence
from datetime import datetime
from typing import Final

LONGEST_MINUTES: Final = 1e8
"""Longest run time that counts; a client may have stored any number."""


def end_seconds(completion_time: str | None) -> float | None:
    """Return the end of an attempt in seconds since the epoch; None if the text is no time."""
    if completion_time is None:
        return None
    try:
        return datetime.fromisoformat(completion_time).timestamp()
    except (ValueError, OverflowError, OSError):  # a client stored any text
        return None


def seconds_of_ends(completion_times: Sequence[str]) -> list[float] | list[float | None]:
    """Return `end_seconds` of each text; it is fast if all are times."""
    try:
        return [*map(datetime.timestamp, map(datetime.fromisoformat, completion_times))]
    except (ValueError, OverflowError, OSError):
        return [*map(end_seconds, completion_times)]


def start_seconds(completion_time: str | None, exec_time_minutes: float | None) -> float | None:
    """Return the begin of an attempt in seconds since the epoch; None if it is not known."""
    end = end_seconds(completion_time)
    if end is None or exec_time_minutes is None or not 0 <= exec_time_minutes <= LONGEST_MINUTES:
        return None
    return end - exec_time_minutes * 60
