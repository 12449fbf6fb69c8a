"""Values of the filter language: texts with ``*``, statuses, numbers, sizes, durations, times and signals."""

import math
import re
import signal
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from enum import Enum
from typing import Any, Final

from attrs import frozen

from torc_framework.errors import suggestion
from torc_framework.job_filters.fields import ValueKind
from torc_framework.models.resources import parse_duration, parse_memory
from torc_framework.models.statuses import JobStatus

LARGEST: Final = 2**63 - 1
"""The largest whole number that the database stores."""
ANY_TEXT: Final = "*"
_MAX_DIGITS: Final = 30
_NUMBER: Final = re.compile(r"[-+]?(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)")
_SIZE: Final = re.compile(r"([0-9]+\.[0-9]+)([kmgtKMGT])")
_SIZE_FACTORS: Final = {"k": 1024, "m": 1024**2, "g": 1024**3, "t": 1024**4}
_SPAN_PART: Final = re.compile(r"([0-9]+(?:\.[0-9]+)?)(ms|s|min|m|h|d|w)")
_SPAN_UNITS_S: Final = {"ms": 0.001, "s": 1, "m": 60, "min": 60, "h": 3600, "d": 86_400, "w": 604_800}
_CLOCK: Final = re.compile(r"([0-9]{1,2}):([0-9]{2})(?::([0-9]{2}))?")
_MOMENT: Final = re.compile(
    r"([0-9]{4})-([0-9]{2})-([0-9]{2})"
    r"(?:[T ]([0-9]{2}):([0-9]{2})(?::([0-9]{2})(?:\.[0-9]+)?)?(Z|[-+][0-9]{2}:?[0-9]{2})?)?"
)
_LONGEST_SPAN_S: Final = 1e11


class Presence(Enum):
    """Whether a job has a value for a field."""

    NONE = "none"
    ANY = "any"


@frozen
class TextPattern:
    """A text to compare with, without regard to case.

    Attributes:
        parts: The texts between places where any characters may be; a single part is the whole text.
    """

    parts: tuple[str, ...]

    def matches(self, text: str) -> bool:
        """Return whether a text is one that the pattern describes."""
        begin, *others = [part.lower() for part in self.parts]
        left = text.lower()
        if not others:
            return left == begin
        *middle, end = others
        if len(left) < len(begin) + len(end) or not (left.startswith(begin) and left.endswith(end)):
            return False
        left = left[len(begin) : len(left) - len(end)]
        for part in middle:  # the first place of each leaves most of the text to the next
            found = left.find(part)
            if found < 0:
                return False
            left = left[found + len(part) :]
        return True


@frozen
class LabelBegin:
    """The begin of the label of a group, up to where a word ends, without regard to case."""

    text: str

    def matches(self, label: str) -> bool:
        """Return whether a label begins so: ``train`` is a begin of ``train_lr#`` and not of ``training_#``."""
        rest = label[len(self.text) :]
        return label.lower().startswith(self.text.lower()) and not rest[:1].isalnum()


@frozen
class TimeSpan:
    """A span of time that a text names: a day, a minute, a second, or a moment.

    Attributes:
        start_s: Begin, seconds since the epoch.
        end_s: End, which is not part of it, unless it is the begin.
    """

    start_s: float
    end_s: float


def parse_value(kind: ValueKind, text: str, now_s: float) -> Any:
    """Return the value that a text of one kind stands for.

    Args:
        now_s: The present time, from which times such as ``2h`` are counted.

    Raises:
        ValueError: the text is no such value; the message says what is.
    """
    return _PARSERS[kind](text) if kind is not ValueKind.TIME else _parse_time(text, now_s)


def _parse_status(text: str) -> JobStatus:
    labels = [status.label for status in JobStatus]
    if text.lower() not in labels:
        raise ValueError(f'no status is called "{text}"{suggestion(text.lower(), labels)}')
    return JobStatus.from_label(text.lower())


def _parse_whole(text: str) -> int:
    if not re.fullmatch(r"[-+]?[0-9]+", text) or len(text) > _MAX_DIGITS or abs(int(text)) > LARGEST:
        raise ValueError(f'"{text}" is no whole number')
    return int(text)


