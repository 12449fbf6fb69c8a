"""Styles of texts on the screen, from the colours and glyphs of the command line."""

import sys
from collections.abc import Iterable, Sequence
from functools import cache
from typing import Final

from rich.segment import Segment
from rich.style import Style
from textual.strip import Strip

from torc_framework.text.colours import uses_unicode
from torc_framework.text.headline import WORKFLOW_LOOKS
from torc_framework.text.status_text import STATUS_LOOKS, StatusLook
from torc_framework.text.widths import shortened, text_width

Cell = tuple[str, str]
"""A text and the name of its style in `STYLES`."""
_PLAIN: Final = Style(color="default", bgcolor="default")
STYLES: Final = {
    "": _PLAIN,
    "bold": _PLAIN + Style(bold=True),
    "dim": _PLAIN + Style(dim=True),
    "reverse": _PLAIN + Style(reverse=True),
    "marked": _PLAIN + Style(underline=True, bold=True),
    **{name: _PLAIN + Style(color=name) for name in ("red", "green", "yellow", "blue", "magenta", "cyan")},
}
"""Styles by name. Each has a colour and a background, because filters of the terminal library read both."""
_CURSOR: Final = Style(reverse=True)


def segments(cells: Iterable[Cell], *, is_cursor: bool = False) -> list[Segment]:
    """Return texts as segments; those of the row under the cursor are reversed."""
    more = _CURSOR if is_cursor else Style.null()
    return [Segment(text, STYLES[style] + more) for text, style in cells if text]


def line_strip(cells: Sequence[Cell], width: int, *, is_cursor: bool = False) -> Strip:
    """Return one line of the screen, cut or filled to a width."""
    style = STYLES[""] + (_CURSOR if is_cursor else Style.null())
    return Strip(segments(cells, is_cursor=is_cursor)).simplify().adjust_cell_length(width, style)


def fitted(text: str, width: int, *, is_right: bool = False) -> str:
    """Return a text of exactly this width: without its middle, or with spaces."""
    if text_width(text) > width:
        text = shortened(text, width)
    spaces = " " * (width - text_width(text))
    return spaces + text if is_right else text + spaces


@cache
def has_unicode() -> bool:
    """Return whether the terminal takes characters beyond ASCII."""
    return uses_unicode(sys.__stdout__)


def glyph_of(look: StatusLook) -> str:
    """Return the glyph of a status in the characters that the terminal takes."""
    return look.glyph if has_unicode() else look.ascii


def cut(cells: Sequence[Cell], left: int, width: int) -> list[Cell]:
    """Return the part of a line that begins after ``left`` characters and has at most ``width``."""
    found: list[Cell] = []
    at = 0
    for text, style in cells:
        part = text[max(0, left - at) : max(0, left + width - at)]
        if part:
            found.append((part, style))
        at += len(text)
    return found


def status_cell(label: str, *, with_word: bool = True) -> Cell:
    """Return the status of a job as glyph and word."""
    look = STATUS_LOOKS.get(label)
    if look is None:
        return (label, "")
    return (f"{glyph_of(look)} {look.word}" if with_word else glyph_of(look), look.colour)


def state_cell(state: str) -> Cell:
    """Return the state of a workflow as glyph and word."""
    look = WORKFLOW_LOOKS[state]
    return f"{glyph_of(look)} {look.word}", look.colour


def bar_cells(counts: dict[str, int], width: int) -> list[Cell]:
    """Return jobs by status as a bar of glyphs; a status with jobs has one at least."""
    total, left, cells = sum(counts.values()), width, []
    present = [(label, counts[label]) for label in STATUS_LOOKS if counts.get(label)]
    for place, (label, count) in enumerate(sorted(present, key=lambda each: each[0] != "completed")):
        room = left - (len(present) - place - 1)
        length = room if place == len(present) - 1 else max(1, min(room, round(count * width / total)))
        look = STATUS_LOOKS[label]
        cells.append((glyph_of(look) * length, look.colour))
        left -= length
    return cells or [(" " * width, "")]
