"""The palette: all actions that are offered now, found by a part of their name."""

from collections.abc import Sequence
from typing import ClassVar, Final

from textual import events
from textual.app import ComposeResult
from textual.binding import BindingType
from textual.screen import Screen
from textual.widgets import Input

from torc_framework.tui.tables.bindings import bound
from torc_framework.tui.tables.looks import fitted
from torc_framework.tui.tables.text_line import TextLines
from torc_framework.tui.tables.virtual_table import TableRow, VirtualTable
from torc_framework.tui.work.key_table import KEY_ACTIONS, KeyAction

_KEYS: Final = 10
_TITLE: Final = 1 + max(len(each.title) for each in KEY_ACTIONS)
"""Widths of the columns."""


class PaletteScreen(Screen[KeyAction | None]):
    """Actions with their keys and their commands."""

    BINDINGS: ClassVar[list[BindingType]] = [
        bound("escape", "close"),
        bound("ctrl+y", "copy"),
    ]

    def __init__(self, actions: Sequence[KeyAction], workflow: str) -> None:
        super().__init__()
        self._actions, self._workflow = actions, workflow

    def compose(self) -> ComposeResult:
        """Make the widgets."""
        yield TextLines(id="title")
        yield Input(id="input", compact=True)
        yield VirtualTable(id="details")
        yield TextLines(id="footer")

    def on_mount(self) -> None:
        """Show all."""
        self.query_one("#title", TextLines).update([("Actions", "bold")])
        self.query_one("#footer", TextLines).update(
            [("a part of the name   ↑ ↓ choose   Enter do it   Ctrl-Y copy   Esc close", "dim")]
        )
        self._show("")
        self.set_focus(self.query_one(Input))

    def _show(self, text: str) -> None:
        words = text.lower().split()
        rows = [
            TableRow(
                each.action,
                ((fitted(each.title, _TITLE), ""), (fitted(each.shown, _KEYS), "bold"), (self._command(each), "dim")),
                each,
            )
            for each in self._actions
            if all(word in f"{each.title} {each.command}".lower() for word in words)
        ]
        self.query_one(VirtualTable).show_rows(rows, empty="no action is called so")

    def _command(self, action: KeyAction) -> str:
        return action.command.replace("{id}", self._workflow).replace("{job}", "JOB")

    def on_input_changed(self, event: Input.Changed) -> None:
        """Show what matches."""
        self._show(event.value)

    def on_key(self, event: events.Key) -> None:
        """Move in the list while the text is typed."""
        if event.key in ("up", "down"):
            event.stop()
            self.query_one(VirtualTable).action_move(1 if event.key == "down" else -1)

    def on_input_submitted(self, _event: Input.Submitted) -> None:
        """Take the action under the cursor."""
        row = self.query_one(VirtualTable).current
        self.dismiss(None if row is None else row.record)

    def on_virtual_table_chosen(self, event: VirtualTable.Chosen) -> None:
        """Take the action that was clicked."""
        event.stop()
        self.dismiss(event.row.record)

    def action_copy(self) -> None:
        """Copy the command of the action under the cursor, and show it whole."""
        row = self.query_one(VirtualTable).current
        if row is not None and row.record.command:
            command = self._command(row.record)
            self.app.copy_to_clipboard(command)
            self.query_one("#footer", TextLines).update([("copied   ", "bold"), (command, "cyan")])

    def action_close(self) -> None:
        """Take none."""
        self.dismiss(None)
