"""Tables of any number of rows: what is asked for, what is drawn, and where the cursor is when rows change."""

import asyncio
from collections.abc import Callable
from functools import partial
from typing import Any

import pytest
from textual.app import App, ComposeResult
from textual.strip import Strip

from torc_framework.tui.tables.virtual_table import KEPT_PAGES, TableColumn, TableRow, VirtualTable
from torc_framework.tui.tables.workflow_list import PAGE_ROWS

COLUMNS = (TableColumn("ID", 8, is_right=True), TableColumn("NAME", 10, grows=True))


class TableApp(App[None]):
    """A table over rows that are made when they are asked for."""

    def __init__(self, total: int) -> None:
        super().__init__(ansi_color=True)
        self.total, self.shift = total, 0
        self.asked: list[tuple[int, ...]] = []

    def compose(self) -> ComposeResult:
        """Make the table."""
        yield VirtualTable(id="table")

    def on_mount(self) -> None:
        """Show the rows."""
        self.table.focus()
        self.table.show(COLUMNS, self.load)

    @property
    def table(self) -> VirtualTable:
        """The table."""
        return self.query_one(VirtualTable)

    def load(self, pages: tuple[int, ...]) -> None:
        """Answer in the next turn, as a thread does."""
        self.asked.append(pages)
        found = {page: self.page(page) for page in pages}
        self.call_later(self.table.put, self.table.generation, found, self.total)

    def page(self, number: int) -> list[TableRow]:
        """Return the rows of a page; ``shift`` rows came in before them."""
        start = number * PAGE_ROWS - self.shift
        return [TableRow(key, ((str(key), ""), (f"job_{key}", "green"))) for key in range(start, start + PAGE_ROWS)]


def run(total: int, size: tuple[int, int], steps: Any) -> None:
    """Run steps on a table in a screen of this size."""

    async def whole() -> None:
        app = TableApp(total)
        async with app.run_test(size=size) as pilot:
            await pilot.pause()
            await steps(app, pilot)

    asyncio.run(whole())


def lines(app: TableApp) -> list[str]:
    """Return the lines of the table."""
    return [app.table.render_line(y).text.rstrip() for y in range(app.table.size.height)]


@pytest.mark.parametrize("size", [(80, 24), (200, 50), (20, 3)])
def test_a_million_rows(size: tuple[int, int]) -> None:
    """Only pages in view are asked for, and few are kept."""

    async def steps(app: TableApp, pilot: Any) -> None:
        await pilot.press("end")
        await pilot.pause()
        assert "job_999999" in lines(app)[-1]
        await pilot.press("home")
        for _ in range(3 * KEPT_PAGES):
            app.table.action_move(PAGE_ROWS)
            await pilot.pause()
        assert len(app.table._pages) <= KEPT_PAGES
        assert max(len(pages) for pages in app.asked) <= 2
        assert app.table.current is not None
        assert app.table.current.key == 3 * KEPT_PAGES * PAGE_ROWS

    run(1_000_000, size, steps)


def test_the_cursor_keeps_its_row() -> None:
    """Rows that come in before it move it, not what it is on."""

    async def steps(app: TableApp, pilot: Any) -> None:
        for _ in range(30):
            await pilot.press("down")
        line = lines(app).index(next(each for each in lines(app) if each.endswith("job_30")))
        app.shift, app.total = 7, 1007
        app.table.reload()
        await pilot.pause()
        assert app.table.current is not None
        assert app.table.current.key == 30
        assert app.table.cursor == 37
        assert lines(app)[line].endswith("job_30")

    run(1000, (80, 24), steps)


def test_a_list_that_shrinks() -> None:
    """The cursor stays in the list; an empty list says so."""

    async def steps(app: TableApp, pilot: Any) -> None:
        await pilot.press("end")
        await pilot.pause()
        app.total = 3
        app.table.put(app.table.generation, {0: app.page(0)[:3]}, 3)
        assert (app.table.cursor, app.table.top) == (2, 0)
        app.table.put(app.table.generation, {0: []}, 0)
        assert app.table.current is None
        await pilot.press("down", "end", "pageup", "enter")

    run(1000, (80, 24), steps)


def test_answers_about_another_list_are_dropped() -> None:
    """A late page of the list before does not come into this one."""

    async def steps(app: TableApp, pilot: Any) -> None:
        before = app.table.generation
        app.table.show(COLUMNS, lambda _: None)
        app.table.put(before, {0: app.page(0)}, 5)
        assert app.table.total is None
        assert lines(app)[1] == "…"

    run(1000, (80, 24), steps)


def test_wide_and_combining_characters_fit() -> None:
    """A name of wide characters keeps the columns."""

    async def steps(app: TableApp, pilot: Any) -> None:
        names = ["表" * 60, "e\u0301" * 60, "x" * 300]
        rows = [TableRow(name, (("1", ""), (name, ""))) for name in names]
        app.table.put(app.table.generation, {0: rows}, 3)
        for y in range(4):
            assert app.table.render_line(y).cell_length == 80

    run(1000, (80, 24), steps)


def test_a_key_draws_two_lines() -> None:
    """A step of the cursor redraws the line that it leaves and the line that it comes to, and nothing else."""

    async def steps(app: TableApp, pilot: Any) -> None:
        drawn: list[int] = []
        draw = app.table.render_line

        def counted(y: int) -> Strip:
            drawn.append(y)
            return draw(y)

        app.table.render_line = counted  # type: ignore[method-assign]  # counts calls
        await pilot.press("down")
        await pilot.pause()
        assert sorted(drawn) == [1, 2]

    run(1_000_000, (80, 24), steps)


def test_a_key_on_a_row_that_is_under_way() -> None:
    """What it does is done when the row has come; not if the cursor moves before, or the request fails."""

    async def steps(app: TableApp, pilot: Any) -> None:
        done: list[str] = []
        app.table.when_row_is_here(lambda: done.append("here"))
        assert done == ["here"]
        meanwhile: dict[str, Callable[[], None]] = {
            "came": lambda: None,
            "moved": lambda: app.table.action_move(-1),
            "failed": app.table.not_answered,
        }
        for name, happens in meanwhile.items():
            app.table.show(COLUMNS, app.load)
            await pilot.pause()
            app.table.action_end(1)
            assert app.table.is_loading
            app.table.when_row_is_here(partial(done.append, name))
            happens()
            await pilot.pause()
        assert done == ["here", "came"]

    run(1_000_000, (80, 24), steps)
