"""A pane that shows lines of text and scrolls through them, with a marked match."""

import textwrap
from collections.abc import Sequence
from typing import ClassVar, Final

from textual import events
from textual.binding import BindingType
from textual.message import Message
from textual.strip import Strip
from textual.widget import Widget

from torc_framework.tui.tables.bindings import bound
from torc_framework.tui.tables.looks import Cell, cut, line_strip

_STEP: Final = 20
"""Columns of one step to the side."""
_WHEEL_ROWS: Final = 3
_FRAMES: Final = ("╭", "│", "├", "╰")
"""Characters with which rows of drawn tables begin."""
Line = str | Sequence[Cell]
"""One line: a text, or texts with styles."""


def wrapped(line: str, width: int) -> list[str]:
    """Return a line in as many lines as it takes, with its indentation; a row of a drawn table stays one line."""
    if len(line) <= width or line[:1] in _FRAMES:
        return [line]
    indent = " " * min(width // 2, len(line) - len(line.lstrip(" ")))
    return textwrap.wrap(line, width, subsequent_indent=indent, break_on_hyphens=False) or [""]


class LinesPane(Widget, can_focus=True):
    """Lines of text; `show` takes others."""

    BINDINGS: ClassVar[list[BindingType]] = [
        bound("up,k", "scroll(-1)"),
        bound("down,j", "scroll(1)"),
        bound("pageup", "page(-1)"),
        bound("pagedown,space", "page(1)"),
        bound("left", "side(-1)"),
        bound("right", "side(1)"),
        bound("home", "edge(-1)"),
        bound("end", "edge(1)"),
    ]

    class Edge(Message):
        """The reader went beyond the first or the last line.

        Attributes:
            side: -1 for the first line, 1 for the last.
        """

        def __init__(self, side: int) -> None:
            self.side = side
            super().__init__()

    def __init__(self, *, id: str) -> None:  # noqa: A002 - the name that widgets have
        super().__init__(id=id)
        self.lines: list[Line] = []
        self.top, self.left = 0, 0
        self.mark: tuple[int, int, int] | None = None

    def show(self, lines: Sequence[Line], *, top: int | None = None, mark: tuple[int, int, int] | None = None) -> None:
        """Show other lines.

        Args:
            lines: All lines.
            top: The first one on the screen; by default that of before.
            mark: Line, first character and length of what is marked.
        """
        self.lines, self.mark = list(lines), mark
        self.top = max(0, min(self.top if top is None else top, self.last_top))
        if mark is not None:
            width = max(1, self.size.width - 1)
            self.left = 0 if mark[1] + mark[2] < width else max(0, mark[1] - width // 2)
        self.refresh()

    @property
    def last_top(self) -> int:
        """The first line on the screen when the last one is seen."""
        return max(0, len(self.lines) - max(1, self.size.height))

    @property
    def is_at_end(self) -> bool:
        """Whether the last line is seen."""
        return self.top >= self.last_top

    def go(self, top: int) -> None:
        """Make a line the first one on the screen."""
        wanted = max(0, min(top, self.last_top))
        if wanted != self.top:
            self.top = wanted
            self.refresh()
        if top < 0:
            self.post_message(self.Edge(-1))
        elif top > self.last_top:
            self.post_message(self.Edge(1))

    def action_scroll(self, lines: int) -> None:
        """Scroll by lines."""
        self.go(self.top + lines)

    def action_page(self, pages: int) -> None:
        """Scroll by 20 lines, or by a screen if that is smaller."""
        self.go(self.top + pages * min(20, max(1, self.size.height)))

    def action_edge(self, side: int) -> None:
        """Go to the first or the last line that is loaded."""
        self.go(0 if side < 0 else self.last_top)

    def action_side(self, side: int) -> None:
        """Scroll to the side."""
        self.left = max(0, self.left + side * _STEP)
        self.refresh()

    def on_resize(self, _event: events.Resize) -> None:
        """Keep to the lines that there are."""
        self.top = min(self.top, self.last_top)

    def on_mouse_scroll_down(self, event: events.MouseScrollDown) -> None:
        """Scroll down."""
        event.stop()
        self.go(self.top + _WHEEL_ROWS)

    def on_mouse_scroll_up(self, event: events.MouseScrollUp) -> None:
        """Scroll up."""
        event.stop()
        self.go(self.top - _WHEEL_ROWS)

    def render_line(self, y: int) -> Strip:
        """Return one line."""
        index, width = self.top + y, self.size.width
        if index >= len(self.lines):
            return line_strip([("~" if y and self.lines else "", "dim")], width)
        line = self.lines[index]
        if not isinstance(line, str):
            return line_strip(cut(line, self.left, width), width)
        text = line[self.left : self.left + width]
        if self.mark is None or self.mark[0] != index:
            return line_strip([(text, "")], width)
        start = max(0, self.mark[1] - self.left)
        end = max(start, self.mark[1] + self.mark[2] - self.left)
        return line_strip([(text[:start], ""), (text[start:end], "reverse"), (text[end:], "")], width)
