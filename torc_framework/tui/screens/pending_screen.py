"""The jobs that wait for a verdict: marked by keys, then retried or failed after a preview."""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, ClassVar, Final, cast

from textual.app import ComposeResult
from textual.binding import BindingType
from textual.screen import Screen

from torc_framework.text.quantities import count_text
from torc_framework.text.terminal import one_line
from torc_framework.text.widths import shortened
from torc_framework.tui.screens.dialogs import PromptScreen
from torc_framework.tui.tables.bindings import bound
from torc_framework.tui.tables.looks import Cell
from torc_framework.tui.tables.text_line import TextLines
from torc_framework.tui.tables.value_cells import time_text
from torc_framework.tui.tables.virtual_table import TableColumn, TableRow, VirtualTable
from torc_framework.tui.tables.workflow_list import PAGE_ROWS
from torc_framework.tui.work.host import ScreenHost

if TYPE_CHECKING:
    from torc_framework.client import TorcClient

_FIELDS: Final = ("id", "name", "attempt", "exit", "class", "ended", "reason")
_KEPT_S: Final = 2.5
"""Seconds after which the server has forgotten a list of jobs (`ORDER_LIFETIME_S` of the views) and half a second."""
_COLUMNS: Final = (
    TableColumn("", 1),
    TableColumn("ID", 7, is_right=True),
    TableColumn("NAME", 14, grows=True),
    TableColumn("TRY", 3, is_right=True),
    TableColumn("EXIT", 4, is_right=True),
    TableColumn("ENDING", 11),
    TableColumn("ENDED", 11, from_width=100),
    TableColumn("REASON", 20, grows=True),
)
_NAME: Final = 40
"""Columns of the workflow's name."""
_FOOTER: Final = "Space * mark  y retry  R with more  x fail  c ask  l logs  Enter job  q close"
_REQUESTS: Final = ("memory", "runtime", "num_cpus", "num_gpus")
_REQUEST_HELP: Final = (
    "New requests of the job's next attempt, such as\n\n    memory=16g runtime=PT4H num_cpus=4 num_gpus=1\n\n"
    "Jobs that share these requests keep theirs."
)


def _row(job: Mapping[str, Any], *, is_marked: bool) -> TableRow:
    ended = "" if job["ended"] is None else time_text(job["ended"])
    cells: tuple[Cell, ...] = (
        ("*" if is_marked else " ", "bold"),
        (str(job["id"]), ""),
        (one_line(job["name"]), "bold" if is_marked else ""),
        (str(job["attempt"]), ""),
        ("" if job["exit"] is None else str(job["exit"]), ""),
        (one_line(job["class"] or ""), "magenta"),
        (ended, "dim"),
        (one_line(job["reason"] or ""), ""),
    )
    return TableRow(job["id"], cells, dict(job))


