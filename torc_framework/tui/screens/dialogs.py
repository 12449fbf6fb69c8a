"""Screens over the main one: a text, a question before a command, a line of input, and the output of a command."""

from collections.abc import Callable
from typing import ClassVar, Final

from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.screen import Screen
from textual.widgets import Input

from torc_framework.text.terminal import cleaned
from torc_framework.tui.tables.lines_pane import LinesPane
from torc_framework.tui.tables.looks import Cell
from torc_framework.tui.tables.text_line import TextLines
from torc_framework.tui.work.commands import ChildCommand

_POLL_S: Final = 0.3


def text_lines(text: str) -> list[str]:
    """Return a text as lines without control characters."""
    return [cleaned(line).replace("\t", "    ") for line in text.rstrip("\n").split("\n")]


class TextScreen(Screen[None]):
    """A text that scrolls."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("q,escape,question_mark,enter", "close", show=False),
        Binding("g", "edge(-1)", show=False),
        Binding("G", "edge(1)", show=False),
    ]

    def __init__(self, title: str, text: str) -> None:
        super().__init__()
        self._title, self._text = title, text

    def compose(self) -> ComposeResult:
        """Make the widgets."""
        yield TextLines(id="title")
        yield LinesPane(id="lines")
        yield TextLines(id="footer")

    def on_mount(self) -> None:
        """Show the text."""
        self.query_one("#title", TextLines).update([(self._title, "bold")])
        self.query_one("#footer", TextLines).update([("↑ ↓ PgUp PgDn scroll   q close", "dim")])
        pane = self.query_one(LinesPane)
        pane.show(text_lines(self._text))
        pane.focus()

    def action_close(self) -> None:
        """Close the screen."""
        self.dismiss(None)

    def action_edge(self, side: int) -> None:
        """Go to the first or the last line."""
        self.query_one(LinesPane).action_edge(side)


class OutputScreen(TextScreen):
    """The output of a command as it comes."""

    BINDINGS: ClassVar[list[BindingType]] = [Binding("ctrl+x", "interrupt", show=False)]

    def __init__(self, child: ChildCommand, on_close: Callable[[ChildCommand], None]) -> None:
        super().__init__(child.text, "")
        self._child, self._on_close = child, on_close
        self._shown = ""

    def on_mount(self) -> None:
        """Show the output and follow it."""
        super().on_mount()
        self._update()
        self.set_interval(_POLL_S, self._update)

    def _update(self) -> None:
        pane, code = self.query_one(LinesPane), self._child.exit_code
        text = self._child.tail()
        if text != self._shown:
            follows = pane.is_at_end
            self._shown = text
            lines = [line.rpartition("\r")[2] for line in text_lines(text.replace("\r\n", "\n"))]
            pane.show(lines, top=len(lines) if follows else None)
        state: Cell = ("under way", "cyan")
        if code is not None:
            state = ("✓ done", "green") if code == 0 else (f"✗ ended with exit code {code}", "red")
        self.query_one("#title", TextLines).update([(f"{self._child.text}  ", "bold"), state])
        stop = "   Ctrl-X interrupt" if code is None else ""
        self.query_one("#footer", TextLines).update([(f"↑ ↓ PgUp PgDn scroll   q close{stop}", "dim")])

    def action_interrupt(self) -> None:
        """Interrupt the command as Ctrl-C does."""
        self._child.interrupt()

    def action_close(self) -> None:
        """Close the screen; a command under way goes on."""
        self._on_close(self._child)
        self.dismiss(None)


class ConfirmScreen(Screen[bool]):
    """What a command would do, and the question whether it is to be done."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("y", "answer(True)", show=False),
        Binding("n,q,escape", "answer(False)", show=False),
    ]

    def __init__(self, title: str, command: str, preview: "str | ChildCommand") -> None:
        super().__init__()
        self._title, self._command, self._preview = title, command, preview

    def compose(self) -> ComposeResult:
        """Make the widgets."""
        yield TextLines(id="title")
        yield LinesPane(id="lines")
        yield TextLines(id="footer")

    def on_mount(self) -> None:
        """Show the preview; that of a command when it has ended."""
        self.query_one("#title", TextLines).update([(f"{self._title}?  ", "bold"), (self._command, "cyan")])
        self.query_one(LinesPane).focus()
        self._update()
        self.set_interval(_POLL_S, self._update)

    @property
    def _is_ready(self) -> bool:
        return isinstance(self._preview, str) or self._preview.exit_code is not None

    def _update(self) -> None:
        text = self._preview if isinstance(self._preview, str) else self._preview.tail()
        pane = self.query_one(LinesPane)
        lines = text_lines(text) if text else ["asking what it would do ..." if not self._is_ready else ""]
        if lines != pane.lines:
            pane.show(lines)
        refused = not isinstance(self._preview, str) and self._preview.exit_code not in (None, 0)
        question: Cell = ("y do it   n leave it", "bold")
        if not self._is_ready:
            question = ("... n leave it", "dim")
        elif refused:
            question = ("The preview failed. y do it all the same   n leave it", "red")
        self.query_one("#footer", TextLines).update([question])

    def action_answer(self, yes: bool) -> None:
        """Answer the question; yes is taken only after the preview is there."""
        if not yes or self._is_ready:
            self.dismiss(yes)


class PromptScreen(Screen[str | None]):
    """One line of input."""

    BINDINGS: ClassVar[list[BindingType]] = [Binding("escape", "close", show=False)]

    def __init__(self, title: str, value: str = "", *, help_: str = "") -> None:
        super().__init__()
        self._title, self._value, self._help = title, value, help_

    def compose(self) -> ComposeResult:
        """Make the widgets."""
        yield TextLines(id="title")
        yield Input(self._value, id="input", compact=True)
        yield LinesPane(id="lines")
        yield TextLines(id="footer")

    def on_mount(self) -> None:
        """Show what is asked for."""
        self.query_one("#title", TextLines).update([(self._title, "bold")])
        self.query_one("#footer", TextLines).update([("Enter take it   Esc leave it", "dim")])
        self.query_one(LinesPane).can_focus = False
        self.query_one(LinesPane).show(text_lines(self._help))
        self.query_one(Input).focus()

    def on_input_submitted(self, event: Input.Submitted) -> None:
        """Take the line."""
        self.dismiss(event.value.strip())

    def action_close(self) -> None:
        """Take nothing."""
        self.dismiss(None)