def _parse_number(text: str) -> float:
    bare = text.removesuffix("%")
    if not _NUMBER.fullmatch(bare) or len(bare) > _MAX_DIGITS:
        raise ValueError(f'"{text}" is no number')
    return float(bare)


def _parse_size(text: str) -> int:
    if len(text) <= _MAX_DIGITS and (match := _SIZE.fullmatch(text)):
        return min(math.ceil(float(match[1]) * _SIZE_FACTORS[match[2].lower()]), LARGEST)
    try:
        return parse_memory(text)
    except ValueError:
        raise ValueError(f'"{text}" is no size; write for example 512m, 48g or 1.5g') from None


def _parse_span(text: str) -> float:
    """Return the seconds of a duration such as ``90``, ``90s``, ``1h30m``, ``2d`` or ``PT2H``."""
    if len(text) <= _MAX_DIGITS:
        if _NUMBER.fullmatch(text):
            return float(text)
        if parts := _SPAN_PART.findall(text):
            if "".join(map("".join, parts)) == text:
                return math.fsum(float(amount) * _SPAN_UNITS_S[unit] for amount, unit in parts)
        else:
            try:
                return parse_duration(text)
            except ValueError:
                pass
    raise ValueError(f'"{text}" is no duration; write for example 90s, 30m, 1h30m or 2d')


def _parse_time(text: str, now_s: float) -> TimeSpan:
    problem = f'"{text}" is no time; write for example 2026-07-01, 2026-07-01T12:30, 12:30, or 2h for two hours ago'
    try:
        if match := _MOMENT.fullmatch(text):
            year, month, day, hour, minute, second, zone = match.groups()
            date = int(year), int(month), int(day)
            offset = _zone(zone)
            if hour is None:
                start = datetime(*date, tzinfo=UTC)
                return _span(start, timedelta(days=1))
            start = datetime(*date, int(hour), int(minute), int(second or 0), tzinfo=UTC) - offset
            return _span(start, timedelta(seconds=1) if second else timedelta(minutes=1))
        if match := _CLOCK.fullmatch(text):
            today = datetime.fromtimestamp(now_s, UTC)
            hour, minute, second = match.groups()
            start = today.replace(hour=int(hour), minute=int(minute), second=int(second or 0), microsecond=0)
            return _span(start, timedelta(seconds=1) if second else timedelta(minutes=1))
        ago_s = _parse_span(text)
    except (ValueError, OverflowError):
        raise ValueError(problem) from None
    if not 0 <= ago_s <= min(_LONGEST_SPAN_S, now_s):
        raise ValueError(problem)
    return TimeSpan(now_s - ago_s, now_s - ago_s)


def _zone(text: str | None) -> timedelta:
    if text is None or text == "Z":
        return timedelta()
    hours, minutes = int(text[1:3]), int(text[-2:])
    offset = timedelta(hours=hours, minutes=minutes)
    return -offset if text[0] == "-" else offset


def _span(start: datetime, length: timedelta) -> TimeSpan:
    return TimeSpan(start.timestamp(), (start + length).timestamp())


def _parse_signal(text: str) -> int:
    name = text.upper() if text.upper().startswith("SIG") else f"SIG{text.upper()}"
    if name in signal.Signals.__members__:
        return int(signal.Signals[name])
    try:
        return _parse_whole(text)
    except ValueError:
        known = [each.name for each in signal.Signals]
        raise ValueError(f'no signal is called "{text}"{suggestion(name, known)}') from None


_FLAGS: Final = {"yes": True, "true": True, "1": True, "no": False, "false": False, "0": False}


def _parse_flag(text: str) -> bool:
    if text.lower() not in _FLAGS:
        raise ValueError(f'"{text}" is neither yes nor no')
    return _FLAGS[text.lower()]


_PARSERS: Final[dict[ValueKind, Callable[[str], Any]]] = {
    ValueKind.STATUS: _parse_status,
    ValueKind.WHOLE: _parse_whole,
    ValueKind.NUMBER: _parse_number,
    ValueKind.SIZE: _parse_size,
    ValueKind.DURATION: _parse_span,
    ValueKind.SIGNAL: _parse_signal,
    ValueKind.FLAG: _parse_flag,
}
