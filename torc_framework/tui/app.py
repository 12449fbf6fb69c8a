"""The app: requests, events, commands and the server behind the screens, and what keys do."""

from collections.abc import Callable, Hashable
from typing import TYPE_CHECKING, Any, Final

from textual.app import App
from textual.screen import Screen
from textual.timer import Timer

from torc_framework.errors import ServerUnreachableError
from torc_framework.models.records import FileRecord, ScheduledComputeNodeRecord
from torc_framework.tui.screens.dialogs import ConfirmScreen, PromptScreen, TextScreen
from torc_framework.tui.screens.log_viewer import LogScreen
from torc_framework.tui.screens.main_screen import DAG, OVERVIEW, TABS, MainScreen
from torc_framework.tui.screens.orders import Orders
from torc_framework.tui.screens.palette import PaletteScreen
from torc_framework.tui.tables.job_text import job_text
from torc_framework.tui.tables.looks import Cell
from torc_framework.tui.tables.record_tables import ListQuery
from torc_framework.tui.tables.virtual_table import TableRow, VirtualTable
from torc_framework.tui.work.fetching import Fetcher
from torc_framework.tui.work.help_text import help_text
from torc_framework.tui.work.key_table import KEY_ACTIONS, KeyAction, is_offered
from torc_framework.tui.work.live_events import LiveEvents
from torc_framework.tui.work.log_source import ViewedFile, file_source, log_source
from torc_framework.tui.work.setup import TuiSetup

if TYPE_CHECKING:
    from torc_framework.client import TorcClient
    from torc_framework.monitoring.log_files import WantedLog

AUTO_REFRESH_S: Final = 30.0
"""Seconds between two refreshes after ``A`` (Torc's manual, "Terminal User Interface", Auto-Refresh)."""
RETRY_S: Final = 2.0
"""Seconds between two attempts to reach a server that is away."""
_CSS: Final = """
* { background: ansi_default; color: ansi_default; scrollbar-size: 0 0; }
#header, #tabs, #footer, #title { height: 1; }
#headline { height: 2; }
#body { layout: vertical; height: 1fr; }
#workflows { height: 5; }
#side { height: 1fr; layout: vertical; }
#details, #lines { height: 1fr; }
MainScreen.wide #body { layout: horizontal; }
MainScreen.wide #workflows { width: 48; height: 1fr; border-right: solid ansi_bright_black; }
Input { height: 1; border: none; padding: 0; }
"""


