"""The search for patterns in a log of any size, read in blocks.

Each pattern is searched in whole blocks at the speed of the regular expression engine; only lines with a match are
checked one by one.
"""

import re
from collections.abc import Iterator, Sequence
from typing import Final

from attrs import frozen

from torc_framework.logs.log_sources import Readable
from torc_framework.models.log_patterns import LogPattern

BLOCK_BYTES: Final = 1 << 20
"""Bytes of a log in memory at once, and of the longest line: the rest of a longer line is not searched."""
MAX_LINE_LENGTH: Final = 500
"""Most characters of a line that are kept."""
_PER_LINE: Final = re.compile(r"\\[AZ]|\(\?[a-zA-Z]*-")
"""Constructs of regular expressions that match otherwise in a block than in a line."""


_CRLF: Final = re.compile(r"\r+\n")


@frozen
class PatternHit:
    """One line that matches: its number from 1, its text, its pattern."""

    line: int
    text: str
    pattern: LogPattern


class PatternScanner:
    """Finds the lines that match patterns; on each line the first pattern counts."""

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
        """Return the pattern of each matching line of a block, by the position of the line."""
        found: dict[int, LogPattern] = {}
        for pattern, quick in self._patterns:
            for start in _starts(text) if quick is None else _candidates(text, quick):
                if start not in found and pattern.pattern.search(_line(text, start)):
                    found[start] = pattern
        return found


def _for_blocks(pattern: re.Pattern[str]) -> re.Pattern[str] | None:
    """Return an expression that matches in a block wherever the pattern matches in its lines; None if there is none."""
    if _PER_LINE.search(pattern.pattern):
        return None
    return re.compile(pattern.pattern, pattern.flags | re.MULTILINE)


def _candidates(text: str, quick: re.Pattern[str]) -> Iterator[int]:
    """Yield the positions of the lines in which an expression matches, each once."""
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
    """Return a line for printing: without control characters, at most `MAX_LINE_LENGTH` characters."""
    line = line.rpartition("\r")[2].strip() if "\r" in line else line.strip()
    line = line if len(line) <= MAX_LINE_LENGTH else line[: MAX_LINE_LENGTH - 3] + "..."
    return printable(line)


def printable(text: str) -> str:
    """Return a text with its control characters escaped."""
    if text.isprintable():
        return text
    return "".join(letter if letter.isprintable() or letter == "\t" else repr(letter)[1:-1] for letter in text)


def _blocks(log: Readable, size: int) -> Iterator[str]:
    """Yield the lines of a log in blocks; bytes that are not UTF-8 are replaced, and long lines are cut."""
    rest, is_cut = b"", False
    while read := log.read(size):
        whole, newline, tail = read.rpartition(b"\n")
        if is_cut and newline:  # drop the rest of the line that was cut
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
