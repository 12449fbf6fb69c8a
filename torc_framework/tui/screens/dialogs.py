"""Screens over the main one: a text, a question before a command, a line of input, and the output of a command."""

import time
from collections.abc import Callable, Sequence
from typing import ClassVar, Final

from attrs import frozen
from textual.app import ComposeResult
from textual.binding import BindingType
from textual.screen import Screen
from textual.widgets import Input

from torc_framework.text.quantities import duration_text
from torc_framework.text.terminal import cleaned
from torc_framework.tui.tables.bindings import bound
from torc_framework.tui.tables.lines_pane import Line, LinesPane, wrapped
from torc_framework.tui.tables.looks import Cell
from torc_framework.tui.tables.text_line import TextLines
from torc_framework.tui.work.commands import ChildCommand

_POLL_S: Final = 0.3
_COPIED: Final = "copied   "
"""Said after a command was sent to the terminal's clipboard (OSC 52 of xterm, "Operating System Commands")."""
_NO_OUTPUT: Final = "It has written nothing yet. It goes on when this is closed (q)."
_SCROLL: Final = "↑ ↓ ← → PgUp PgDn scroll   q close"


def text_lines(text: str) -> list[str]:
    """Return a text as lines without control characters."""
    return [cleaned(line).replace("\t", "    ") for line in text.rstrip("\n").split("\n")]


class TextScreen(Screen[None]):
    """Lines that scroll.

    Args:
        title: First line.
        content: A text, or its lines.
        hint: Keys, in the last line.
        from_end: The end of the text is shown first.
    """

    BINDINGS: ClassVar[list[BindingType]] = [
        bound("q,escape,question_mark,enter", "close"),
        bound("g", "edge(-1)"),
        bound("G", "edge(1)"),
    ]

    def __init__(
        self, title: str, content: str | Sequence[Line], hint: str = _SCROLL, *, from_end: bool = False
    ) -> None:
        super().__init__()
        self._title, self._content, self._hint, self._from_end = title, content, hint, from_end

    def compose(self) -> ComposeResult:
        """Make the widgets."""
        yield TextLines(id="title")
        yield LinesPane(id="lines")
        yield TextLines(id="footer")

    def on_mount(self) -> None:
        """Show the text."""
        self.query_one("#title", TextLines).update([(self._title, "bold")])
        self.query_one("#footer", TextLines).update([(self._hint, "dim")])
        self._show_content()
        self.set_focus(self.query_one(LinesPane))

    def on_resize(self) -> None:
        """Break the lines of a text for this width."""
        self._show_content()

    def _show_content(self) -> None:
        if isinstance(self._content, str):
            width = max(20, self.app.size.width)
            lines: Sequence[Line] = [part for line in text_lines(self._content) for part in wrapped(line, width)]
        else:
            lines = self._content
        self.query_one(LinesPane).show(lines, top=len(lines) if self._from_end else None)

    def action_close(self) -> None:
        """Close the screen."""
        self.dismiss(None)

    def action_edge(self, side: int) -> None:
        """Go to the first or the last line."""
        self.query_one(LinesPane).action_edge(side)


class OutputScreen(TextScreen):
    """The output of a command as it comes."""

    BINDINGS: ClassVar[list[BindingType]] = [
        bound("ctrl+x", "interrupt"),
        bound("Y", "copy"),
    ]

    def __init__(self, child: ChildCommand, on_close: Callable[[ChildCommand], None]) -> None:
        super().__init__(child.text, "")
        self._child, self._on_close = child, on_close
        self._shown: str | None = None
        self._copied = ""

    def on_mount(self) -> None:
        """Show the output and follow it."""
        super().on_mount()
        self.set_interval(_POLL_S, self._update)

    def _show_content(self) -> None:
        self._shown = None
        self._update()

    def _update(self) -> None:
        pane, code = self.query_one(LinesPane), self._child.exit_code
        text = self._child.tail()
        if code is None and not text:
            text = _NO_OUTPUT
        if text != self._shown:
            follows = pane.is_at_end
            self._shown = text
            shown = [line.rpartition("\r")[2] for line in text_lines(text.replace("\r\n", "\n"))]
            width = max(20, self.app.size.width)
            lines = [part for line in shown for part in wrapped(line, width)]
            pane.show(lines, top=len(lines) if follows else None)
        state: Cell = (f"under way for {duration_text(int(time.time() - self._child.started_at))}", "cyan")
        if code is not None:
            state = ("✓ done", "green") if code == 0 else (f"✗ ended with exit code {code}", "red")
        self.query_one("#title", TextLines).update([state, (f"  {self._child.text}", "bold")])
        stop = "   Ctrl-X interrupt" if code is None else ""
        self.query_one("#footer", TextLines).update([(f"{self._copied}{_SCROLL}   Y copy the command{stop}", "dim")])

    def action_copy(self) -> None:
        """Copy the command."""
        self.app.copy_to_clipboard(self._child.text)
        self._copied = _COPIED
        self._update()

    def action_interrupt(self) -> None:
        """Interrupt the command as Ctrl-C does."""
        self._child.interrupt()

    def action_close(self) -> None:
        """Close the screen; a command under way goes on."""
        self._on_close(self._child)
        self.dismiss(None)


