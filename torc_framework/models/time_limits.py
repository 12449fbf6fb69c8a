"""Parsing of time limits in the forms of batch systems.

Slurm (``sbatch --time``): ``M``, ``M:S``, ``H:M:S``, ``D-H``, ``D-H:M``, ``D-H:M:S``. Spur takes two fields for hours
and minutes, requires minutes after days and hours, and accepts amounts with units such as ``1d2h``. In minutes, a
part of a minute counts as a whole one. A value that is too large is an error.
"""

import re
from collections.abc import Mapping
from typing import Final

_DAY, _HOUR, _MINUTE, _SECOND = 86_400, 3_600, 60, 1

_Fields = tuple[int, ...]
DIALECTS: Final[Mapping[str, Mapping[tuple[bool, int], _Fields]]] = {
    "slurm": {
        (False, 1): (_MINUTE,),
        (False, 2): (_MINUTE, _SECOND),
        (False, 3): (_HOUR, _MINUTE, _SECOND),
        (True, 1): (_HOUR,),
        (True, 2): (_HOUR, _MINUTE),
        (True, 3): (_HOUR, _MINUTE, _SECOND),
    },
    "spur": {
        (False, 1): (_MINUTE,),
        (False, 2): (_HOUR, _MINUTE),
        (False, 3): (_HOUR, _MINUTE, _SECOND),
        (True, 2): (_HOUR, _MINUTE),
        (True, 3): (_HOUR, _MINUTE, _SECOND),
    },
}
"""Seconds of each field, by dialect, whether days are given, and number of fields."""
NO_LIMIT: Final = frozenset({"infinite", "unlimited"})
MOST: Final = {"minutes": 2**32 - 1, "seconds": 2**64 - 1}
"""Largest value by unit: 32 bits of minutes, 64 bits of seconds."""

_CLOCK: Final = re.compile(r"(?:([0-9]+)-)?([0-9]+(?::[0-9]+){0,2})")
_AMOUNTS: Final = re.compile(r"(?:[0-9]+[dhms])+")
_AMOUNT: Final = re.compile(r"([0-9]+)([dhms])")
_UNITS: Final = {"d": _DAY, "h": _HOUR, "m": _MINUTE, "s": _SECOND}
_LONGEST: Final = 64


def parse_time_limit(text: str, unit: str = "seconds", dialect: str = "slurm") -> int | None:
    """Return a time limit in whole ``seconds`` or ``minutes``, None for no limit.

    Raises:
        ValueError: the text is no time limit of that dialect, or too large for the unit.
    """
    if unit not in MOST:
        raise ValueError(f"unit is {unit!r}; expected minutes or seconds")
    written = text.strip().lower()
    if written in NO_LIMIT:
        return None
    seconds = _seconds(written, dialect)
    if seconds is None:
        raise ValueError(f"{text!r} is no time limit of {dialect}; write for example '90', '1:30:00' or '2-12:00:00'")
    value = -(-seconds // _MINUTE) if unit == "minutes" else seconds
    if value > MOST[unit]:
        raise ValueError(f"time limit {text!r} is too large: at most {MOST[unit]} {unit}")
    return value


def _seconds(written: str, dialect: str) -> int | None:
    if len(written) > _LONGEST:
        return None
    if dialect == "spur" and _AMOUNTS.fullmatch(written):
        return sum(int(amount) * _UNITS[unit] for amount, unit in _AMOUNT.findall(written))
    match = _CLOCK.fullmatch(written)
    if match is None:
        return None
    fields = [int(field) for field in match[2].split(":")]
    lengths = DIALECTS[dialect].get((match[1] is not None, len(fields)))
    if lengths is None:
        return None
    return int(match[1] or 0) * _DAY + sum(map(int.__mul__, fields, lengths))