class PendingScreen(Screen[None]):
    """The jobs of one workflow that wait for a verdict."""

    BINDINGS: ClassVar[list[BindingType]] = [
        bound("q,escape,p", "close"),
        bound("space", "mark"),
        bound("asterisk", "mark_all"),
        bound("y", "decide('pending_retry')"),
        bound("x", "decide('pending_fail')"),
        bound("R", "retry_with"),
        bound("c", "classify"),
        bound("l", "logs"),
        bound("r", "reload"),
    ]

    def __init__(self, workflow_id: int, name: str) -> None:
        super().__init__()
        self._workflow_id, self._workflow_name = workflow_id, name
        self._marked: set[int] = set()
        self._is_all = False
        self._note = ""

    @property
    def owner(self) -> ScreenHost:
        """The app."""
        return cast(ScreenHost, self.app)

    @property
    def table(self) -> VirtualTable:
        """The jobs."""
        return self.query_one(VirtualTable)

    def compose(self) -> ComposeResult:
        """Make the widgets."""
        yield TextLines(id="title")
        yield VirtualTable(id="details")
        yield TextLines(id="footer")

    def on_mount(self) -> None:
        """Ask for the jobs."""
        self.table.show(_COLUMNS, self._load, empty="No job waits for a verdict.")
        self.set_focus(self.table)
        self._show_lines()

    def on_screen_resume(self) -> None:
        """Ask again after a verdict, at once and when the server no longer keeps the list from before."""
        if self.is_mounted:
            self.action_reload()
            self.set_timer(_KEPT_S, self.action_reload)

    def _load(self, pages: tuple[int, ...]) -> None:
        generation, workflow_id = self.table.generation, self._workflow_id

        def read(client: "TorcClient") -> tuple[dict[int, list[dict[str, Any]]], int]:
            found: dict[int, list[dict[str, Any]]] = {}
            total = 0
            for page in pages:
                part = client.job_columns(
                    workflow_id,
                    _FIELDS,
                    filter_text="status:pending_failed",
                    offset=page * PAGE_ROWS,
                    limit=PAGE_ROWS,
                )
                columns = (part.columns[name] for name in _FIELDS)
                found[page] = [dict(zip(_FIELDS, values, strict=True)) for values in zip(*columns, strict=True)]
                total = part.total
            return found, total

        def take(answer: tuple[dict[int, list[dict[str, Any]]], int]) -> None:
            if self.is_mounted:
                found, total = answer
                rows = {
                    page: [_row(job, is_marked=self._is_marked(job["id"])) for job in jobs]
                    for page, jobs in found.items()
                }
                self.table.put(generation, rows, total)
                self._show_lines()

        self.owner.ask("pending", read, take, self.table.not_answered)

    def _is_marked(self, job_id: int) -> bool:
        return self._is_all or job_id in self._marked

    def _show_lines(self) -> None:
        total = self.table.total
        name = shortened(one_line(self._workflow_name), _NAME)
        what = "…" if total is None else f"{count_text(total, 'job')} of {name} for your verdict"
        marked = "all" if self._is_all else count_text(len(self._marked))
        self.query_one("#title", TextLines).update([(f"{what}  ", "bold"), (f"{marked} marked", "yellow")])
        refusal = self.owner.refusal()
        text = f"l logs  Enter job  q close   Verdicts are not offered: {refusal}" if refusal else _FOOTER
        self.query_one("#footer", TextLines).update([(self._note, "red")] if self._note else [(text, "dim")])

    def drop_message(self) -> None:
        """Show the message no longer: a key was pressed."""
        if self._note:
            self._note = ""
            self._show_lines()

    # --- marks ------------------------------------------------------------------------------------

    def action_mark(self) -> None:
        """Mark the job under the cursor, or no longer; go to the next one."""
        row = self.table.current
        if row is not None:
            self._is_all = False
            self._marked ^= {row.record["id"]}
            self.table.reload()
            self.table.action_move(1)
            self._show_lines()

    def action_mark_all(self) -> None:
        """Mark all, or none."""
        self._is_all = not self._is_all
        self._marked.clear()
        self.table.reload()
        self._show_lines()

    def action_reload(self) -> None:
        """Ask for the jobs anew."""
        self.table.reload()

    # --- verdicts ---------------------------------------------------------------------------------

    def _chosen(self) -> dict[str, Any] | None:
        """Return the option that names the jobs: those that are marked, or that under the cursor; None without any."""
        if self._is_all:
            return {}
        row = self.table.current
        ids = sorted(self._marked) or ([] if row is None else [row.record["id"]])
        return {"jobs": ids} if ids else None

    def action_decide(self, command: str, requests: Mapping[str, Any] | None = None) -> None:
        """Retry or fail the jobs, after a preview."""
        chosen = self._chosen()
        if chosen is not None and not self.owner.is_refused():
            self._marked.clear()
            self._is_all = False
            self.owner.order(command, self._workflow_id, {**chosen, **(requests or {})})

    def action_retry_with(self) -> None:
        """Ask for new requests, then retry."""

        def take(text: str | None) -> None:
            if text is None:
                return
            try:
                requests = parse_requests(text)
            except ValueError as error:
                self._note = str(error)
                self._show_lines()
            else:
                self.action_decide("pending_retry", requests)

        if self._chosen() is not None and not self.owner.is_refused():
            self.owner.show(PromptScreen("Retry with", "memory=", help_=_REQUEST_HELP), take)

    def action_classify(self) -> None:
        """Show which verdicts plugins would give."""
        self.owner.run_command(["pending", "classify", str(self._workflow_id), "--dry-run"])

    # --- the job ----------------------------------------------------------------------------------

    def action_logs(self) -> None:
        """Show the logs of the job."""
        if (row := self.table.current) is not None:
            self.owner.show_logs(row.record["id"])

    def on_virtual_table_chosen(self, event: VirtualTable.Chosen) -> None:
        """Show the job."""
        event.stop()
        self.owner.show_job(event.row.record["id"])

    def action_close(self) -> None:
        """Close the screen."""
        self.dismiss(None)


def parse_requests(text: str) -> dict[str, Any]:
    """Return new requests from texts such as ``memory=16g num_cpus=4``.

    Raises:
        ValueError: a word is no request; the message says what is expected.
    """
    found: dict[str, Any] = {}
    for word in text.split():
        name, _, value = word.partition("=")
        if name not in _REQUESTS or not value:
            raise ValueError(f"{word} is no request; expected {', '.join(f'{each}=...' for each in _REQUESTS)}")
        if name.startswith("num_"):
            if not (value.isascii() and value.isdigit()) or len(value) > 9:
                raise ValueError(f"{name} is {value}; expected a whole number")
            found[name] = int(value)
        else:
            found[name] = value
    return found
