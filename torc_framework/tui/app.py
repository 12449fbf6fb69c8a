"""The app: requests, events, commands and the server behind the screens, and what keys do."""

from collections.abc import Callable, Hashable, Mapping
from typing import TYPE_CHECKING, Any, Final

from textual.screen import Screen
from textual.timer import Timer

from torc_framework.errors import ApiError, ServerUnreachableError
from torc_framework.models.records import ComputeNodeRecord, EventRecord, FileRecord, ScheduledComputeNodeRecord
from torc_framework.tui.screens.dialogs import ConfirmScreen, PromptScreen, TextScreen
from torc_framework.tui.screens.job_views import JobViews
from torc_framework.tui.screens.list_prompts import ask_filter, ask_order
from torc_framework.tui.screens.log_viewer import LogScreen
from torc_framework.tui.screens.main_screen import DAG, OVERVIEW, TABS, MainScreen
from torc_framework.tui.screens.orders import Orders
from torc_framework.tui.screens.palette import PaletteScreen
from torc_framework.tui.tables.list_query import ListQuery
from torc_framework.tui.tables.looks import Cell
from torc_framework.tui.tables.record_tables import event_lines, job_of
from torc_framework.tui.tables.virtual_table import VirtualTable
from torc_framework.tui.terminal_app import TerminalApp
from torc_framework.tui.work.awaited_screen import AwaitedScreen
from torc_framework.tui.work.fetching import Fetcher
from torc_framework.tui.work.help_text import help_text
from torc_framework.tui.work.key_table import KEY_ACTIONS, KeyAction, why_not
from torc_framework.tui.work.live_events import LiveEvents
from torc_framework.tui.work.log_source import file_source
from torc_framework.tui.work.setup import TuiSetup, is_deleted

if TYPE_CHECKING:
    from torc_framework.client import TorcClient

AUTO_REFRESH_S: Final = 30.0
"""Seconds between two refreshes after ``A`` (Torc's manual, "Terminal User Interface", Auto-Refresh)."""
_WATCH_S: Final = 1.0
RETRY_S: Final = 2.0
"""Seconds between two attempts to reach a server that is away."""
_CSS: Final = """
* { background: ansi_default; color: ansi_default; scrollbar-size: 0 0; }
#header, #tabs, #footer, #title, #row { height: 1; }
#headline { height: 2; }
#body { layout: vertical; height: 1fr; }
#workflows { height: 5; }
#side { height: 1fr; layout: vertical; }
#details, #lines { height: 1fr; }
MainScreen.wide #body { layout: horizontal; }
MainScreen.wide #workflows { width: 48; height: 1fr; border-right: solid ansi_bright_black; }
Input { height: 1; border: none; padding: 0; }
"""


