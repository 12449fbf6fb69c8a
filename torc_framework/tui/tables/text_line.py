"""Lines of the screen that show texts, and are redrawn when these change."""

from collections.abc import Sequence

from textual.geometry import Region
from textual.strip import Strip
from textual.widget import Widget

from torc_framework.text.widths import text_width
from torc_framework.tui.tables.looks import Cell, line_strip


def _changed_part(before: Sequence[Cell], after: Sequence[Cell]) -> tuple[int, int | None] | None:
    """Return the columns in which two lines differ, None as the end for all that follow; None if they are equal."""
    old = [(character, style) for text, style in before for character in text]
    new = [(character, style) for text, style in after for character in text]
    if old == new:
        return None
    differ = [place for place, pair in enumerate(zip(old, new, strict=False)) if pair[0] != pair[1]]
    first = differ[0] if differ else min(len(old), len(new))
    start = text_width("".join(character for character, _ in new[:first]))
    if len(old) != len(new) or not all(text_width(each[0]) == 1 for each in (*old, *new)):
        return start, None
    return start, differ[-1] + 1


class TextLines(Widget):
    """A few lines of texts."""

    def __init__(self, *, id: str) -> None:  # noqa: A002 - the name that widgets have
        super().__init__(id=id)
        self._lines: list[list[Cell]] = []

    def update(self, *lines: Sequence[Cell]) -> None:
        """Show these lines."""
        given = [list(line) for line in lines]
        before, self._lines = self._lines, given
        for y in range(max(len(before), len(given))):
            part = _changed_part(before[y] if y < len(before) else [], given[y] if y < len(given) else [])
            if part is not None:
                start, end = part
                end = self.size.width if end is None else end
                self.refresh(Region(start, y, max(0, end - start), 1))

    def render_line(self, y: int) -> Strip:
        """Return one line."""
        return line_strip(self._lines[y] if y < len(self._lines) else [], self.size.width)
