"""What screens use of the app, so that they do not import it."""

from collections.abc import Callable, Hashable
from typing import TYPE_CHECKING, Any, Protocol

from textual.geometry import Size
from textual.screen import Screen
from textual.timer import Timer

from torc_framework.tui.tables.looks import Cell
from torc_framework.tui.work.setup import TuiSetup

if TYPE_CHECKING:
    from torc_framework.client import TorcClient


class WorkflowView(Protocol):
    """The main screen, for what changes workflows."""

    def say(self, text: str, colour: str = "") -> None:
        """Show a message."""

    def load_workflows(self) -> None:
        """Ask for the list anew."""

    def refresh_all(self) -> None:
        """Ask anew for what is shown."""


class ScreenHost(Protocol):
    """The app, for its screens."""

    setup: TuiSetup
    refresh_timer: Timer | None

    @property
    def view(self) -> WorkflowView:
        """The main screen."""

    @property
    def size(self) -> Size:
        """The size of the terminal."""

    def ask(
        self,
        kind: Hashable,
        request: "Callable[[TorcClient], Any]",
        on_answer: Callable[[Any], None],
        on_failure: Callable[[], None] = ...,
    ) -> None:
        """Carry out a request in a thread."""

    def show(self, screen: Screen[Any], on_answer: Callable[[Any], None] | None = None) -> None:
        """Show a screen over the present one."""

    def follow(self, workflow_id: int | None) -> None:
        """Follow the events of this workflow."""

    def server_mark(self) -> list[Cell]:
        """Return the mark of a server of this program."""
