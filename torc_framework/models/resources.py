"""Amounts of CPUs, memory, GPUs, nodes and time, and parsing and formatting of their spellings.

Memory is digits and one of k, m, g, t in either case, 1024-based, or plain bytes (Torc, "Resource Requirements
Reference"). Durations are ISO 8601, such as ``PT1H30M`` or ``P1DT2H``. Texts that output for people shows are read too,
such as ``8.8 MiB`` and ``3 min 20 s``; other spellings are errors. `memory_spelling` and `duration_spelling` return the
first two forms, which records have.
"""

import math
import re
from typing import Final

from attrs import frozen

from torc_framework.text.quantities import parse_size, parse_span

_MEMORY: Final = re.compile(r"([0-9]+)([kmgtKMGT]?)")
_FACTORS: Final = {"": 1, "k": 1024, "m": 1024**2, "g": 1024**3, "t": 1024**4}
# Seconds per unit: the fixed lengths that Torc's server uses for years and months.
_YEAR_S: Final = 31_557_600
_MONTH_S: Final = 2_629_800
MAX_BYTES: Final = 2**63 - 1
"""The largest amount of memory that fits into an integer of the database."""


def parse_memory(text: str) -> int:
    """Return the bytes that ``text`` such as ``512m``, ``16g`` or ``1.5 GiB`` stands for.

    Raises:
        ValueError: the text is no memory size, or too large for 63 bits.
    """
    match = _MEMORY.fullmatch(text)
    if match is not None:
        size = int(match[1]) * _FACTORS[match[2].lower()]
    else:
        try:
            size = parse_size(text)
        except ValueError:
            problem = "is not a memory size: write digits and one of k, m, g, t, such as '512m' or '16g', or '1.5 GiB'"
            raise ValueError(f"{text!r} {problem}") from None
    if size > MAX_BYTES:
        raise ValueError(f"memory size {text!r} is too large")
    return size


def memory_spelling(text: str) -> str:
    """Return a memory size as records have it: a text such as ``512m`` unchanged, ``1.5 GiB`` as ``1536m``.

    Raises:
        ValueError: the text is no memory size.
    """
    size = parse_memory(text)
    return text if _MEMORY.fullmatch(text) else format_memory(size)


def format_memory(size_bytes: int) -> str:
    """Return the shortest whole spelling not below ``size_bytes``: ``8g`` for 8 GiB.

    A size that is not whole in a unit is rounded up within the next smaller one, so that
    ``parse_memory(format_memory(n)) >= n`` holds with less than 1 part in 1024 added.
    """
    for suffix in "tgmk":
        factor = _FACTORS[suffix]
        if size_bytes >= factor and size_bytes % factor == 0:
            return f"{size_bytes // factor}{suffix}"
    for suffix in "gmk":
        factor = _FACTORS[suffix]
        if size_bytes >= 1024 * factor:
            return f"{-(-size_bytes // factor)}{suffix}"
    return str(size_bytes)


def parse_duration(text: str) -> int:
    """Return the whole seconds of an ISO 8601 duration, or of a text such as ``2 h 05 min``.

    Fractions of a second are dropped from the former; the latter is rounded up.

    Raises:
        ValueError: the text is no duration, names no amount, or is negative or too large.
    """
    import isodate

    if not text.startswith("P"):
        try:
            return math.ceil(parse_span(text))
        except ValueError:
            pass
    problem = f"{text!r} is not an ISO 8601 duration: write for example 'PT30M', 'PT2H' or 'P1DT12H', or '2 h 30 min'"
    if not text.startswith("P") or text.endswith(("P", "T")):  # isodate takes "PT" and "P1DT" for 0 and 1 day
        raise ValueError(problem)
    try:
        parsed = isodate.parse_duration(text, as_timedelta_if_possible=False)
        total = int(parsed.tdelta.total_seconds() + float(parsed.years) * _YEAR_S + float(parsed.months) * _MONTH_S)
    except (isodate.ISO8601Error, OverflowError) as error:
        raise ValueError(problem) from error
    return total


def duration_spelling(text: str) -> str:
    """Return a duration as records have it: ISO 8601 unchanged, ``2 h 05 min`` as ``PT2H5M``.

    Raises:
        ValueError: the text is no duration.
    """
    seconds = parse_duration(text)
    return text if text.startswith("P") else format_duration(seconds)


def runtime_spelling(text: str) -> str:
    """Return a run time as records have it: a duration without years and months, of a second or more.

    `parse_duration` accepts years and months, because Torc's HTTP contract gives them a fixed length. A person
    who writes ``P1M`` as a run time means a minute.

    Raises:
        ValueError: the text is no such duration.
    """
    if parse_duration(text) < 1:
        raise ValueError(f"{text!r} is less than a second")
    date = text.partition("T")[0]
    if date.startswith("P") and ("Y" in date or "M" in date):
        raise ValueError(
            f"{text!r} has years or months, which have no fixed length: write 'P30D' for 30 days, 'PT1M' for a minute"
        )
    return duration_spelling(text)


def format_duration(seconds: int) -> str:
    """Return ``seconds`` as an ISO 8601 duration such as ``P1DT2H`` or ``PT0S``."""
    days, rest = divmod(seconds, 86_400)
    hours, rest = divmod(rest, 3_600)
    minutes, secs = divmod(rest, 60)
    date = f"{days}D" if days else ""
    time = "".join(f"{n}{unit}" for n, unit in ((hours, "H"), (minutes, "M"), (secs, "S")) if n)
    if not date and not time:
        return "PT0S"
    return f"P{date}{'T' if time else ''}{time}"


@frozen
class Resources:
    """What one job requests, or what one runner offers.

    Attributes:
        num_cpus: CPU cores per node.
        memory_bytes: Memory per node, in bytes.
        num_gpus: GPUs per node.
        num_nodes: Nodes used at once.
        runtime_s: Longest run time in seconds; for a runner the walltime left. None is unlimited.
    """

    num_cpus: int = 1
    memory_bytes: int = 1024**2
    num_gpus: int = 0
    num_nodes: int = 1
    runtime_s: float | None = None

    def fits(self, within: "Resources") -> bool:
        """Return whether this request fits within an offer."""
        return (
            self.num_cpus <= within.num_cpus
            and self.memory_bytes <= within.memory_bytes
            and self.num_gpus <= within.num_gpus
            and self.num_nodes <= within.num_nodes
            and (within.runtime_s is None or (self.runtime_s is not None and self.runtime_s <= within.runtime_s))
        )
