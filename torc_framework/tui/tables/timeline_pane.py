"""The attempts of a workflow over time: one line for each row of a runner, with a cursor on one attempt."""

from collections import defaultdict
from collections.abc import Sequence
from datetime import datetime
from typing import ClassVar, Final

from attrs import frozen
from textual import events
from textual.binding import BindingType
from textual.message import Message
from textual.strip import Strip
from textual.widget import Widget

from torc_framework.models.workflow_views import TimelineView
from torc_framework.text.status_text import STATUS_LOOKS
from torc_framework.text.terminal import one_line
from torc_framework.tui.tables.bindings import bound
from torc_framework.tui.tables.looks import Cell, fitted, glyph_of, has_unicode, line_strip

LABEL: Final = 18
"""Columns of a lane's name."""
_TICK: Final = 16
"""Columns between two times of the axis."""


@frozen
class TimelineBar:
    """One bar: an attempt, or several narrow ones.

    Attributes:
        lane: Position of the lane in the view.
        row: Row in the lane.
        start_s: Begin, seconds since the epoch.
        end_s: End, or the present time.
        count: Attempts that it stands for.
        job_id: The first of their jobs.
    """

    lane: int
    row: int
    start_s: float
    end_s: float
    status: str
    count: int
    job_id: int


def bars_of(view: TimelineView) -> list[TimelineBar]:
    """Return the bars of a view."""
    bars = view.bars
    columns = zip(bars.lane, bars.row, bars.start, bars.end, bars.status, bars.count, bars.job_id, strict=True)
    return [
        TimelineBar(lane, row, view.from_s + start, view.from_s + end, view.statuses[status], count, job_id)
        for lane, row, start, end, status, count, job_id in columns
    ]


