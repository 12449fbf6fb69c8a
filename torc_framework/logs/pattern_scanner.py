"""The search for patterns in a log of any size, read in blocks.

Each pattern is searched in whole blocks at the speed of the regular expression engine; only lines with a match are
checked one by one.
"""

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Final

from attrs import evolve, frozen

from torc_framework.logs.log_sources import Readable
from torc_framework.models.log_patterns import LogPattern

BLOCK_BYTES: Final = 1 << 20
"""Bytes of a log in memory at once, and of the longest line: the rest of a longer line is not searched."""
MAX_LINE_LENGTH: Final = 500
"""Most characters of a line that are kept."""
_PER_LINE: Final = re.compile(r"\\[AZ]|\(\?[a-zA-Z]*-")
"""Constructs of regular expressions that match otherwise in a block than in a line."""


_CRLF: Final = re.compile(r"\r+\n")
_COLORS: Final = re.compile(r"\x1b(?:\[[0-9;:?]*[ -/]*[@-~]|\][^\x07\x1b\n]*(?:\x07|\x1b\\))")
"""Sequences of terminals for colors, the cursor, titles and links (ECMA-48)."""
_ANY_CASE: Final = re.IGNORECASE | re.ASCII
_LOWERABLE: Final = re.compile(r"(?:[^\\]|\\[^A-ZNux0-9])*")
"""Regular expressions that match a text in lower case as well, once they are in lower case themselves."""


@frozen
class PatternHit:
    """One line that matches: its number from 1, its text, its pattern."""

    line: int
    text: str
    pattern: LogPattern


@frozen
class _BlockSearch:
    """The search for one pattern in blocks.

    Attributes:
        literal: A text that each matching line contains; empty if there is none.
        word: A part of ``literal`` that other searches have in common, for blocks without it.
        quick: Without a literal, an expression that matches in a block wherever the pattern matches in its lines; None
            if every line has to be checked.
        is_lower: ``literal`` and ``quick`` are for the block in lower case.
    """

    pattern: LogPattern
    literal: str
    quick: re.Pattern[str] | None
    is_lower: bool
    word: str = ""

    def candidates(self, block: str) -> Iterator[int]:
        """Yield the positions of the lines of a block that have to be checked."""
        if self.literal:
            return _lines_with(block, self.literal)
        return _starts(block) if self.quick is None else _candidates(block, self.quick)


class PatternScanner:
    """Finds the lines that match patterns; on each line the first pattern counts."""

    def __init__(self, patterns: Sequence[LogPattern], block_bytes: int = BLOCK_BYTES) -> None:
        self._block_bytes = block_bytes
        self._searches = _with_words([_block_search(pattern) for pattern in patterns])
        self._words = {(search.is_lower, search.word) for search in self._searches if search.word}
        self._needs_lower = any(search.is_lower for search in self._searches)

    def hits(self, log: Readable) -> Iterator[PatternHit]:
        """Yield the lines of a log that match, in order.

        A carriage return begins a new text within a line, as at a terminal; only the matching text is yielded.
        """
        number = 1
        for text in _blocks(log, self._block_bytes):
            found = self._search(text)
            position = 0
            for start in sorted(found):
                number += text.count("\n", position, start)
                position = start
                pattern, shown = found[start]
                yield PatternHit(number, _shown(shown), pattern)
            number += text.count("\n", position)

    def _search(self, text: str) -> dict[int, tuple[LogPattern, str]]:
        """Return pattern and matching text of each matching line of a block, by the position of the line."""
        found: dict[int, tuple[LogPattern, str]] = {}
        plain = text.replace("\r", "\n")
        lower = plain.encode().lower().decode() if self._needs_lower else ""  # as long: only ASCII letters change
        absent = {key for key in self._words if key[1] not in (lower if key[0] else plain)}
        for search in self._searches:
            if (search.is_lower, search.word) in absent:
                continue
            for start in search.candidates(lower if search.is_lower else plain):
                line = text.rfind("\n", 0, start) + 1
                if line not in found and search.pattern.pattern.search(shown := _line(plain, start)):
                    found[line] = search.pattern, shown
        return found


def _block_search(pattern: LogPattern) -> _BlockSearch:
    """Return the fastest search for a pattern.

    A block in lower case is searched for an expression in lower case: the flag IGNORECASE makes the engine slow.
    """
    expression, flags = pattern.pattern.pattern, pattern.pattern.flags
    if _PER_LINE.search(expression):
        return _BlockSearch(pattern, "", None, is_lower=False)
    is_lower = flags & _ANY_CASE == _ANY_CASE and _LOWERABLE.fullmatch(expression) is not None
    if is_lower:
        expression, flags = expression.lower(), flags & ~re.IGNORECASE
    literal = "" if flags & (re.IGNORECASE | re.VERBOSE) else required_text(expression)
    quick = None if literal else re.compile(expression, flags | re.MULTILINE)
    return _BlockSearch(pattern, literal, quick, is_lower)


_WORD: Final = re.compile(r"[A-Za-z]{3,}")


def _with_words(searches: Sequence[_BlockSearch]) -> list[_BlockSearch]:
    """Return searches with the word of each literal that most literals have in common."""
    words = [(search, [word[:5] for word in _WORD.findall(search.literal)]) for search in searches]
    counts = Counter(word for _, found in words for word in set(found))
    return [evolve(search, word=max(found, key=lambda word: counts[word], default="")) for search, found in words]


_TOKEN: Final = re.compile(
    r"\\(?:x..|u.{4}|U.{8}|N\{[^}]*\}|\d{1,3}|.)|\[\^?\]?(?:[^\]\\]|\\.)*\]|\{[^}]*\}|.", re.DOTALL
)
"""One escape, class, number of repetitions, or character of a regular expression."""
_MIN_TEXT: Final = 3
"""Shorter texts are in too many lines."""


def required_text(expression: str) -> str:
    """Return the longest text that each match of an expression contains; empty if there is none of some length.

    Only characters outside of groups, classes and repetitions count.
    """
    texts, depth = [""], 0
    for token in _TOKEN.findall(expression):
        if token in "()":
            depth += 1 if token == "(" else -1
            texts.append("")
        elif depth:
            continue
        elif token == "|":
            return ""
        elif token[0] in "*?{":  # the character before it may be absent
            texts[-1] = texts[-1][:-1]
            texts.append("")
        elif token in "+.^$" or token[0] == "[" or (token[0] == "\\" and token[1].isalnum()):
            texts.append("")
        else:
            texts[-1] += token[-1]
    longest = max(texts, key=len)
    return longest if len(longest) >= _MIN_TEXT else ""


def _lines_with(block: str, text: str) -> Iterator[int]:
    """Yield the positions of the lines that contain a text, each once."""
    position = block.find(text)
    while position >= 0:
        yield block.rfind("\n", 0, position) + 1
        end = block.find("\n", position)
        position = -1 if end < 0 else block.find(text, end)


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
    line = line.strip()
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
    """Return a block as text, without the terminal's sequences and with plain newlines."""
    text = block.decode("utf-8", "replace")
    if "\x1b" in text:
        text = _COLORS.sub("", text)
    return _CRLF.sub("\n", text) if "\r" in text else text
