"""Walltimes: parsing of the notations that people use for clusters, and the notation of output."""

import re
from typing import Final

from torc_framework.models.resources import parse_duration

_UNITS: Final = {"d": 86_400, "h": 3_600, "m": 60, "s": 1}
_AMOUNTS: Final = re.compile(r"(?:[0-9]{1,9}[dhms])+")
_AMOUNT: Final = re.compile(r"([0-9]+)([dhms])")
_CLOCK: Final = re.compile(r"(?:([0-9]{1,9})-)?([0-9]{1,9}):([0-9]{1,2})(?::([0-9]{1,2}))?")


def parse_walltime(text: str) -> int:
    """Return the whole seconds of a walltime.

    Amounts with units (``2h``, ``1h30m``, ``3600s``), a clock (``H:MM:SS``, ``D-HH:MM:SS``, ``D-HH:MM``) or an ISO 8601
    duration (``PT2H``). Two fields
    without days are refused, because people mean hours and minutes by them, and Slurm minutes and seconds. What output
    shows, such as ``1 d 12 h``, is read too.

    Raises:
        ValueError: the text has none of these forms, or means zero.
    """
    written = text.strip()
    seconds = _seconds(written)
    if not seconds:
        raise ValueError(
            f"{text!r} is not a walltime: write for example '2h', '90m', '04:00:00', '2-12:00:00' or 'PT4H'"
        )
    return seconds


def _seconds(written: str) -> int | None:
    lowered = written.lower()
    if _AMOUNTS.fullmatch(lowered):
        return sum(int(amount) * _UNITS[unit] for amount, unit in _AMOUNT.findall(lowered))
    match = _CLOCK.fullmatch(written)
    if match is None:
        try:
            return parse_duration(written)
        except ValueError:
            return None
    days, hours, minutes, secs = (int(part or 0) for part in match.groups())
    if (match[1] is None and match[4] is None) or minutes > 59 or secs > 59:
        return None
    return days * 86_400 + hours * 3_600 + minutes * 60 + secs


def clock_text(seconds: int) -> str:
    """Return seconds as schedulers write them: ``04:00:00``, ``48:00:00``."""
    minutes, secs = divmod(seconds, 60)
    return "{:02}:{:02}:{:02}".format(*divmod(minutes, 60), secs)