class TimelinePane(Widget, can_focus=True):
    """The drawing. `show` takes a view; the cursor stays on its attempt, or goes to the nearest one."""

    BINDINGS: ClassVar[list[BindingType]] = [
        bound("up,k", "row(-1)"),
        bound("down,j", "row(1)"),
        bound("pageup", "row(-10)"),
        bound("pagedown", "row(10)"),
        bound("left", "bar(-1)"),
        bound("right", "bar(1)"),
        bound("enter", "choose"),
    ]

    class BarReached(Message):
        """The cursor is on another attempt."""

    class WindowLeft(Message):
        """The reader went beyond the first or the last attempt of a row.

        Attributes:
            side: -1 for the first, 1 for the last.
        """

        def __init__(self, side: int) -> None:
            self.side = side
            super().__init__()

    class BarChosen(Message):
        """Enter, or a click on the attempt under the cursor."""

        def __init__(self, bar: TimelineBar) -> None:
            self.bar = bar
            super().__init__()

    def __init__(self, *, id: str) -> None:  # noqa: A002 - the name that widgets have
        super().__init__(id=id)
        self.view: TimelineView | None = None
        self.top = 0
        self.cursor: TimelineBar | None = None
        self._rows: list[tuple[int, int]] = []
        self._bars: dict[tuple[int, int], list[TimelineBar]] = {}
        self._empty = "…"

    @property
    def columns(self) -> int:
        """Columns of the drawing."""
        return max(10, self.size.width - LABEL - 1)

    # --- what is shown ----------------------------------------------------------------------------

    def show(self, view: TimelineView) -> None:
        """Show another window, or the same one as it is now."""
        self.view, self._empty = view, "Nothing has run yet: x runs the workflow here."
        self._rows = [(place, row) for place, lane in enumerate(view.lanes) for row in range(max(1, lane.rows))]
        found: dict[tuple[int, int], list[TimelineBar]] = defaultdict(list)
        for bar in bars_of(view):
            found[bar.lane, bar.row].append(bar)
        self._bars = dict(found)
        before = self.cursor
        every = [bar for bars in self._bars.values() for bar in bars]
        if before is not None and every:
            same = [bar for bar in every if bar.job_id == before.job_id]
            self.cursor = min(
                same or every, key=lambda bar: (bar.lane != before.lane, abs(bar.start_s - before.start_s))
            )
        else:
            self.cursor = every[0] if every else None
        self._keep_in_view()
        self.post_message(self.BarReached())
        self.refresh()

    @property
    def _height(self) -> int:
        return max(1, self.size.height - 1)

    def _keep_in_view(self) -> None:
        place = self._row_place()
        if place < self.top:
            self.top = place
        elif place >= self.top + self._height:
            self.top = place - self._height + 1
        self.top = max(0, min(self.top, len(self._rows) - self._height))

    def _row_place(self) -> int:
        if self.cursor is None or (self.cursor.lane, self.cursor.row) not in self._rows:
            return 0
        return self._rows.index((self.cursor.lane, self.cursor.row))

    # --- the cursor -------------------------------------------------------------------------------

    def _go(self, bar: TimelineBar) -> None:
        self.cursor = bar
        self._keep_in_view()
        self.post_message(self.BarReached())
        self.refresh()

    def action_row(self, rows: int) -> None:
        """Move to the nearest attempt of another row."""
        if self.cursor is None:
            return
        step, place = (1 if rows > 0 else -1), self._row_place()
        wanted = max(0, min(place + rows, len(self._rows) - 1))
        while 0 <= wanted < len(self._rows) and wanted != place:
            if bars := self._bars.get(self._rows[wanted]):
                self._go(min(bars, key=lambda bar: _distance(bar, self.cursor)))
                return
            wanted += step

    def action_bar(self, side: int) -> None:
        """Move to the next or the previous attempt of the row."""
        if self.cursor is None:
            self.post_message(self.WindowLeft(side))
            return
        bars = self._bars[self.cursor.lane, self.cursor.row]
        place = bars.index(self.cursor) + side
        if 0 <= place < len(bars):
            self._go(bars[place])
        else:
            self.post_message(self.WindowLeft(side))

    def action_choose(self) -> None:
        """Choose the attempt under the cursor."""
        if self.cursor is not None:
            self.post_message(self.BarChosen(self.cursor))

    def on_click(self, event: events.Click) -> None:
        """Move to the attempt that was clicked; choose it if the cursor was there."""
        place = self.top + event.y - 1
        if self.view is None or event.y < 1 or place >= len(self._rows):
            return
        bars = self._bars.get(self._rows[place])
        if not bars:
            return
        at = self._time_of(event.x - LABEL - 1)
        bar = min(bars, key=lambda each: max(each.start_s - at, at - each.end_s, 0.0))
        if bar == self.cursor:
            self.action_choose()
        else:
            self._go(bar)

    def on_mouse_scroll_down(self, event: events.MouseScrollDown) -> None:
        """Scroll down."""
        event.stop()
        self.action_row(3)

    def on_mouse_scroll_up(self, event: events.MouseScrollUp) -> None:
        """Scroll up."""
        event.stop()
        self.action_row(-3)

    # --- drawing ----------------------------------------------------------------------------------

    def _time_of(self, column: int) -> float:
        assert self.view is not None
        return self.view.from_s + (column + 0.5) * (self.view.to_s - self.view.from_s) / self.columns

    def _columns_of(self, bar: TimelineBar) -> tuple[int, int]:
        """Return the first column of a bar and the one behind its last; a bar has one column at least."""
        assert self.view is not None
        scale = self.columns / max(self.view.to_s - self.view.from_s, 1e-6)
        first = max(0, min(self.columns - 1, int((bar.start_s - self.view.from_s) * scale)))
        last = min(self.columns, round((bar.end_s - self.view.from_s) * scale))
        return first, max(first + 1, last)

    def render_line(self, y: int) -> Strip:
        """Return one line: the times, or a row of a lane."""
        width, view = self.size.width, self.view
        if view is None or not self._rows:
            return line_strip([(self._empty if y == 1 else "", "dim")], width)
        if y == 0:
            return line_strip([(" " * (LABEL + 1), ""), (self._axis(), "dim")], width)
        place = self.top + y - 1
        if place >= len(self._rows):
            return line_strip([], width)
        lane, row = self._rows[place]
        is_first = row == 0 or y == 1
        label = f"{one_line(view.lanes[lane].label)} ({view.lanes[lane].attempts})" if is_first else ""
        cells: list[Cell] = [(f"{fitted(label, LABEL)} ", "" if is_first else "dim")]
        return line_strip([*cells, *self._row_cells(self._bars.get((lane, row), ()))], width)

    def _row_cells(self, bars: Sequence[TimelineBar]) -> list[Cell]:
        columns: list[Cell] = [(" ", "")] * self.columns
        marked: tuple[int, int] | None = None
        line = "━" if has_unicode() else "-"
        for bar in bars:
            look = STATUS_LOOKS.get(bar.status)
            first, last = self._columns_of(bar)
            if bar == self.cursor:
                marked = (first, last)
            style = look.colour if look else ""
            columns[first] = (glyph_of(look) if look else "?", style)
            for column in range(first + 1, last):
                columns[column] = (line, style)
        if marked is not None:
            for column in range(*marked):
                columns[column] = (columns[column][0], "reverse")
        return columns

    def _axis(self) -> str:
        assert self.view is not None
        span = self.view.to_s - self.view.from_s
        texts = []
        for column in range(0, self.columns - 8, _TICK):
            moment = datetime.fromtimestamp(self.view.from_s + span * column / self.columns).astimezone()
            texts.append(fitted("│" + moment.strftime("%H:%M:%S" if span < 86_400 else "%m-%d %H:%M"), _TICK))
        return "".join(texts)


def _distance(bar: TimelineBar, other: TimelineBar | None) -> float:
    """Return the seconds between two bars; 0 if they overlap."""
    return 0.0 if other is None else max(bar.start_s - other.end_s, other.start_s - bar.end_s, 0.0)
