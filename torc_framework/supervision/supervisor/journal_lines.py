"""Parser of the lines of a journal, which the docstring of `torc_framework.supervision.supervisor` describes."""

from __future__ import annotations

import math

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from typing import Any

    Reader = Callable[[bytes], Any]


def _whole(least: int, most: int) -> Callable[[bytes], int]:
    def read(word: bytes) -> int:
        if not word[word.startswith(b"-") :].isdigit() or not least <= (number := int(word[:20])) <= most:
            raise ValueError(word)
        return number

    return read


def _seconds(word: bytes) -> float:
    if not math.isfinite(number := float(word)) or number < 0:
        raise ValueError(word)
    return number


def _fact(word: bytes) -> tuple[str, int]:
    name, _, number = word.partition(b"=")
    return name.decode("ascii"), _size(number)


def _text(word: bytes) -> str:
    return word.decode(errors="replace")


_id = _whole(0, 2**63 - 1)
_pid = _whole(1, 2**31 - 1)
_status = _whole(0, 0xFFFF)
_size = _whole(-(2**63), 2**63 - 1)

KINDS: dict[bytes, tuple[Sequence[Reader], Reader | None]] = {
    b"H": ((_text,), None),
    b"I": ((_id, _id), _text),
    b"S": ((_id, _id, _pid, _seconds, _seconds), None),
    b"W": ((_id, _id), None),
    b"E": ((_id, _id, _status, _seconds, _seconds, _seconds, _size, _seconds), _fact),
    b"L": ((_id, _id, _seconds), _text),
    b"O": ((), None),
}
"""Parsers of the words of each kind of line: for the required words, and for those after them (None: not allowed)."""


def parse(line: bytes) -> tuple[Any, ...] | None:
    """Return a record: its kind, its required words, and a list of the words after them; None for an invalid line."""
    kind, *words = line.split(b" ")
    if kind not in KINDS:
        return None
    readers, read_more = KINDS[kind]
    more = words[len(readers) :]
    if len(words) < len(readers) or (more and read_more is None):
        return None
    try:
        found = [read(word) for read, word in zip(readers, words)]
        return (kind.decode(), *found, [read_more(word) for word in more] if read_more else [])
    except (ValueError, OverflowError):
        return None
