"""The main screen: workflows, and the details of the one under the cursor in tabs."""

from typing import TYPE_CHECKING, Any, ClassVar, Final, cast
from urllib.parse import urlsplit

from textual import events
from textual.app import ComposeResult
from textual.binding import BindingType
from textual.containers import Container
from textual.reactive import Reactive
from textual.screen import Screen
from textual.timer import Timer
from textual.widget import Widget

from torc_framework.models.progress import WorkflowOverview
from torc_framework.models.workflow_views import GraphView
from torc_framework.monitoring.command_children import command_text
from torc_framework.text.quantities import count_text
from torc_framework.text.terminal import cleaned, one_line
from torc_framework.text.widths import shortened, text_width
from torc_framework.tui.tables.bindings import bound
from torc_framework.tui.tables.graph_rows import graph_head, graph_rows
from torc_framework.tui.tables.list_query import ListQuery
from torc_framework.tui.tables.looks import Cell, state_cell
from torc_framework.tui.tables.overview_rows import WorkflowAnswers, headline_lines, overview_rows, read_answers
from torc_framework.tui.tables.record_tables import RECORD_TABLES, RecordTable
from torc_framework.tui.tables.text_line import TextLines
from torc_framework.tui.tables.virtual_table import TableColumn, TableRow, VirtualTable
from torc_framework.tui.tables.workflow_list import PAGE_ROWS
from torc_framework.tui.work.host import ScreenHost
from torc_framework.tui.work.key_table import KEY_ACTIONS, key_for, why_not

if TYPE_CHECKING:
    from torc_framework.client import TorcClient

OVERVIEW: Final = "overview"
DAG: Final = "dag"
TABS: Final = {
    OVERVIEW: "Overview",
    **{name: RECORD_TABLES[name].title for name in ("jobs", "files", "events", "results", "allocations", "runners")},
    DAG: "DAG",
}
"""The tabs in their order."""
_TAB_FORMS: Final[tuple[tuple[bool, dict[str, str], str], ...]] = (
    (True, {}, " "),
    (False, {"allocations": "Sched. Nodes"}, " "),
    (False, {"allocations": "Nodes"}, ""),
)
"""Forms of the line of tabs, from wide to narrow: with numbers or not, shorter titles, the space around each."""
WIDE: Final = 140
"""Width from which the workflows stand beside the details."""
_SETTLE_S: Final = 0.12
"""Seconds for which the cursor rests on a workflow before its details are asked for."""
_REFRESH_S: Final = 1.0
"""Least seconds between two refreshes because of events: a page of a table is 6 KB for the terminal."""
_LEAST_FILTER: Final = 12
"""Columns of a filter in the footer, in which half the width is for it."""
_HINTS_FIRST: Final = "? q : / f l F T W p e v x i C R d n"
"""The order of keys in the footer: a narrow one shows the first of them."""
_WORKFLOW_COLUMNS: Final = (
    TableColumn("ID", 5, is_right=True),
    TableColumn("NAME", 10, grows=True),
    TableColumn("STATE", 16),
    TableColumn("DONE", 13, is_right=True, from_width=46),
    TableColumn("USER", 10, from_width=70),
    TableColumn("DESCRIPTION", 16, grows=True, from_width=90),
)


def workflow_row(found: WorkflowOverview) -> TableRow:
    """Return a workflow as a row of the list."""
    workflow = found.workflow
    done = f"{count_text(found.counts.get('completed', 0))}/{count_text(found.total)}"
    cells: tuple[Cell, ...] = (
        (str(found.id), ""),
        (one_line(workflow.name), ""),
        state_cell("archived" if found.is_archived else found.state),
        (done, ""),
        (one_line(workflow.user or ""), "dim"),
        (one_line(workflow.description or ""), "dim"),
    )
    return TableRow(found.id, cells, found)


