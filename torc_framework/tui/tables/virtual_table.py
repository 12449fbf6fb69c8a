"""A table of any number of rows: it asks for the pages that are in view, and redraws the lines that change."""

from collections import OrderedDict
from collections.abc import Callable, Hashable, Sequence
from typing import Any, ClassVar, Final

from attrs import frozen
from textual import events
from textual.binding import BindingType
from textual.geometry import Region
from textual.message import Message
from textual.strip import Strip
from textual.widget import Widget

from torc_framework.tui.tables.bindings import bound
from torc_framework.tui.tables.looks import Cell, fitted, line_strip
from torc_framework.tui.tables.workflow_list import PAGE_ROWS

KEPT_PAGES: Final = 6
"""Pages that are kept; those that were out of view for the longest time are dropped."""
_WHEEL_ROWS: Final = 3


@frozen
class TableColumn:
    """One column.

    Attributes:
        width: Cells of the terminal; of a growing column the least.
        grows: It takes what the others leave.
        is_right: Its texts end at the right.
        from_width: The column is shown in tables of this width and wider.
    """

    title: str
    width: int
    grows: bool = False
    is_right: bool = False
    from_width: int = 0


@frozen
class TableRow:
    """One row.

    Attributes:
        key: What the row is about: the cursor stays on it when rows move.
        cells: A text and a style for each column.
        record: The values that actions on the row need.
    """

    key: Hashable
    cells: tuple[Cell, ...]
    record: Any = None


Loader = Callable[[tuple[int, ...]], None]
"""Asks for pages by number; the answer comes to `VirtualTable.put`."""


