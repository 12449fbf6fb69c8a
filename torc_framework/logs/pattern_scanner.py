"""Finds lines that match patterns in a log of any size, a block at a time.

A pattern is searched in whole blocks, in the regular expression engine's own speed; only lines in which
it was found are looked at one by one.
"""

import re
from collections.abc import Iterator, Sequence
from typing import Final

from attrs import frozen

from torc_framework.logs.log_sources import Readable
from torc_framework.models.log_patterns import LogPattern

BLOCK_BYTES: Final = 1 << 20
"""How much of a log is held at once, and the longest line: what is beyond is not looked at."""
MAX_LINE_LENGTH: Final = 500
"""Letters of a line that are kept."""
_PER_LINE: Final = re.compile(r"\\[AZ]|\(\?[a-zA-Z]*-")
"""Expressions that mean something else in a block than in a line."""


_CRLF: Final = re.compile(r"\r+\n")


@frozen
class PatternHit:
    """One line that tells of trouble: its number from 1, its text, the pattern that found it."""

    line: int
    text: str
    pattern: LogPattern


class PatternScanner:
    """Finds lines by patterns; on each line the first pattern counts."""

    def __init__(self, patterns: Sequence[LogPattern], block_bytes: int = BLOCK_BYTES) -> None:
        self._block_bytes = block_bytes
        self._patterns = [(pattern, _for_blocks(pattern.pattern)) for pattern in patterns]

    def hits(self, log: Readable) -> Iterator[PatternHit]:
        """Yield the lines of a log that match, in order."""
        number = 1
        for text in _blocks(log, self._block_bytes):
            found = self._search(text)
            position = 0
            for start in sorted(found):
                number += text.count("\n", position, start)
                position = start
                yield PatternHit(number, _shown(_line(text, start)), found[start])
            number += text.count("\n", position)

    def _search(self, text: str) -> dict[int, LogPattern]:
        """Return the patterns of a block's lines, by where the lines begin."""
        found: dict[int, LogPattern] = {}
        for pattern, quick in self._patterns:
            for start in _starts(text) if quick is None else _candidates(text, quick):
                if start not in found and pattern.pattern.search(_line(text, start)):
                    found[start] = pattern
        return found


def _for_blocks(pattern: re.Pattern[str]) -> re.Pattern[str] | None:
    """Return an expression that finds in a block at least what the pattern finds in lines; None if there is none."""
    if _PER_LINE.search(pattern.pattern):
        return None
    return re.compile(pattern.pattern, pattern.flags | re.MULTILINE)


def _candidates(text: str, quick: re.Pattern[str]) -> Iterator[int]:
    """Yield where the lines begin in which an expression is found, each once."""
    position = 0
    while (match := quick.search(text, position)) is not None:
        start = text.rfind("\n", 0, match.start()) + 1
        yield start
        end = text.find("\n", match.start())
        if end < 0:
            return
        position = end + 1


def _starts(text: str) -> Iterator[int]:
    position = 0
    while position < len(text):
        yield position
        end = text.find("\n", position)
        position = len(text) if end < 0 else end + 1


def _line(text: str, start: int) -> str:
    end = text.find("\n", start)
    return text[start : len(text) if end < 0 else end]


def _shown(line: str) -> str:
    """Return a line as it may be printed: no control characters, not too long."""
    line = line.rpartition("\r")[2].strip() if "\r" in line else line.strip()
    line = line if len(line) <= MAX_LINE_LENGTH else line[: MAX_LINE_LENGTH - 3] + "..."
    return printable(line)


def printable(text: str) -> str:
    """Return a text without characters that a terminal obeys."""
    if text.isprintable():
        return text
    return "".join(letter if letter.isprintable() or letter == "\t" else repr(letter)[1:-1] for letter in text)


def _blocks(log: Readable, size: int) -> Iterator[str]:
    """Yield the lines of a log in blocks; what is no UTF-8 is replaced, and long lines are cut."""
    rest, is_cut = b"", False
    while read := log.read(size):
        whole, newline, tail = read.rpartition(b"\n")
        if is_cut and newline:  # the end of the line that was cut is of no interest
            whole = whole[whole.find(b"\n") :] if b"\n" in whole else b""
        elif newline:
            whole = rest + whole
        if newline:
            yield _decoded(whole + b"\n")
            rest, is_cut = tail, False
        elif not is_cut:
            rest += tail
        if len(rest) > size:
            yield _decoded(rest)
            rest, is_cut = b"", True
    if rest:
        yield _decoded(rest).rstrip("\r")


def _decoded(block: bytes) -> str:
    text = block.decode("utf-8", "replace")
    return _CRLF.sub("\n", text) if "\r" in text else text
