"""Widths of texts in columns of a terminal, and shortening of texts to a width.

Wide characters (East Asian, emoji) take two columns, combining characters none.
"""

import unicodedata
from functools import cache
from typing import Final

from torc_framework.text.colours import unpainted

ELLIPSIS: Final = "…"


def text_width(text: str) -> int:
    """Return the number of columns that a text takes; colours take none."""
    if text.isascii() and "\x1b" not in text:
        return len(text)
    return sum(map(_character_width, unpainted(text)))


@cache
def _character_width(character: str) -> int:
    if unicodedata.combining(character) or unicodedata.category(character) in ("Mn", "Me", "Cf"):
        return 0
    return 2 if unicodedata.east_asian_width(character) in ("W", "F") else 1


def padded_text(text: str, width: int, *, right: bool = False) -> str:
    """Return a text with spaces up to a width; with ``right`` the spaces come first."""
    spaces = " " * max(0, width - text_width(text))
    return spaces + text if right else text + spaces


def shortened(text: str, width: int, *, ellipsis: str = ELLIPSIS, at_end: bool = False) -> str:
    """Return a text of at most a width: without its middle, or with ``at_end`` without its end."""
    if text_width(text) <= width:
        return text
    room = width - text_width(ellipsis)
    if room <= 0:
        return _head(text, width)
    tail = 0 if at_end else room // 2
    return _head(text, room - tail) + ellipsis + _head(text[::-1], tail)[::-1]


def _head(text: str, width: int) -> str:
    """Return the beginning of a text that fits a width."""
    used = 0
    for position, character in enumerate(text):
        used += _character_width(character)
        if used > width:
            return text[:position]
    return text