class TuiApp(TerminalApp):
    """The terminal user interface."""

    CSS = _CSS
    ENABLE_COMMAND_PALETTE = False
    TITLE = "torc"

    def __init__(self, setup: TuiSetup) -> None:
        super().__init__()
        self.setup = setup
        self.fetcher = Fetcher(self._deliver)
        self.awaited = AwaitedScreen(self.ask)
        self.main = MainScreen()
        self.orders = Orders(self)
        self.job_views = JobViews(self)
        self.refresh_timer: Timer | None = None
        self._retry: Timer | None = None
        self._live: LiveEvents | None = None
        self._has_news = False

    def on_mount(self) -> None:
        """Show the main screen, and follow events."""
        self.begin(self.main)
        self.set_interval(_WATCH_S, self._watch_server)
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
        """Show a screen over the present one; nothing when the program ends."""
        self.awaited.give_up()
        if not self._exit:
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
        about = None if self.main.workflow is None else self.main.workflow.id

        def take(answer: Any) -> None:
            if self.setup.state.answered():
                self.main.refresh_all()
            if self.setup.rights.answered(about):
                self.main.show_footer()
            self.main.show_header()
            on_answer(answer)

        def fail(error: Exception) -> None:
            on_failure()
            if isinstance(error, ServerUnreachableError):
                self.setup.state.failed(str(error))
                self._retry_later()
                self.main.show_header()
            elif kind == "workflows" and self.setup.refuses(error):
                self.exit()
            elif is_deleted(error, about):
                self.main.reload_workflows()  # which moves the cursor to another one
            else:
                if isinstance(error, ApiError):
                    self.setup.rights.refused(error.status, str(error), about)
                self.main.say(str(error) or type(error).__name__, "red")
                self.main.show_header()

        self.fetcher.fetch(kind, lambda: request(self.setup.client()), take, fail)

    def _watch_server(self) -> None:
        """Show how long the server has not answered."""
        state, was_slow = self.setup.state, self.setup.state.is_slow
        state.silent_s = self.fetcher.longest_s()
        if state.is_silent and not state.silent_s:  # a server that is stopped ends no event stream
            self.ask("ping", lambda client: client.ping(), lambda _: None)
        if was_slow or state.is_slow or state.away_since is not None or not self.setup.has_server:
            self.main.show_header()

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
        if not self._has_news:  # else the screens have still to hear of the event before, and hear of both
            self._has_news = True
            self._deliver(self._refresh_soon)

    def _refresh_soon(self) -> None:
        self._has_news = False
        self.main.refresh_soon()

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
        """Give up what was asked for and has not come; else clear the filter; without one go back to the workflows."""
        if not self.awaited.give_up():
            self.main.step_back()

    def on_virtual_table_chosen(self, event: VirtualTable.Chosen) -> None:
        """Show more about a row."""
        record, main = event.row.record, self.main
        if event.table is main.workflows:
            main.details.focus()
        elif main.tab == OVERVIEW and record and record["filter"]:
            main.show_jobs(record["filter"])
        elif main.tab == "files" and isinstance(record, FileRecord):
            source = file_source(self.setup.context.folder, record.path)
            self.show(LogScreen(record.name, [source], self.fetcher, from_end=False))
        elif main.tab in ("allocations", "runners"):
            self.action_logs()
        elif main.tab == DAG and record is not None and record.job_id is None:
            main.show_jobs(f'group:"{record.label}" stage:{record.stage}')
        elif (job := job_of(self.main.tab, event.row)) is not None:
            self.show_job(job)
        elif isinstance(record, EventRecord):
            self.show(TextScreen("Event", event_lines(record)))

    def show_job(self, job_id: int) -> None:
        """Show a job of the workflow that is shown."""
        self.job_views.job(job_id)

    def show_logs(self, job_id: int) -> None:
        """Show the logs of the last attempt of a job."""
        self.job_views.logs(job_id)

    def action_filter(self) -> None:
        """Ask for a filter of the list."""
        ask_filter(self.main, self.show)

    def action_sort(self) -> None:
        """Ask for the order of the list."""
        ask_order(self.main, self.show)

    def action_graph_open(self) -> None:
        """Open the group under the cursor."""
        row = self.main.details.current
        if self.main.tab == DAG and row is not None and row.record is not None and row.record.job_id is None:
            self.main.show_graph(group=row.record.id)

    def action_graph_around(self) -> None:
        """Show the neighbours of the job under the cursor."""
        job = job_of(self.main.tab, self.main.details.current)
        if self.main.tab in (DAG, "jobs") and job is not None:
            self.main.show_graph(around=job)

    def action_graph_whole(self) -> None:
        """Show the whole graph."""
        if self.main.tab == DAG:
            self.main.show_graph()

    # --- commands and questions -------------------------------------------------------------------

    def refusal(self) -> str:
        """Return why the workflow may not be changed; empty if it may, as far as that is known."""
        found = self.main.workflow
        return self.setup.rights.refusal(None if found is None else found.id)

    def is_refused(self) -> bool:
        """Say why the workflow may not be changed, if so; return whether it is so."""
        if reason := self.refusal():
            self.main.say(reason, "yellow")
        return bool(reason)

    def action_order(self, name: str) -> None:
        """Carry out a command on the workflow, after a preview."""
        found = self.main.workflow
        action = next(each for each in KEY_ACTIONS if each.action == f"order('{name}')")
        reason = why_not(action, None if found is None else found.state, self.refusal())
        if reason or found is None:
            self.main.say(f"workflow {found.id}: {reason}" if found is not None else reason)
        else:
            self.orders.workflow(name, found.id)

    def order(self, name: str, workflow_id: int, options: Mapping[str, Any]) -> None:
        """Carry out a command on a workflow, after a preview."""
        self.orders.workflow(name, workflow_id, options)

    def run_command(self, arguments: list[str]) -> None:
        """Start a command and show its output."""
        self.orders.run(arguments)

    def action_new(self) -> None:
        """Create a workflow from a spec file."""
        if not self.is_refused():
            self.orders.new()

    def action_job(self, step: str) -> None:
        """Do a step of the job under the cursor."""
        if not self.is_refused():
            self.main.details.when_row_is_here(lambda: self._do_step(step))

    def _do_step(self, step: str) -> None:
        row = self.main.details.current
        if self.main.tab != "jobs" or row is None or self.main.workflow is None:
            self.main.say("select a job in the tab Jobs first")
        else:
            self.orders.job(step, self.main.workflow.id, int(row.record["id"]), str(row.record["status"]))

    def action_drain(self) -> None:
        """Ask the runner under the cursor to take no more jobs, or to take jobs again."""
        if not self.is_refused():
            self.main.details.when_row_is_here(self._drain_runner_of_row)

    def _drain_runner_of_row(self) -> None:
        row = self.main.details.current
        if self.main.tab != "runners" or row is None:
            self.main.say("select a runner in the tab Runners first")
        else:
            self.orders.drain(row.record)

    def action_retry_all(self) -> None:
        """Retry the failed jobs of the cause under the cursor, of the filtered list, or all."""
        main = self.main
        if self.is_refused() or main.workflow is None:
            return
        filter_text = main.queries.get("jobs", ListQuery()).filter_text if main.tab == "jobs" else ""
        row = main.details.current
        if main.tab == OVERVIEW and main.focused is main.details and row is not None and row.record:
            filter_text = row.record["filter"]
        self.orders.retry_all(main.workflow.id, filter_text)

    def action_ask(self, command: str) -> None:
        """Show what ``torc explain`` or ``torc why-failed`` says about the workflow."""
        found = self.main.workflow
        if found is None:
            self.main.say("no workflow is selected")
            return
        arguments = [command, str(found.id)]
        job = job_of(self.main.tab, self.main.details.current) if self.main.tab in ("jobs", "results", DAG) else None
        if job is not None and self.main.focused is self.main.details:
            arguments += ["--job", str(job)]
        self.orders.run(arguments)

    def action_view(self, name: str) -> None:
        """Show the timeline, or the jobs that wait for a verdict."""
        getattr(self.job_views, name)()

    def action_plots(self) -> None:
        """Show CPU and memory over time: of the job under the cursor, or of all jobs."""
        job = job_of(self.main.tab, self.main.details.current) if self.main.focused is self.main.details else None
        if job is None:
            self.job_views.workflow_plots()
        else:
            self.job_views.plots(job)

    def action_copy(self) -> None:
        """Copy the command that shows what the tab shows, and show it whole."""
        command = self.main.command()
        self.copy_to_clipboard(command)
        hint = "\n\nIt is in the clipboard, if the terminal lets programs write there (OSC 52)."
        self.show(TextScreen("The same as a command", command + hint))

    def action_plan(self) -> None:
        """Show the execution plan."""
        if (found := self.main.workflow) is not None:
            self.orders.run(["workflows", "execution-plan", str(found.id)])

    def action_logs(self) -> None:
        """Show the logs of the job, the runner or the Slurm job under the cursor."""
        self.main.details.when_row_is_here(self._show_logs_of_row)

    def _show_logs_of_row(self) -> None:
        row = self.main.details.current
        record = None if row is None else row.record
        if self.main.workflow is None or record is None:
            self.main.say("select a job, a runner or a scheduled node first")
        elif isinstance(record, ScheduledComputeNodeRecord):
            self.job_views.allocation_logs(record)
        elif isinstance(record, ComputeNodeRecord):
            self.job_views.runner_log(record.id or 0, record.hostname)
        elif (job := job_of(self.main.tab, row)) is None:
            self.main.say("this row has no logs")
        elif self.main.tab == "results":
            self.job_views.logs(job, record.run_id, record.attempt_id)
        else:
            self.show_logs(job)

    # --- server and view --------------------------------------------------------------------------

    def server_mark(self) -> list[Cell]:
        """Return the mark of a server that this program started."""
        facts = self.setup.server.as_dict()
        if facts["running"]:
            return [("●", "green")]
        return [("○", "yellow")] if self.setup.server.was_started else []

    def action_server_start(self) -> None:
        """Start a server of this program, and use it."""
        if self.is_refused():
            return
        self.main.say("starting a server ...")
        is_known = self.setup.server.was_started and not self.setup.has_server
        self._change_server(self.setup.server.start, is_known=is_known)

    def action_server_stop(self) -> None:
        """Stop the server of this program."""
        if not self.setup.server.as_dict()["running"]:
            self.main.say("this program runs no server")
        else:
            self.fetcher.fetch("server", self.setup.server.stop, lambda _: self._server_stopped(), self._server_failed)

    def _change_server(self, change: Callable[[], None], *, is_known: bool = False) -> None:
        """Change the server in a thread; one that is known has the workflows that are shown."""
        self.fetcher.fetch("server", change, lambda _: self._server_changed(is_known=is_known), self._server_failed)

    def _server_stopped(self) -> None:
        """Keep what is shown, with its age."""
        self.main.say("")
        self.main.show_header()

    def _server_failed(self, error: Exception) -> None:
        self.main.say(str(error), "red")

    def _server_changed(self, *, is_known: bool) -> None:
        if self._live is not None:
            self._live.reconnect()
        self.main.say("")
        self.main.show_header()
        if is_known:
            self.main.refresh_all()
        else:
            self.main.load_workflows()

    def action_server_output(self) -> None:
        """Show what the server of this program wrote."""
        output = self.setup.server.output() or "It wrote nothing."
        self.show(TextScreen("Output of the server", output, from_end=True))

    def action_server_url(self) -> None:
        """Use another server."""

        def take(url: str | None) -> None:
            if url:
                self._change_server(lambda: self.setup.upstream.move(url))

        self.show(PromptScreen("URL of the server", self.setup.upstream.shown or ""), take)

    def action_user(self) -> None:
        """Ask whose workflows to list."""

        def take(user: str | None) -> None:
            if user is not None:
                self.setup.user = user or None
                self._show_users()

        self.show(PromptScreen("Workflows of user", self.setup.user or "", help_="Empty: of all users."), take)

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
        offered = [each for each in KEY_ACTIONS if each.action and not why_not(each, state, self.refusal())]

        def take(action: KeyAction | None) -> None:
            if action is not None:
                self.call_later(self.run_action, action.action)

        self.show(PaletteScreen(offered, "ID" if found is None else str(found.id)), take)

    def action_help(self) -> None:
        """Show the keys."""
        self.show(TextScreen("Keys", help_text(self.refusal())))

    def action_leave(self) -> None:
        """End the program; runs that its server carries are stopped first."""
        running = [each for each in self.setup.commands.running if each.is_long]
        if running and self.setup.server.as_dict()["running"]:
            text = "\n".join(["These runs stop, because their server ends:", *(f"  {each.text}" for each in running)])
            self.show(ConfirmScreen("Quit", "", text), lambda yes: self.exit() if yes else None)
        else:
            self.exit()