class MainScreen(Screen[None]):
    """Workflows, tabs and lists. What keys do besides moving is in the app."""

    focused: Reactive[Widget | None] = Reactive(None, repaint=False)
    """As in the library, which draws the whole screen anew at each change."""
    BINDINGS: ClassVar[list[BindingType]] = [
        *(bound(each.keys, f"app.{each.action}") for each in KEY_ACTIONS if each.action),
        *(bound(str(place), f"app.tab_at({place})") for place in range(1, len(TABS) + 1)),
    ]

    def __init__(self) -> None:
        super().__init__()
        self.tab = OVERVIEW
        self.queries: dict[str, ListQuery] = {}
        self.answers: WorkflowAnswers | None = None
        self.graph_part: dict[str, Any] = {}
        self._workflow: WorkflowOverview | None = None
        self._message: Cell = ("", "")
        self._settling: Timer | None = None
        self._refreshing: Timer | None = None

    @property
    def owner(self) -> ScreenHost:
        """The app."""
        return cast(ScreenHost, self.app)

    @property
    def workflows(self) -> VirtualTable:
        """The list of workflows."""
        return self.query_one("#workflows", VirtualTable)

    @property
    def details(self) -> VirtualTable:
        """The list of the present tab."""
        return self.query_one("#details", VirtualTable)

    @property
    def workflow(self) -> WorkflowOverview | None:
        """The workflow that is shown."""
        return self._workflow

    @property
    def record_table(self) -> RecordTable | None:
        """The list of the present tab; None for the overview and the graph."""
        return RECORD_TABLES.get(self.tab)

    def compose(self) -> ComposeResult:
        """Make the widgets."""
        yield TextLines(id="header")
        with Container(id="body"):
            yield VirtualTable(id="workflows")
            with Container(id="side"):
                yield TextLines(id="headline")
                yield TextLines(id="tabs")
                yield VirtualTable(id="details")
        yield TextLines(id="footer")

    def on_mount(self) -> None:
        """Ask for the workflows."""
        self.workflows.focus()
        self.show_header()
        self._show_tabs()
        self.show_footer()
        self.load_workflows()

    def on_resize(self, event: events.Resize) -> None:
        """Choose the layout for this width."""
        self.set_class(event.size.width >= WIDE, "wide")
        self.show_header()
        self.call_after_refresh(self._show_tabs)
        self.show_footer()
        if self.answers is not None:
            self.call_after_refresh(self._show_answers, self.answers)

    def on_screen_suspend(self) -> None:
        """Do nothing under another screen with a row that comes late."""
        self.details.give_up()

    # --- workflows --------------------------------------------------------------------------------

    def load_workflows(self) -> None:
        """Ask for the list anew, from its beginning."""
        user, own = self.owner.setup.user, self.owner.setup.own_user
        whose = "" if user in (None, own) else f" of {one_line(user)}"
        empty = f"No workflows{whose} yet: n makes one from a spec file; a shows those of all users."
        self.workflows.show(_WORKFLOW_COLUMNS, self._load_workflows, empty=empty)

    def reload_workflows(self) -> None:
        """Ask for the list anew; the cursor stays on its workflow."""
        self.workflows.reload()

    def _load_workflows(self, pages: tuple[int, ...]) -> None:
        setup, generation = self.owner.setup, self.workflows.generation

        def read(client: "TorcClient") -> tuple[dict[int, list[TableRow]], int]:
            found, total = {}, 0
            for page in pages:
                items, total = setup.workflows(client, page)
                found[page] = [workflow_row(each) for each in items]
            return found, total

        def take(answer: tuple[dict[int, list[TableRow]], int]) -> None:
            self.workflows.put(generation, *answer)
            if (place := setup.take_wanted_place()) is not None:
                self.workflows.go_to(place)
                self.show_header()
            for row in (row for rows in answer[0].values() for row in rows):
                if self._workflow is not None and row.key == self._workflow.id:
                    self._workflow = row.record
                    self.show_footer()
            if not answer[1]:
                self._choose(None)
            elif self._workflow is None:
                self._settled()

        self.owner.ask("workflows", read, take, self.workflows.not_answered)

    def on_virtual_table_moved(self, event: VirtualTable.Moved) -> None:
        """Show the workflow on which the cursor rests."""
        if event.table is self.details:
            self.show_footer()
        elif event.table is self.workflows:
            if self._settling is not None:
                self._settling.stop()
            self._settling = self.set_timer(_SETTLE_S, self._settled)

    def _settled(self) -> None:
        row = self.workflows.current
        if row is not None:
            self._choose(row.record)

    def _choose(self, found: WorkflowOverview | None) -> None:
        before, self._workflow = self._workflow, found
        if found is not None and before is not None and found.id == before.id:
            return
        self.answers, self.graph_part = None, {}
        self.queries.clear()
        self.owner.follow(None if found is None else found.id)
        self.query_one("#headline", TextLines).update()
        self.show_tab(self.tab)
        if found is not None:
            self._load_answers()

    # --- tabs -------------------------------------------------------------------------------------

    def step_back(self) -> None:
        """Give up what waits for its row; else clear the filter; without one go back to the workflows."""
        if self.details.give_up():
            return
        if self.queries.pop(self.tab, None):
            self.show_tab(self.tab)
        elif self.tab == DAG and self.graph_part:
            self.show_graph()
        else:
            self.workflows.focus()

    def show_tab(self, name: str) -> None:
        """Show a tab, from its beginning."""
        self.tab = name
        self._show_tabs()
        table = self.record_table
        if self._workflow is None:
            self.details.show_rows([])
        elif table is not None:
            self.details.show(table.columns, self._load_records, empty=table.empty)
        elif name == DAG:
            self.details.show_rows([], head="…")
            self._load_graph()
        elif self.answers is not None:
            self._show_overview(self.answers)
        else:
            self.details.show_rows([], head="…")
        self.show_footer()

    def on_click(self, event: events.Click) -> None:
        """Show the tab that was clicked."""
        if event.widget is not None and event.widget.id == "tabs":
            place = 0
            for (text, _), name in zip(self._tab_cells(), TABS, strict=True):
                if place <= event.x < place + len(text):
                    self.show_tab(name)
                    self.details.focus()
                place += len(text) + 1 if text else 0

    def _tab_cells(self) -> list[Cell]:
        """Return the tabs as texts: shorter ones where the width takes it, else only the present tab."""
        width = self.query_one("#tabs", TextLines).size.width or self.size.width
        for numbered, titles, room in _TAB_FORMS:
            texts = [
                f"{room}{place} {titles.get(name, title)}{room}"
                if numbered
                else f"{room}{titles.get(name, title)}{room}"
                for place, (name, title) in enumerate(TABS.items(), 1)
            ]
            if sum(len(text) + 1 for text in texts) - 1 <= width:
                break
        else:
            texts = [
                f" {place} of {len(TABS)}: {title} " if name == self.tab else ""
                for place, (name, title) in enumerate(TABS.items(), 1)
            ]
        return [(text, "reverse" if name == self.tab else "") for text, name in zip(texts, TABS, strict=True)]

    def _show_tabs(self) -> None:
        cells = [cell for tab in self._tab_cells() for cell in (tab, (" " if tab[0] else "", ""))]
        self.query_one("#tabs", TextLines).update(cells)

    def _load_records(self, pages: tuple[int, ...]) -> None:
        table, found, generation = self.record_table, self._workflow, self.details.generation
        if table is None or found is None:
            return
        query = self.queries.get(self.tab, ListQuery())

        def read(client: "TorcClient") -> tuple[dict[int, list[TableRow]], int]:
            rows, total = {}, 0
            for page in pages:
                rows[page], total = table.read(client, found.id, query, page * PAGE_ROWS)
            return rows, total

        def take(answer: tuple[dict[int, list[TableRow]], int]) -> None:
            self.details.put(generation, *answer)
            self.show_footer()

        self.owner.ask("details", read, take, self.details.not_answered)

    def _load_answers(self) -> None:
        found, context = self._workflow, self.owner.setup.context
        if found is None:
            return

        def take(answers: WorkflowAnswers) -> None:
            if self._workflow is None or self._workflow.id != found.id:
                return
            self.answers = answers
            self._show_answers(answers)

        known = self.answers
        self.owner.ask("answers", lambda client: read_answers(context, client, found.id, known), take)

    def _show_answers(self, answers: WorkflowAnswers) -> None:
        line = self.query_one("#headline", TextLines)
        workflow_id = answers.document["id"]
        width = line.size.width or self.size.width
        line.update(*headline_lines(answers, width, lambda command: key_for(command, workflow_id)))
        self._show_overview(answers)

    def _show_overview(self, answers: WorkflowAnswers) -> None:
        if self.tab == OVERVIEW:
            width = self.details.size.width or self.size.width
            self.details.show_rows(overview_rows(answers, width), head="Enter on a line shows its jobs")

    def _load_graph(self) -> None:
        found, part = self._workflow, dict(self.graph_part)
        if found is None:
            return

        def take(view: GraphView) -> None:
            if self.tab == DAG and self._workflow is not None and self._workflow.id == found.id:
                empty = "No dependencies."
                self.details.show_rows(graph_rows(view), head=graph_head(view), empty=empty)

        self.owner.ask("graph", lambda client: client.graph_view(found.id, **{"limit": 1000, **part}), take)

    def show_graph(self, **part: Any) -> None:
        """Show a part of the graph: a ``group``, or what is ``around`` a job; nothing is the whole graph."""
        self.graph_part = part
        self.show_tab(DAG)

    def show_jobs(self, filter_text: str) -> None:
        """Show the jobs that a filter finds."""
        self.queries["jobs"] = ListQuery(filter_text, self.queries.get("jobs", ListQuery()).sort)
        self.show_tab("jobs")
        self.details.focus()

    # --- refresh ----------------------------------------------------------------------------------

    def refresh_all(self) -> None:
        """Ask anew for what is shown; nothing moves from under the cursor."""
        self._refreshing = None
        self.workflows.reload()
        self._load_answers()
        if self.tab == DAG:
            self._load_graph()
        else:
            self.details.reload()

    def refresh_soon(self) -> None:
        """Refresh once in a while, however many events come."""
        if self._refreshing is None:
            self._refreshing = self.set_timer(_REFRESH_S, self.refresh_all)

    # --- lines ------------------------------------------------------------------------------------

    def show_header(self) -> None:
        """Show server and user."""
        setup = self.owner.setup
        user = "all users" if setup.user is None else one_line(setup.user)
        auto = "auto " if self.owner.refresh_timer else ""
        auto += "read-only " if setup.rights.is_read_only else ""
        head: list[Cell] = [("torc ", "bold"), *setup.state.cells(has_server=setup.has_server)]
        rest: list[Cell] = [*self.owner.server_mark(), (f" {user} (w, a) ", "dim"), (auto, "cyan")]
        url = setup.upstream.shown if setup.upstream.shown and setup.has_server else ""
        if sum(text_width(text) for text, _ in (*head, (url, ""), *rest)) >= self.size.width:
            url = urlsplit(url).netloc or url
        self.query_one("#header", TextLines).update([*head, (f"{url} " if url else "", ""), *rest])

    def say(self, text: str, colour: str = "") -> None:
        """Show a message until the next key moves on."""
        self._message = (cleaned(text).split("\n")[0], colour)
        self.show_footer()

    def drop_message(self) -> None:
        """Show the message no longer: a key was pressed."""
        if self._message[0]:
            self._message = ("", "")
            self.show_footer()

    def show_footer(self) -> None:
        """Show the message, or the keys that fit."""
        line = self.query_one("#footer", TextLines)
        if self._message[0]:
            line.update([self._message])
            return
        state = None if self._workflow is None else self._workflow.state
        refusal = self.owner.refusal()
        of_tab = [each for each in KEY_ACTIONS if each.hint and each.tab in ("", self.tab)]
        hints = [each for each in of_tab if not why_not(each, state, refusal)]
        hints.sort(key=lambda each: -1 if each.tab else _HINTS_FIRST.find(each.shown))
        cells = self._place()
        left = self.size.width - sum(text_width(text) for text, _ in cells)
        for each in hints:
            left -= len(f"{each.shown} {each.hint}  ")
            if left < 0:
                break
            cells += [(each.shown, "bold"), (f" {each.hint}  ", "dim")]
        line.update(cells)

    def command(self) -> str:
        """Return the command that shows what the tab shows."""
        if self._workflow is None:
            return "torc workflows list"
        table, workflow_id = self.record_table, self._workflow.id
        if table is None:
            return f"torc workflows execution-plan {workflow_id}" if self.tab == DAG else f"torc status {workflow_id}"
        query = self.queries.get(self.tab, ListQuery())
        arguments = table.command.format(id=workflow_id).split()[1:]
        if query.filter_text and self.tab == "jobs":
            arguments += ["--filter", query.filter_text]
        if query.sort:
            arguments += [
                "--sort-by",
                query.sort.removeprefix("-"),
                *(["--reverse-sort"] if query.sort[0] == "-" else []),
            ]
        return command_text(arguments)

    def _place(self) -> list[Cell]:
        """Return where the cursor is in the list, and what the list shows."""
        if self.record_table is None:
            return []
        query, total = self.queries.get(self.tab, ListQuery()), self.details.total
        cells: list[Cell] = []
        if total is not None:
            cells.append((f"{count_text(min(self.details.cursor + 1, total))} of {count_text(total)} ", ""))
        if query.filter_text:
            room = max(_LEAST_FILTER, self.size.width // 2)
            cells.append((f"{shortened(one_line(query.filter_text), room)} (Esc clears) ", "yellow"))
        if query.sort:
            cells.append((f"by {one_line(query.sort)} ", "yellow"))
        return [*cells, (" ", "")]
