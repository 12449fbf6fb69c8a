"""Sizes, durations, counts and shares as text, in the one style of all output for people, and their parsing.

Sizes are binary (``8.8 MiB``, ``1.5 GiB``), durations carry their units (``0.2 s``, ``3 min 20 s``, ``2 h 05 min``,
``3 d 4 h``). `parse_size` and `parse_span` read every text that `size_text` and `duration_text` return. JSON has
numbers instead of these texts.
"""

import math
import re
from typing import Final

_SIZE_UNITS: Final = ("B", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB")
_SIZE: Final = re.compile(r"([0-9]{1,19}(?:\.[0-9]{1,9})?) ?([KMGTPE]iB|B)")
_SECOND, _MINUTE, _HOUR, _DAY = 1, 60, 3_600, 86_400
_SPAN: Final = re.compile(
    r"(?=[0-9])(?:(?P<d>[0-9]{1,9}) d ?)?(?:(?P<h>[0-9]{1,9}) h ?)?(?:(?P<min>[0-9]{1,9}) min ?)?"
    r"(?:(?P<s>[0-9]{1,12}(?:\.[0-9]{1,9})?) s ?)?(?:(?P<ms>[0-9]{1,12}) ms)?(?<! )"
)
_SPAN_UNITS: Final = {"d": _DAY, "h": _HOUR, "min": _MINUTE, "s": _SECOND, "ms": 0.001}


# --- sizes ----------------------------------------------------------------------------------------


def size_text(size_bytes: float, *, exact: bool = False) -> str:
    """Return a size such as ``512 B``, ``8.8 MiB`` or ``1.5 GiB``.

    Amounts below 100 have one decimal, unless it is zero. With ``exact``, for requests and limits, the text means the
    same number of bytes: 1,600 MiB are ``1600 MiB`` and not ``1.6 GiB``.
    """
    if exact:
        return _exact_size_text(round(size_bytes))
    value, position = float(size_bytes), 0
    while (_shown(value) >= 1024 or value >= 1000) and position < len(_SIZE_UNITS) - 1:
        value, position = value / 1024, position + 1
    return f"{_shown(value):g} {_SIZE_UNITS[position]}" if position else f"{round(value)} B"


def _shown(value: float) -> float:
    return round(value, 1) if value < 99.95 else round(value)


def _exact_size_text(size_bytes: int) -> str:
    for position in range(len(_SIZE_UNITS) - 1, 0, -1):
        factor = 1024**position
        if size_bytes >= factor and size_bytes * 10 % factor == 0:
            whole, tenths = divmod(size_bytes * 10 // factor, 10)
            return f"{whole}.{tenths} {_SIZE_UNITS[position]}" if tenths else f"{whole} {_SIZE_UNITS[position]}"
    return f"{size_bytes} B"


def exact_size_text(size_bytes: float) -> str:
    """Return a request or a limit: a text that means the same number of bytes."""
    return size_text(size_bytes, exact=True)


def compared_sizes(first: float, second: float) -> tuple[str, str]:
    """Return two sizes with as many decimals as it takes to tell them apart, at most three."""
    texts = size_text(first), size_text(second)
    if texts[0] != texts[1] or first == second:
        return texts
    factor = 1024 ** _SIZE_UNITS.index(texts[0].partition(" ")[2])
    return f"{first / factor:.3f} {texts[0].partition(' ')[2]}", f"{second / factor:.3f} {texts[0].partition(' ')[2]}"


def parse_size(text: str) -> int:
    """Return the bytes that a text of `size_text` means, rounded up to a whole byte.

    Raises:
        ValueError: the text has another form.
    """
    match = _SIZE.fullmatch(text)
    if match is None:
        raise ValueError(f"{text!r} is not a size such as '512 MiB' or '1.5 GiB'")
    whole, _, decimals = match[1].partition(".")
    size = int(whole + decimals) << 10 * _SIZE_UNITS.index(match[2])
    return -(-size // int("1" + "0" * len(decimals)))


# --- durations ------------------------------------------------------------------------------------


def duration_text(seconds: float, *, exact: bool = False) -> str:
    """Return a duration such as ``20 ms``, ``4.1 s``, ``3 min 20 s``, ``2 h 05 min`` or ``3 d 4 h``.

    The text has the largest unit and the next smaller one. With ``exact``, for requests and limits, it has all units
    down to whole seconds. A negative duration begins with a minus sign.
    """
    if seconds < 0:
        return f"-{duration_text(-seconds, exact=exact)}"
    if exact:
        return _spelled(round(seconds))
    if seconds < 0.0995:
        return f"{max(1, round(seconds * 1000))} ms" if seconds else "0 s"
    if seconds < 9.95:
        return f"{round(seconds, 1):g} s"
    rounded = round(seconds)
    if rounded >= _HOUR:
        rounded = _nearest(seconds, _MINUTE)
    if rounded >= _DAY:
        rounded = _nearest(seconds, _HOUR)
    return _spelled(rounded)


def exact_duration_text(seconds: float) -> str:
    """Return a request or a limit: a text that means the same number of whole seconds."""
    return duration_text(seconds, exact=True)


def _nearest(seconds: float, step: int) -> int:
    return math.floor(seconds / step + 0.5) * step


def _spelled(seconds: int) -> str:
    parts: list[str] = []
    rest = seconds
    for unit, length in (("d", _DAY), ("h", _HOUR), ("min", _MINUTE), ("s", _SECOND)):
        amount, rest = divmod(rest, length)
        if amount:
            parts.append(f"{amount:02d} {unit}" if parts and unit in ("min", "s") else f"{amount} {unit}")
    return " ".join(parts) or "0 s"


def parse_span(text: str) -> float:
    """Return the seconds that a text of `duration_text` means.

    Raises:
        ValueError: the text has another form.
    """
    match = _SPAN.fullmatch(text)
    if match is None:
        raise ValueError(f"{text!r} is not a duration such as '90 s', '3 min 20 s' or '2 h 05 min'")
    return math.fsum(float(match[unit] or 0) * length for unit, length in _SPAN_UNITS.items())


def relative_time_text(seconds: float) -> str:
    """Return a time as its distance from now, in one unit: ``3 min ago``, ``in 2 h``, ``just now``.

    Args:
        seconds: The time minus the present time; negative in the past.
    """
    distance = abs(seconds)
    if distance < 1:
        return "just now"
    unit, length = next(
        each for each in (("d", _DAY), ("h", _HOUR), ("min", _MINUTE), ("s", _SECOND)) if distance >= each[1]
    )
    amount = f"{int(distance // length):,} {unit}"
    return f"in {amount}" if seconds > 0 else f"{amount} ago"


# --- counts and shares ----------------------------------------------------------------------------


def count_text(number: int, noun: str = "", plural: str = "") -> str:
    """Return a count such as ``1,234``, with a noun ``1 job`` or ``1,234 jobs``; the plural is by default noun + s."""
    if not noun:
        return f"{number:,}"
    return f"{number:,} {noun if number == 1 else plural or noun + 's'}"


def percent_text(percent: float) -> str:
    """Return a share such as ``42%`` or ``3.5%``; only 0 is ``0%``, and a share below 100 is at most ``99.9%``."""
    if 0 < percent < 0.05:
        return "<0.1%"
    if 99 < percent < 100:
        return f"{math.floor(percent * 10) / 10:g}%"
    return f"{round(percent, 1):g}%" if percent < 9.95 else f"{round(percent)}%"


def core_time_text(core_seconds: float) -> str:
    """Return CPU time such as ``1.5 core-hours``; below an hour in core-minutes, below a minute in core-seconds."""
    if core_seconds < 59.5:
        amount, unit = core_seconds, "core-second"
    elif core_seconds < _HOUR - 30:
        amount, unit = core_seconds / _MINUTE, "core-minute"
    else:
        amount, unit = core_seconds / _HOUR, "core-hour"
    if 0 < amount < 0.05:
        return f"<0.1 {unit}s"
    shown = f"{round(amount, 1):g}" if amount < 9.95 else f"{round(amount):,}"
    return f"{shown} {unit}" if shown == "1" else f"{shown} {unit}s"


def setting_text(value: object, unit: str | None = None) -> str:
    """Return the value of a setting as it is typed, with its unit: ``30 s``, ``1.5``, ``auto``."""
    text = f"{value:g}" if isinstance(value, float) else str(getattr(value, "value", value))
    return f"{text} {unit}" if unit else text
