"""Parts of a log by byte range, and the search for text in it; of files of any size, with lines of any length."""

import base64
import os
import re
from typing import Any, Final, Literal

from attrs import frozen

SEARCH_BYTES: Final = 64 << 20
"""Bytes of a log that one search reads."""
SEARCH_MATCHES: Final = 1_000
"""Most matches in one answer."""
_CHUNK: Final = 1 << 20
_AROUND: Final = 250
"""Bytes before and behind a match that are returned with it, as far as they are of its line."""
_PROBLEM: Final = re.compile(
    rb"(?i)\b(?:error|exception|traceback|fatal|fail(?:ed|ure)|killed|abort(?:ed)?|panic|segmentation fault"
    rb"|out of memory|no space left|permission denied|no such file|not found|cannot|unable to)\b"
)
"""Words of lines that tell of problems."""
_LONGEST_PROBLEM: Final = 32
MAX_TEXT: Final = 1_000


@frozen
class LogSearch:
    """What a search looks for.

    Attributes:
        kind: ``text``: the text; ``problem``: words of lines that tell of problems.
    """

    text: str = ""
    kind: Literal["text", "problem"] = "text"
    ignore_case: bool = False

    @property
    def pattern(self) -> "re.Pattern[bytes]":
        """The expression that matches it."""
        if self.kind == "problem":
            return _PROBLEM
        return re.compile(re.escape(self.text.encode()), re.IGNORECASE if self.ignore_case else 0)

    @property
    def longest(self) -> int:
        """The most bytes that a match has."""
        return _LONGEST_PROBLEM if self.kind == "problem" else len(self.text.encode())


def read_part(descriptor: int, path: str, *, offset: int, length: int, is_tail: bool) -> dict[str, Any]:
    """Return a part of a log as JSON values.

    Args:
        descriptor: The open file.
        path: Its path, for the answer.
        offset: First byte of the part.
        length: Most bytes of the part.
        is_tail: The part is the end of the file; it begins at a line if one begins in it.
    """
    facts = os.fstat(descriptor)
    size = facts.st_size
    begin = max(0, size - length) if is_tail else min(offset, size)
    content = os.pread(descriptor, length, begin)
    if is_tail and begin > 0 and (line := content.find(b"\n")) >= 0:
        begin, content = begin + line + 1, content[line + 1 :]
    answer: dict[str, Any] = {
        "path": path,
        "file": f"{facts.st_dev}-{facts.st_ino}",
        "size": size,
        "mtime": facts.st_mtime,
        "is_binary": b"\0" in content,
    }
    if answer["is_binary"]:
        answer["base64"] = base64.b64encode(content).decode()
    else:
        skipped, content = _whole_characters(content, is_first=begin == 0)
        begin += skipped
        answer["text"] = content.decode("utf-8", "replace")
    answer |= {
        "offset": begin,
        "next_offset": begin + len(content),
        "at_line_start": begin == 0 or os.pread(descriptor, 1, begin - 1) == b"\n",
    }
    return answer


def _whole_characters(content: bytes, *, is_first: bool) -> tuple[int, bytes]:
    """Return how many bytes of a begun character a part begins with, and the part without begun characters."""
    skipped = 0
    if not is_first:
        while skipped < min(3, len(content)) and content[skipped] & 0xC0 == 0x80:
            skipped += 1
    end = len(content)
    for back in range(1, min(4, end - skipped) + 1):
        byte = content[end - back]
        if byte & 0xC0 == 0x80:
            continue
        if byte >= 0xC0 and back < (2 if byte < 0xE0 else 3 if byte < 0xF0 else 4):
            end -= back
        break
    return skipped, content[skipped:end]


def search(descriptor: int, wanted: LogSearch, *, start: int, limit: int) -> dict[str, Any]:
    """Return the matches from a byte on, as JSON values; at most `SEARCH_BYTES` are read.

    Args:
        descriptor: The open file.
        start: First byte to look at.
        limit: Most matches.
    """
    size, pattern = os.fstat(descriptor).st_size, wanted.pattern
    stop, most = min(size, start + SEARCH_BYTES), min(limit, SEARCH_MATCHES)
    overlap = max(0, wanted.longest - 1)
    matches: list[dict[str, Any]] = []
    at = start
    while at < stop and len(matches) < most:
        end = min(at + _CHUNK, stop)
        content = os.pread(descriptor, end - at + overlap, at)
        if not content:
            break
        after = end
        for match in pattern.finditer(content):
            if match.start() >= end - at:
                break
            matches.append(_match(descriptor, at + match.start(), match.end() - match.start()))
            if len(matches) >= most:
                after = at + match.start() + 1
                break
        at = after
    return {
        "matches": matches,
        "scanned_from": start,
        "scanned_to": at,
        "size": size,
        "is_complete": at >= size,
    }


def _match(descriptor: int, offset: int, length: int) -> dict[str, Any]:
    """Return one match with its line, as far as that is near."""
    begin = max(0, offset - _AROUND)
    content = os.pread(descriptor, offset - begin + length + _AROUND, begin)
    line = content.rfind(b"\n", 0, offset - begin) + 1
    end = content.find(b"\n", offset - begin + length)
    text = content[line : end if end >= 0 else len(content)].decode("utf-8", "replace")
    return {"offset": offset, "length": length, "line_offset": begin + line, "text": text}