class TuiApp(App[None]):
    """The terminal user interface."""

    CSS = _CSS
    ENABLE_COMMAND_PALETTE = False
    TITLE = "torc"

    def __init__(self, setup: TuiSetup) -> None:
        super().__init__(ansi_color=True)
        self.setup = setup
        self.fetcher = Fetcher(self._deliver)
        self.main = MainScreen()
        self.orders = Orders(self)
        self.refresh_timer: Timer | None = None
        self._retry: Timer | None = None
        self._live: LiveEvents | None = None

    def on_mount(self) -> None:
        """Show the main screen, and follow events."""
        self.push_screen(self.main)
        self._live = LiveEvents(self.setup.client, self._event_came, self._stream_changed)

    def on_unmount(self) -> None:
        """Deliver nothing more."""
        self.fetcher.close()
        if self._live is not None:
            self._live.close()

    @property
    def view(self) -> MainScreen:
        """The main screen."""
        return self.main

    def show(self, screen: Screen[Any], on_answer: Callable[[Any], None] | None = None) -> None:
        """Show a screen over the present one."""
        self.push_screen(screen, on_answer)

    # --- requests ---------------------------------------------------------------------------------

    def _deliver(self, function: Callable[[], None]) -> None:
        if self._loop is not None and self.is_running:
            self._loop.call_soon_threadsafe(self._call_in_app, function)

    def _call_in_app(self, function: Callable[[], None]) -> None:
        """Call a function that may use screens; the app's context is needed for that."""
        with self._context():
            function()

    def ask(
        self,
        kind: Hashable,
        request: "Callable[[TorcClient], Any]",
        on_answer: Callable[[Any], None],
        on_failure: Callable[[], None] = lambda: None,
    ) -> None:
        """Carry out a request in a thread; the answer comes to the screens, a failure to the footer."""

        def take(answer: Any) -> None:
            if self.setup.state.answered():
                self.main.refresh_all()
            self.main.show_header()
            on_answer(answer)

        def fail(error: Exception) -> None:
            on_failure()
            if isinstance(error, ServerUnreachableError):
                self.setup.state.failed(str(error))
                self._retry_later()
                self.main.show_header()
            else:
                self.main.say(str(error) or type(error).__name__, "red")

        self.fetcher.fetch(kind, lambda: request(self.setup.client()), take, fail)

    def _retry_later(self) -> None:
        def again() -> None:
            self._retry = None
            self.main.workflows.reload()
            if self.main.workflows.total is None:
                self.main.load_workflows()

        if self._retry is None and self.setup.upstream.base is not None:
            self._retry = self.set_timer(RETRY_S, again)

    # --- events -----------------------------------------------------------------------------------

    def follow(self, workflow_id: int | None) -> None:
        """Follow the events of this workflow."""
        if self._live is not None:
            self._live.follow(workflow_id)

    def _event_came(self) -> None:
        self._deliver(self.main.refresh_soon)

    def _stream_changed(self, is_live: bool) -> None:
        def show() -> None:
            self.setup.state.is_live = is_live
            self.main.show_header()

        self._deliver(show)

    # --- moving and lists -------------------------------------------------------------------------

    def action_tab(self, step: int) -> None:
        """Show the next or the previous tab."""
        names = [*TABS]
        self.main.show_tab(names[(names.index(self.main.tab) + step) % len(names)])

    def action_tab_at(self, place: int) -> None:
        """Show a tab by its number."""
        self.main.show_tab([*TABS][place - 1])

    def action_focus_list(self, name: str) -> None:
        """Move to the workflows or to the details."""
        self.main.set_focus(self.main.workflows if name == "workflows" else self.main.details)

    def action_step_back(self) -> None:
        """Clear the filter; without one go back to the workflows."""
        if self.main.queries.pop(self.main.tab, None):
            self.main.show_tab(self.main.tab)
        elif self.main.tab == DAG and self.main.graph_part:
            self.main.show_graph()
        else:
            self.main.workflows.focus()

    def on_virtual_table_chosen(self, event: VirtualTable.Chosen) -> None:
        """Show more about a row."""
        record, main = event.row.record, self.main
        if event.table is main.workflows:
            main.details.focus()
        elif main.tab == OVERVIEW and record and record["filter"]:
            main.show_jobs(record["filter"])
        elif main.tab == "files" and isinstance(record, FileRecord):
            source = file_source(self.setup.context.folder, record.path)
            self.push_screen(LogScreen(record.name, [source], self.fetcher))
        elif main.tab in ("allocations", "runners"):
            self.action_logs()
        elif main.tab == DAG and record is not None and record.job_id is None:
            main.show_jobs(f'group:"{record.label}" stage:{record.stage}')
        elif (job := self._job_of(event.row)) is not None:
            self._show_job(job)

    def _job_of(self, row: TableRow | None) -> int | None:
        """Return the job that a row is about."""
        if row is None or row.record is None:
            return None
        record = row.record
        if self.main.tab == "jobs":
            return int(record["id"])
        if self.main.tab == "events":
            data = record.data if isinstance(record.data, dict) else {}
            return data.get("job_id") if isinstance(data.get("job_id"), int) else None
        return getattr(record, "job_id", None)

    def _show_job(self, job_id: int) -> None:
        context, found = self.setup.context, self.main.workflow
        if found is not None:
            self.ask(
                "job",
                lambda client: job_text(context, client, found.id, job_id),
                lambda text: self._show_text(f"Job {job_id}", text),
            )

    def _show_text(self, title: str, text: str) -> None:
        self.push_screen(TextScreen(title, text))

    def action_filter(self) -> None:
        """Ask for a filter of the list."""
        table, main = self.main.record_table, self.main
        if table is None or not table.filter_help:
            main.say("this tab has no filter; that of the jobs has one")
            return
        query = main.queries.get(main.tab, ListQuery())

        def take(text: str | None) -> None:
            if text is not None:
                main.queries[main.tab] = ListQuery(text, query.sort)
                main.show_tab(main.tab)
                main.details.focus()

        self.push_screen(
            PromptScreen(f"Filter {table.title.lower()}", query.filter_text, help_=table.filter_help), take
        )

    def action_sort(self) -> None:
        """Ask for the order of the list."""
        table, main = self.main.record_table, self.main
        if table is None or not table.sort_help:
            main.say("this tab has one order")
            return
        query = main.queries.get(main.tab, ListQuery())

        def take(text: str | None) -> None:
            if text is not None:
                main.queries[main.tab] = ListQuery(query.filter_text, text)
                main.show_tab(main.tab)

        self.push_screen(PromptScreen(f"Order {table.title.lower()} by", query.sort, help_=table.sort_help), take)

    def action_graph_open(self) -> None:
        """Open the group under the cursor."""
        row = self.main.details.current
        if self.main.tab == DAG and row is not None and row.record is not None and row.record.job_id is None:
            self.main.show_graph(group=row.record.id)

    def action_graph_around(self) -> None:
        """Show the neighbours of the job under the cursor."""
        job = self._job_of(self.main.details.current)
        if self.main.tab in (DAG, "jobs") and job is not None:
            self.main.show_graph(around=job)

    def action_graph_whole(self) -> None:
        """Show the whole graph."""
        if self.main.tab == DAG:
            self.main.show_graph()

    # --- commands and questions -------------------------------------------------------------------

    def action_order(self, name: str) -> None:
        """Carry out a command on the workflow, after a preview."""
        found = self.main.workflow
        action = next(each for each in KEY_ACTIONS if each.action == f"order('{name}')")
        if found is None:
            self.main.say("no workflow is selected")
        elif not is_offered(action, found.state):
            self.main.say(f"workflow {found.id} is {found.state.replace('_', ' ')}: nothing to {action.title.lower()}")
        else:
            self.orders.workflow(name, found.id)

    def action_new(self) -> None:
        """Create a workflow from a spec file."""
        self.orders.new()

    def action_job(self, step: str) -> None:
        """Do a step of the job under the cursor."""
        row = self.main.details.current
        if self.main.tab != "jobs" or row is None:
            self.main.say("select a job in the tab Jobs first")
        else:
            self.orders.job(step, int(row.record["id"]), str(row.record["status"]))

    def action_ask(self, command: str) -> None:
        """Show what ``torc explain`` or ``torc why-failed`` says about the workflow."""
        found = self.main.workflow
        if found is None:
            self.main.say("no workflow is selected")
            return
        arguments = [command, str(found.id)]
        job = self._job_of(self.main.details.current) if self.main.tab in ("jobs", "results", DAG) else None
        if job is not None and self.main.focused is self.main.details:
            arguments += ["--job", str(job)]
        self.orders.run(arguments)

    def action_pending(self) -> None:
        """Show the jobs that wait for a verdict."""
        if (found := self.main.workflow) is not None:
            self.orders.run(["pending", "list", str(found.id)])

    def action_plan(self) -> None:
        """Show the execution plan."""
        if (found := self.main.workflow) is not None:
            self.orders.run(["workflows", "execution-plan", str(found.id)])

    def action_logs(self) -> None:
        """Show the logs of the job, the runner or the Slurm job under the cursor."""
        from torc_framework.monitoring.log_files import WantedLog

        found, row = self.main.workflow, self.main.details.current
        if found is None or row is None:
            self.main.say("select a job, a runner or a scheduled node first")
            return
        record, title = row.record, ""
        if self.main.tab == "allocations" and isinstance(record, ScheduledComputeNodeRecord):
            title, wanted = f"Slurm job {record.batch_id}", {"allocation_id": record.id}
        elif self.main.tab == "runners":
            sources = [self._log_of("log", WantedLog(node_id=record.id))]
            self.push_screen(LogScreen(f"Runner on {record.hostname}", sources, self.fetcher))
            return
        elif (job := self._job_of(row)) is not None:
            title, wanted = f"Job {job}", {"job_id": job}
            if self.main.tab == "results":
                wanted |= {"run_id": record.run_id, "attempt_id": record.attempt_id}
        else:
            self.main.say("this row has no logs")
            return
        sources = [
            self._log_of("stdout", WantedLog(**wanted, stream="stdout")),
            self._log_of("stderr", WantedLog(**wanted, stream="stderr")),
        ]
        self.push_screen(LogScreen(title, sources, self.fetcher))

    def _log_of(self, title: str, wanted: "WantedLog") -> ViewedFile:
        assert self.main.workflow is not None
        return log_source(self.setup.context, self.setup.client(), self.main.workflow.id, wanted, title)

    # --- server and view --------------------------------------------------------------------------

    def server_mark(self) -> list[Cell]:
        """Return the mark of a server that this program started."""
        facts = self.setup.server.as_dict()
        if facts["running"]:
            return [("●", "green")]
        return [("○", "yellow")] if self.setup.server.was_started else []

    def action_server_start(self) -> None:
        """Start a server of this program, and use it."""
        self.main.say("starting a server ...")
        self._change_server(self.setup.server.start)

    def action_server_stop(self) -> None:
        """Stop the server of this program."""
        if not self.setup.server.as_dict()["running"]:
            self.main.say("this program runs no server")
        else:
            self._change_server(self.setup.server.stop)

    def _change_server(self, change: Callable[[], None]) -> None:
        self.fetcher.fetch("server", change, lambda _: self._server_changed(), self._server_failed)

    def _server_failed(self, error: Exception) -> None:
        self.main.say(str(error), "red")

    def _server_changed(self) -> None:
        if self._live is not None:
            self._live.reconnect()
        self.main.say("")
        self.main.show_header()
        self.main.load_workflows()

    def action_server_output(self) -> None:
        """Show what the server of this program wrote."""
        self.push_screen(TextScreen("Output of the server", self.setup.server.output() or "It wrote nothing."))

    def action_server_url(self) -> None:
        """Use another server."""

        def take(url: str | None) -> None:
            if url:
                self._change_server(lambda: self.setup.upstream.move(url))

        self.push_screen(PromptScreen("URL of the server", self.setup.upstream.shown or ""), take)

    def action_user(self) -> None:
        """Ask whose workflows to list."""

        def take(user: str | None) -> None:
            if user is not None:
                self.setup.user = user or None
                self._show_users()

        self.push_screen(PromptScreen("Workflows of user", self.setup.user or "", help_="Empty: of all users."), take)

    def action_all_users(self) -> None:
        """List the workflows of all users, or again of one."""
        self.setup.user = self.setup.own_user if self.setup.user is None else None
        self._show_users()

    def _show_users(self) -> None:
        self.main.show_header()
        self.main.load_workflows()

    def action_auto_refresh(self) -> None:
        """Refresh regularly, or no longer."""
        if self.refresh_timer is None:
            self.refresh_timer = self.set_interval(AUTO_REFRESH_S, self.main.refresh_all)
        else:
            self.refresh_timer.stop()
            self.refresh_timer = None
        self.main.show_header()

    def action_refresh(self) -> None:
        """Ask for everything anew, and draw the screen anew."""
        self.main.refresh_all()
        self.refresh(layout=True)

    def action_palette(self) -> None:
        """List all actions by name."""
        found = self.main.workflow
        state = None if found is None else found.state
        offered = [each for each in KEY_ACTIONS if each.action and is_offered(each, state)]

        def take(action: KeyAction | None) -> None:
            if action is not None:
                self.call_later(self.run_action, action.action)

        self.push_screen(PaletteScreen(offered, "ID" if found is None else str(found.id)), take)

    def action_help(self) -> None:
        """Show the keys."""
        self.push_screen(TextScreen("Keys", help_text()))

    def action_leave(self) -> None:
        """End the program; runs that its server carries are stopped first."""
        running = [each for each in self.setup.commands.running if each.is_long]
        if running and self.setup.server.as_dict()["running"]:
            text = "\n".join(["These runs stop, because their server ends:", *(f"  {each.text}" for each in running)])
            self.push_screen(ConfirmScreen("Quit", "", text), lambda yes: self.exit() if yes else None)
        else:
            self.exit()
