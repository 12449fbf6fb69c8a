"""Ranking of log lines by how much they explain a failure, and normal forms to compare lines."""

import re
from collections.abc import Iterable, Sequence
from enum import IntEnum
from typing import Final

from attrs import frozen

from torc_framework.models.log_patterns import LogPattern, Severity

MAX_LINE_LENGTH: Final = 300
"""Most characters of a line that are kept."""
MAX_SHOWN_LINES: Final = 5
"""Most ranked lines of one log that are shown."""
CONTEXT_LINES: Final = 3
"""Lines that are shown before an exception, or of a log with plain lines only."""

_ANSI: Final = re.compile(r"\x1b\[[0-9;?]*[ -/]*[@-~]")
_CONTROL: Final = re.compile(r"[\s\x00-\x1f\x7f-\x9f]+")
_FOLDERS: Final = re.compile(
    r"(?<![\w.#…/~])(?:(?:~|\.{1,2})/|/(?=FILE/))(?:FILE/)*".replace("FILE", r"[^\s/:'\"`<>|(){},;=\[\]]+")
)
_IDS: Final = re.compile(
    r"\b(?:0[xX][0-9a-fA-F]+|[0-9a-fA-F]{8}(?:-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}"
    r"|(?=[a-fA-F]*[0-9])[0-9a-fA-F]{8,})\b"
)
_NUMBERS: Final = re.compile(r"(?:(?<![\w#…])[-+]+)?(?:#|\d+(?:[.,:]\d+)*(?:[eE][-+]?\d+)?)")
_SERIES: Final = re.compile(r"#(?: ?[-+:.,/T]? ?#)+")

EXCEPTION: Final = re.compile(r"(?:[A-Za-z_]\w*\.)*[A-Z]\w*(?:Error|Exception|Interrupt|Exit)(?::|$)")
"""The last line of a traceback."""
_HEADER: Final = re.compile(r"Traceback \(most recent call last\)")
_ERROR_WORDS: Final = re.compile(
    r"(?i)\b(?:error|fatal|failed|failure|abort(?:ed)?|panic(?:ked)?|killed|denied|cannot|can't|unable"
    r"|no such|not found|exceeded|segmentation fault|core dumped)\b"
)
_HARMLESS: Final = frozenset({Severity.INFO, Severity.WARNING})


class LineRank(IntEnum):
    """How much a line explains."""

    PLAIN = 1
    """Any other line."""
    WORDY = 2
    """It holds a word such as ``error``."""
    KNOWN = 3
    """It matches a pattern of an error."""
    EXCEPTION = 4
    """It is the last line of a traceback, which names the exception."""


@frozen
class RankedLine:
    """One line of a log.

    Attributes:
        number: Its number, from 1.
        text: The line without colors, at most `MAX_LINE_LENGTH` characters.
        rank: How much it explains.
        pattern: Name of the pattern that it matches.
        hint: The hint of that pattern.
    """

    number: int
    text: str
    rank: LineRank
    pattern: str | None = None
    hint: str = ""


def printable_line(line: str) -> str:
    """Return a line for printing: without colors and control characters, at most `MAX_LINE_LENGTH` characters."""
    text = _CONTROL.sub(" ", _ANSI.sub("", line)).strip()
    return text if len(text) <= MAX_LINE_LENGTH else text[: MAX_LINE_LENGTH - 1].rstrip() + "…"


def normalized_line(line: str, job_name: str = "") -> str:
    """Return a line without numbers, ids, folders and the job's name.

    Lines that differ in these only give the same text. Names of files and quoted words stay: ``KeyError: 'a'`` and
    ``KeyError: 'b'`` are two failures.
    """
    text = line
    if len(job_name) > 3 and job_name in text:
        text = re.sub(rf"(?<!\w){re.escape(job_name)}(?!\w)", "<job>", text)
    text = _CONTROL.sub(" ", _ANSI.sub("", text))
    text = _NUMBERS.sub("#", _IDS.sub("#", _FOLDERS.sub("…/", text)))
    return _SERIES.sub("#", text).strip()[:MAX_LINE_LENGTH].rstrip()


def rank_line(number: int, line: str, pattern: LogPattern | None = None) -> RankedLine | None:
    """Return a line with its rank, given the pattern that it matches; None for an empty line."""
    text = printable_line(line)
    if not text:
        return None
    if _HEADER.match(text):
        return RankedLine(number, text, LineRank.PLAIN)  # the exception is on a later line
    if EXCEPTION.match(text):
        rank = LineRank.EXCEPTION
    elif pattern is not None and pattern.severity not in _HARMLESS:
        rank = LineRank.KNOWN
    else:
        rank = LineRank.WORDY if pattern is not None or _ERROR_WORDS.search(text) else LineRank.PLAIN
    if pattern is None:
        return RankedLine(number, text, rank)
    return RankedLine(number, text, rank, pattern.name, pattern.hint)


def most_informative(lines: Iterable[RankedLine]) -> RankedLine | None:
    """Return the line of the highest rank; of several the last, since the program continued after the others."""
    best = None
    for line in lines:
        if best is None or line.rank >= best.rank:
            best = line
    return best


def lines_to_show(lines: Sequence[RankedLine]) -> list[RankedLine]:
    """Return the last `MAX_SHOWN_LINES` lines above rank PLAIN, else the last `CONTEXT_LINES`, in order.

    The lines before a final exception, which name the place where it was raised, are added.
    """
    ranked = [at for at, line in enumerate(lines) if line.rank > LineRank.PLAIN][-MAX_SHOWN_LINES:]
    if not ranked:
        return list(lines[-CONTEXT_LINES:])
    chosen = set(ranked)
    if lines[ranked[-1]].rank is LineRank.EXCEPTION:
        chosen.update(range(max(0, ranked[-1] - CONTEXT_LINES), ranked[-1]))
    return [lines[at] for at in sorted(chosen)]
