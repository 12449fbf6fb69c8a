"""Escaping of control characters in texts for a terminal, because names and logs may come from other people.

Of the control characters only newline and tab reach a terminal. Other C0 and C1 controls, characters that change the
direction of text and invisible characters are written as ``\\uXXXX``. In JSON and TOML that is the same text, so JSON
output stays exact. `CleanedStream` escapes everything that a program writes to it; `one_line` escapes newlines too.
Only the colours of `torc_framework.text.colours` pass.
"""

import re
import sys
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from functools import lru_cache
from typing import Any, Final, TextIO, cast

from torc_framework.text.colours import PAINT, terminal_sequences

_CONTROLS: Final = bytes({*range(0x20), 0x7F} - {0x09, 0x0A})
_UNSAFE: Final = re.compile(
    f"(?P<paint>{PAINT.pattern})|"
    "[\x00-\x08\x0b-\x1f\x7f-\x9f"
    "\u00ad\u061c\u180e\u200b\u200e\u200f\u2028-\u202e\u2060-\u206f\ufeff\ufff9-\ufffb"
    "\U000e0000-\U000e007f]"
)
"""C0 except tab and newline, DEL, C1; soft hyphen, marks and overrides of direction, invisible characters and tags."""


def cleaned(text: str) -> str:
    """Return a text in which the characters that a terminal interprets or hides are written as ``\\uXXXX``.

    Colours of `torc_framework.text.colours.painted` remain.
    """
    if text.isascii():
        content = text.encode("ascii")
        if len(content.translate(None, _CONTROLS)) == len(content):
            return text
    return _UNSAFE.sub(_escaped, text)


def _escaped(match: re.Match[str]) -> str:
    if match["paint"]:
        return match[0]
    number = ord(match[0])
    if number < 0x10000:
        return f"\\u{number:04x}"
    number -= 0x10000
    return f"\\u{0xD800 + (number >> 10):04x}\\u{0xDC00 + (number & 0x3FF):04x}"


def one_line(text: object) -> str:
    """Return a cleaned text in which newlines are written as ``\\n``."""
    return cleaned(str(text)).replace("\n", "\\n")


def print_line(text: object = "") -> None:
    """Print a text as one cleaned line."""
    print(one_line(text))


class CleanedStream:
    """A text stream that cleans everything written to it.

    Attributes:
        raw: The underlying stream, for the program's own control sequences.
    """

    def __init__(self, raw: TextIO) -> None:
        self.raw = raw

    def write(self, text: str) -> int:
        """Write a text, cleaned."""
        self.raw.write(terminal_sequences(cleaned(text)))
        return len(text)

    def writelines(self, lines: Iterable[str]) -> None:
        """Write texts, cleaned."""
        for line in lines:
            self.write(line)

    def __getattr__(self, name: str) -> Any:
        return getattr(self.raw, name)


def raw_stream(stream: TextIO) -> TextIO:
    """Return the stream for the program's own control sequences."""
    return stream.raw if isinstance(stream, CleanedStream) else stream


@lru_cache(maxsize=8)
def _cleaned_stream(stream: TextIO) -> TextIO:
    """Return the cleaned stream of a stream.

    The cache keeps it: CPython 3.11's `print` holds no reference to `sys.stdout`, so a stream that is freed when it is
    replaced, while another thread prints to it, ends the process with a memory fault.
    """
    return cast("TextIO", CleanedStream(stream))


@contextmanager
def cleaned_output() -> Iterator[None]:
    """Replace standard output and standard error by a `CleanedStream` each while the block runs."""
    before = sys.stdout, sys.stderr
    sys.stdout, sys.stderr = map(_cleaned_stream, before)
    try:
        yield
    finally:
        sys.stdout, sys.stderr = before
