"""Hostlists: Slurm's abbreviation of node names, such as ``n[01-03,7],login1``."""

import re
from collections.abc import Iterator
from typing import Final

_PART: Final = re.compile(r"[^,\[]*(?:\[[^\]]*\][^,\[]*)*")
_BRACKETS: Final = re.compile(r"\[([^\]]*)\]")
MAX_NAMES: Final = 100_000
"""Most names that are expanded."""


def expand_hostlist(text: str) -> list[str]:
    """Return the names of a hostlist; a text of another form is returned as one name."""
    names: list[str] = []
    for match in _PART.finditer(text):
        if match[0]:
            names += list(_expand_part(match[0]))[: MAX_NAMES - len(names)]
    return names


def _expand_part(text: str) -> Iterator[str]:
    """Yield the names of one part, which may have several brackets."""
    match = _BRACKETS.search(text)
    if match is None:
        yield text
        return
    tails = list(_expand_part(text[match.end() :]))
    for number in _numbers(match[1]):
        yield from (f"{text[: match.start()]}{number}{tail}" for tail in tails)


def _numbers(text: str) -> Iterator[str]:
    for part in text.split(","):
        low, dash, high = part.partition("-")
        if dash and low.isdecimal() and high.isdecimal() and int(high) - int(low) < MAX_NAMES:
            yield from (f"{number:0{len(low)}}" for number in range(int(low), int(high) + 1))
        else:
            yield part
