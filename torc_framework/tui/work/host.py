"""What screens use of the app, so that they do not import it."""

from collections.abc import Callable, Mapping
from typing import Any, Protocol

from textual.geometry import Size
from textual.screen import Screen
from textual.timer import Timer

from torc_framework.models.progress import WorkflowOverview
from torc_framework.tui.tables.looks import Cell
from torc_framework.tui.work.awaited_screen import Ask, AwaitedScreen
from torc_framework.tui.work.fetching import Fetcher
from torc_framework.tui.work.setup import TuiSetup


class WorkflowView(Protocol):
    """The main screen, for what changes workflows."""

    @property
    def workflow(self) -> WorkflowOverview | None:
        """The workflow that is shown."""

    def say(self, text: str, colour: str = "") -> None:
        """Show a message."""

    def load_workflows(self) -> None:
        """Ask for the list anew, from its beginning."""

    def reload_workflows(self) -> None:
        """Ask for the list anew; the cursor stays on its workflow."""

    def refresh_all(self) -> None:
        """Ask anew for what is shown."""


class ScreenHost(Protocol):
    """The app, for its screens."""

    setup: TuiSetup
    fetcher: Fetcher
    awaited: AwaitedScreen
    refresh_timer: Timer | None

    @property
    def view(self) -> WorkflowView:
        """The main screen."""

    @property
    def size(self) -> Size:
        """The size of the terminal."""

    @property
    def ask(self) -> Ask:
        """Carries out a request in a thread."""

    def show(self, screen: Screen[Any], on_answer: Callable[[Any], None] | None = None) -> None:
        """Show a screen over the present one."""

    def show_job(self, job_id: int) -> None:
        """Show a job of the workflow that is shown."""

    def show_logs(self, job_id: int) -> None:
        """Show the logs of its last attempt."""

    def order(self, name: str, workflow_id: int, options: Mapping[str, Any]) -> None:
        """Carry out a command on a workflow, after a preview."""

    def run_command(self, arguments: list[str]) -> None:
        """Start a command and show its output."""

    def refusal(self) -> str:
        """Return why the workflow may not be changed; empty if it may, as far as that is known."""

    def is_refused(self) -> bool:
        """Say why the workflow may not be changed, if so; return whether it is so."""

    def follow(self, workflow_id: int | None) -> None:
        """Follow the events of this workflow."""

    def server_mark(self) -> list[Cell]:
        """Return the mark of a server of this program."""