class ConfirmScreen(Screen[bool | None]):
    """What a command would do, and the question whether it is to be done; None is the other way to do it.

    Args:
        title: The question, without its sign.
        command: The command that does the same.
        preview: What it would do, or the command that says so.
        other: Another way to do it, offered with the key ``u``; empty if there is none.
    """

    BINDINGS: ClassVar[list[BindingType]] = [
        bound("y", "answer(True)"),
        bound("n,q,escape", "answer(False)"),
        bound("u", "other"),
        bound("Y", "copy"),
    ]

    def __init__(self, title: str, command: str, preview: "str | ChildCommand", other: str = "") -> None:
        super().__init__()
        self._title, self._command, self._preview, self._other = title, command, preview, other
        self._copied = ""

    def compose(self) -> ComposeResult:
        """Make the widgets."""
        yield TextLines(id="title")
        yield LinesPane(id="lines")
        yield TextLines(id="footer")

    def on_mount(self) -> None:
        """Show the preview; that of a command when it has ended."""
        self.query_one("#title", TextLines).update([(f"{self._title}?", "bold")])
        self.set_focus(self.query_one(LinesPane))
        self._update()
        self.set_interval(_POLL_S, self._update)

    @property
    def _is_ready(self) -> bool:
        return isinstance(self._preview, str) or self._preview.exit_code is not None

    def _update(self) -> None:
        text = self._preview if isinstance(self._preview, str) else self._preview.tail()
        pane = self.query_one(LinesPane)
        lines: list[Line] = [*self._command_lines()]
        width = max(20, self.app.size.width)
        shown = text_lines(text) if text else ["asking what it would do ..." if not self._is_ready else ""]
        lines += [part for line in shown for part in wrapped(line, width)]
        if lines != pane.lines:
            pane.show(lines)
        refused = not isinstance(self._preview, str) and self._preview.exit_code not in (None, 0)
        copy = f"   u {self._other}" if self._other else ""
        copy += "   Y copy the command" if self._command else ""
        question: Cell = (f"{self._copied}y do it   n leave it{copy}", "bold")
        if not self._is_ready:
            question = ("... n leave it", "dim")
        elif refused:
            question = (f"Refused now: y try it   n leave it{copy}", "red")
        self.query_one("#footer", TextLines).update([question])

    def _command_lines(self) -> list[Line]:
        """Return the command that does the same, whole: in as many lines as it takes."""
        if not self._command:
            return []
        width = max(20, self.app.size.width)
        parts = [self._command[at : at + width] for at in range(0, len(self._command), width)]
        return [*([(part, "cyan")] for part in parts), ""]

    def action_copy(self) -> None:
        """Copy the command."""
        if self._command:
            self.app.copy_to_clipboard(self._command)
            self._copied = _COPIED
            self._update()

    def action_other(self) -> None:
        """Choose the other way."""
        if self._other and self._is_ready:
            self.dismiss(None)

    def action_answer(self, yes: bool) -> None:
        """Answer the question; yes is taken only after the preview is there."""
        if not yes or self._is_ready:
            self.dismiss(yes)


@frozen
class TypingHelp:
    """Help while a line is typed.

    Attributes:
        lines: Returns what is shown below the line.
        completed: Returns the line with its last word completed.
    """

    lines: Callable[[str], list[Line]]
    completed: Callable[[str], str]


class PromptScreen(Screen[str | None]):
    """One line of input."""

    BINDINGS: ClassVar[list[BindingType]] = [
        bound("escape", "close"),
        bound("tab", "complete"),
        bound("down", "scroll_help(1)"),
        bound("up", "scroll_help(-1)"),
    ]

    def __init__(self, title: str, value: str = "", *, help_: str = "", typing: TypingHelp | None = None) -> None:
        super().__init__()
        self._title, self._value, self._help, self._typing = title, value, help_, typing

    def compose(self) -> ComposeResult:
        """Make the widgets."""
        yield TextLines(id="title")
        yield Input(self._value, id="input", compact=True, select_on_focus=False)
        yield LinesPane(id="lines")
        yield TextLines(id="footer")

    def on_mount(self) -> None:
        """Show what is asked for."""
        complete = "   Tab complete" if self._typing is not None else ""
        self.query_one("#title", TextLines).update([(self._title, "bold")])
        self.query_one("#footer", TextLines).update([(f"Enter take it   Esc leave it{complete}", "dim")])
        self.query_one(LinesPane).can_focus = False
        self._show_help(self._value)
        self.set_focus(self.query_one(Input))

    def _show_help(self, value: str) -> None:
        lines: list[Line] = [*text_lines(self._help)]
        self.query_one(LinesPane).show(self._typing.lines(value) if self._typing is not None else lines, top=0)

    def on_input_changed(self, event: Input.Changed) -> None:
        """Show what may follow."""
        if self._typing is not None:
            self._show_help(event.value)

    def action_complete(self) -> None:
        """Complete the last word."""
        if self._typing is not None:
            line = self.query_one(Input)
            line.value = self._typing.completed(line.value)
            line.cursor_position = len(line.value)

    def action_scroll_help(self, lines: int) -> None:
        """Scroll the help."""
        self.query_one(LinesPane).go(self.query_one(LinesPane).top + lines)

    def on_input_submitted(self, event: Input.Submitted) -> None:
        """Take the line."""
        self.dismiss(event.value.strip())

    def action_close(self) -> None:
        """Take nothing."""
        self.dismiss(None)