class VirtualTable(Widget, can_focus=True):
    """The table. `show` begins another list, `put` adds pages of it, `reload` asks again for what is in view."""

    BINDINGS: ClassVar[list[BindingType]] = [
        bound("up,k", "move(-1)"),
        bound("down,j", "move(1)"),
        bound("pageup,ctrl+b", "page(-1)"),
        bound("pagedown,ctrl+f", "page(1)"),
        bound("home,g", "end(-1)"),
        bound("end,G", "end(1)"),
        bound("enter", "choose"),
    ]

    class Moved(Message):
        """The cursor is on another row."""

        def __init__(self, table: "VirtualTable") -> None:
            self.table = table
            super().__init__()

    class Chosen(Message):
        """Enter, or a click on the row under the cursor."""

        def __init__(self, table: "VirtualTable", row: TableRow) -> None:
            self.table, self.row = table, row
            super().__init__()

    def __init__(self, *, id: str, empty: str = "") -> None:  # noqa: A002 - the name that widgets have
        super().__init__(id=id)
        self._columns: Sequence[TableColumn] = ()
        self._load: Loader | None = None
        self._pages: OrderedDict[int, list[TableRow]] = OrderedDict()
        self._empty = empty
        self.total: int | None = None
        self.top, self.cursor = 0, 0
        self._key: Hashable = None
        self.generation = 0
        self._asked: tuple[int, ...] = ()
        self._head = ""
        self._deferred: Callable[[], None] | None = None
        self._drawn: dict[int, Strip] = {}

    # --- rows -------------------------------------------------------------------------------------

    def show(self, columns: Sequence[TableColumn], load: Loader | None, *, empty: str = "") -> None:
        """Begin another list; the first page is asked for."""
        self._columns, self._load, self._empty, self._head = columns, load, empty, ""
        self._pages.clear()
        self.total, self.top, self.cursor, self._key, self._asked, self._deferred = None, 0, 0, None, (), None
        self.generation += 1
        self.refresh()
        self._ask()

    def show_rows(self, rows: Sequence[TableRow], *, head: str = "", empty: str = "") -> None:
        """Show lines without columns, all of them; the cursor stays on its line if that is there."""
        self._columns, self._load, self._empty, self._head, self._deferred = (), None, empty, head, None
        self.generation += 1
        self._pages = OrderedDict(
            (start // PAGE_ROWS, list(rows[start : start + PAGE_ROWS])) for start in range(0, len(rows), PAGE_ROWS)
        )
        self.total = len(rows)
        found = next((place for place, row in enumerate(rows) if row.key == self._key), None)
        self._follow(found)
        self._refresh_changed()

    def put(self, generation: int, pages: dict[int, list[TableRow]], total: int) -> None:
        """Take pages of the list that this generation is."""
        if generation != self.generation:
            return
        self.total, self._asked = total, ()
        for number, rows in pages.items():
            self._pages[number] = rows
            self._pages.move_to_end(number)
        while len(self._pages) > KEPT_PAGES:
            self._pages.popitem(last=False)
        found = None
        for number, rows in pages.items():
            found = next((number * PAGE_ROWS + place for place, row in enumerate(rows) if row.key == self._key), found)
        self._follow(found)
        self._refresh_changed()
        self._ask()
        if self._deferred is not None and not self.is_loading:
            act, self._deferred = self._deferred, None
            act()

    def reload(self) -> None:
        """Ask again for the pages in view; others are asked for when they come into view."""
        if self._load is None:
            return
        wanted = self._pages_in_view()
        for number in [number for number in self._pages if number not in wanted]:
            del self._pages[number]
        self._load(tuple(wanted))

    def not_answered(self) -> None:
        """The request failed: the pages are asked for again at the next reload."""
        self._asked, self._deferred = (), None

    @property
    def is_loading(self) -> bool:
        """The row under the cursor is under way."""
        return self._load is not None and self.current is None and self.total != 0

    def when_row_is_here(self, act: Callable[[], None]) -> None:
        """Do something with the row under the cursor: now, or when the row has come, unless the cursor moves before."""
        if self.is_loading:
            self._deferred = act
        else:
            act()

    def give_up(self) -> bool:
        """Do nothing with a row that has not come yet; return whether something was to be done."""
        was_deferred, self._deferred = self._deferred is not None, None
        return was_deferred

    @property
    def current(self) -> TableRow | None:
        """The row under the cursor; None while it is under way, and in an empty list."""
        return self._row(self.cursor)

    def _row(self, index: int) -> TableRow | None:
        page = self._pages.get(index // PAGE_ROWS)
        place = index % PAGE_ROWS
        return page[place] if page is not None and place < len(page) else None

    def _follow(self, index: int | None) -> None:
        """Set the cursor to where its row is now, on the same line of the screen if possible."""
        last = max(0, (self.total or 0) - 1)
        line = self.cursor - self.top
        before = self._key
        self.cursor = min(self.cursor if index is None else index, last)
        self.top = max(0, min(self.cursor - line, self._last_top()))
        row = self.current
        self._key = row.key if row is not None else self._key
        if row is not None and self._key != before:
            self.post_message(self.Moved(self))

    # --- pages ------------------------------------------------------------------------------------

    @property
    def _height(self) -> int:
        return max(1, self.size.height - 1)

    def _last_top(self) -> int:
        return max(0, (self.total or 0) - self._height)

    def _pages_in_view(self) -> list[int]:
        last = max(self.top, min((self.total or 1), self.top + self._height) - 1)
        return [*range(self.top // PAGE_ROWS, last // PAGE_ROWS + 1)]

    def _ask(self) -> None:
        """Ask for pages in view that are missing, and for those before and behind them."""
        if self._load is None:
            return
        view = self._pages_in_view()
        near = [view[-1] + 1, view[0] - 1]
        most = 0 if self.total is None else max(0, self.total - 1) // PAGE_ROWS
        missing = [each for each in view if each not in self._pages]
        wanted = missing or [each for each in near if 0 <= each <= most and each not in self._pages][:1]
        if wanted and tuple(wanted) != self._asked and (self.total is None or self.total > 0):
            self._asked = tuple(wanted)
            self._load(self._asked)

    # --- the cursor -------------------------------------------------------------------------------

    def go_to(self, index: int) -> None:
        """Move to a row; its page is asked for if it is not here."""
        self._go(index)

    def _go(self, index: int) -> None:
        if not self.total:
            return
        before, top, self._deferred = self.cursor, self.top, None
        self.cursor = max(0, min(index, self.total - 1))
        if self.cursor < self.top:
            self.top = self.cursor
        elif self.cursor >= self.top + self._height:
            self.top = self.cursor - self._height + 1
        if self.top != top:
            self.refresh()
        elif before != self.cursor:
            self._refresh_rows(before, self.cursor)
        if before != self.cursor:
            row = self.current
            self._key = row.key if row is not None else None
            self.post_message(self.Moved(self))
        self._ask()

    def _refresh_changed(self) -> None:
        """Draw the lines anew that are not as they were drawn before: a list that is asked for again changes little."""
        width = self.size.width
        changed = [y for y in range(self.size.height) if self._line(y) != self._drawn.get(y)]
        if changed:
            self.refresh(*(Region(0, y, width, 1) for y in changed))

    def _refresh_rows(self, *indices: int) -> None:
        self.refresh(*(Region(0, index - self.top + 1, self.size.width, 1) for index in indices))

    def action_move(self, rows: int) -> None:
        """Move by rows."""
        self._go(self.cursor + rows)

    def action_page(self, pages: int) -> None:
        """Move by screens."""
        self._go(self.cursor + pages * self._height)

    def action_end(self, side: int) -> None:
        """Move to the first or the last row."""
        self._go(0 if side < 0 else (self.total or 1) - 1)

    def action_choose(self) -> None:
        """Choose the row under the cursor."""
        self.when_row_is_here(self._choose)

    def _choose(self) -> None:
        if (row := self.current) is not None:
            self.post_message(self.Chosen(self, row))

    def on_click(self, event: events.Click) -> None:
        """Move to the row that was clicked; choose it if the cursor was there."""
        index = self.top + event.y - 1
        if event.y < 1 or index >= (self.total or 0):
            return
        if index == self.cursor:
            self.action_choose()
        self._go(index)

    def on_mouse_scroll_down(self, event: events.MouseScrollDown) -> None:
        """Move down by a few rows."""
        event.stop()
        self._go(self.cursor + _WHEEL_ROWS)

    def on_mouse_scroll_up(self, event: events.MouseScrollUp) -> None:
        """Move up by a few rows."""
        event.stop()
        self._go(self.cursor - _WHEEL_ROWS)

    def on_resize(self, _event: events.Resize) -> None:
        """Keep the cursor in view."""
        if self.cursor >= self.top + self._height:
            self.top = self.cursor - self._height + 1
        self.top = min(self.top, self._last_top())
        self._ask()

    def on_focus(self, event: events.Focus) -> None:
        """Draw the cursor; the library would draw the whole table."""
        self._set_focused(event, is_focused=True)

    def on_blur(self, event: events.Blur) -> None:
        """Draw the row without the cursor's strength."""
        self._set_focused(event, is_focused=False)

    def _set_focused(self, event: events.Event, *, is_focused: bool) -> None:
        event.prevent_default()
        self.has_focus = is_focused
        self._refresh_rows(self.cursor)

    # --- drawing ----------------------------------------------------------------------------------

    def _widths(self, width: int) -> list[int]:
        shown = [column.width if width >= column.from_width else 0 for column in self._columns]
        spaces = sum(1 for each in shown if each)
        left = width - sum(shown) - spaces
        growing = [place for place, column in enumerate(self._columns) if column.grows and shown[place]]
        for count, place in enumerate(growing):
            shown[place] = max(1, shown[place] + left // len(growing) + (1 if count < left % len(growing) else 0))
        return shown

    def render_line(self, y: int) -> Strip:
        """Return one line."""
        self._drawn[y] = line = self._line(y)
        return line

    def _line(self, y: int) -> Strip:
        """Return one line: the head, a row, or nothing."""
        width = self.size.width
        widths = self._widths(width)
        if y == 0:
            titles = (
                fitted(column.title, each, is_right=column.is_right) + " "
                for column, each in zip(self._columns, widths, strict=True)
                if each
            )
            return line_strip([("".join(titles) or self._head, "bold" if self._columns else "dim")], width)
        index = self.top + y - 1
        if self.total is None:
            return line_strip([("…" if y == 1 else "", "dim")], width)
        if index >= self.total:
            return line_strip([(self._empty if index == 0 else "", "dim")], width)
        row = self._row(index)
        is_cursor = index == self.cursor and self.has_focus
        if row is None:
            return line_strip([("…", "dim")], width, is_cursor=is_cursor)
        cells: list[Cell] = [] if self._columns else [*row.cells]
        for column, each, (text, style) in zip(self._columns, widths, row.cells, strict=False):
            if each:
                cells += [(fitted(text, each, is_right=column.is_right), style), (" ", "")]
        if index == self.cursor and not self.has_focus:
            cells = [(text, "bold" if style == "" else style) for text, style in cells]
        return line_strip(cells, width, is_cursor=is_cursor)
