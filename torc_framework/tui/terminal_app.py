"""An app as a guest of its terminal: signals end it in order, and a terminal that is too small gets a message."""

import asyncio
import signal
from typing import Any, ClassVar, Final

from textual import events
from textual.app import App, ComposeResult
from textual.binding import BindingType
from textual.drivers.linux_driver import LinuxDriver
from textual.geometry import Size
from textual.screen import Screen

from torc_framework.tui.tables.bindings import ShowsMessage, bound
from torc_framework.tui.tables.text_line import TextLines

LEAST_COLUMNS: Final = 40
LEAST_LINES: Final = 12
"""Size of the smallest terminal in which each screen shows something."""
_SIGNALS: Final = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


class TerminalDriver(LinuxDriver):
    """The driver of textual, for which a SIGCONT counts only after Ctrl-Z.

    A program that was stopped by SIGSTOP, or that gets a second SIGCONT, has left no mode that it could enter again: it
    would read the terminal in two threads, of which one might stay for ever.
    """

    _is_suspended = False

    def suspend_application_mode(self) -> None:
        """Give the terminal back."""
        super().suspend_application_mode()
        self._is_suspended = True

    def resume_application_mode(self) -> None:
        """Take the terminal again, if it was given back."""
        if self._is_suspended:
            self._is_suspended = False
            super().resume_application_mode()


class SmallScreen(Screen[None]):
    """The message of a terminal that is too small.

    Args:
        columns: Least width.
        lines: Least height.
    """

    BINDINGS: ClassVar[list[BindingType]] = [bound("q", "app.leave")]

    def __init__(self, columns: int, lines: int) -> None:
        super().__init__()
        self._least = columns, lines

    def compose(self) -> ComposeResult:
        """Make the widget."""
        yield TextLines(id="lines")

    def on_resize(self, event: events.Resize) -> None:
        """Show the sizes."""
        columns, lines = self._least
        texts = ("too small:", f"{event.size.width}x{event.size.height},", f"{columns}x{lines} fits", "q quits")
        self.query_one(TextLines).update(*([(text, "bold")] for text in texts))


class TerminalApp(App[None]):
    """An app with a main screen and screens over it."""

    BINDINGS: ClassVar[list[BindingType]] = [
        bound("ctrl+c", "step_out"),
        bound("ctrl+z", "suspend_process"),
    ]

    def __init__(self) -> None:
        super().__init__(driver_class=TerminalDriver, ansi_color=True)

    async def on_event(self, event: events.Event) -> None:
        """Deal with a key when the screen that an earlier one opened can take it."""
        if isinstance(event, events.Key) and not event.is_forwarded:
            while self.screen_stack and not self.screen.is_mounted and not self._exit:
                await asyncio.sleep(0)
            if self.screen_stack and isinstance(self.screen, ShowsMessage):
                self.screen.drop_message()
        await super().on_event(event)

    def begin(self, main: Screen[Any]) -> None:
        """Show the main screen; end in order after a signal."""
        loop = asyncio.get_running_loop()
        for number in _SIGNALS:
            loop.add_signal_handler(number, self._end, number)
        self.push_screen(main)
        self._fit(self.size)

    def _end(self, number: signal.Signals) -> None:
        """End with the exit code that shells give a program that a signal ended (POSIX, "Exit Status for Commands")."""
        self.exit(return_code=128 + number)

    def on_resize(self, event: events.Resize) -> None:
        """Show nothing but a message in a terminal that is too small."""
        self._fit(event.size)

    def _fit(self, size: Size) -> None:
        is_small = size.width < LEAST_COLUMNS or size.height < LEAST_LINES
        if is_small and not isinstance(self.screen, SmallScreen):
            self.push_screen(SmallScreen(LEAST_COLUMNS, LEAST_LINES))
        elif not is_small and isinstance(self.screen, SmallScreen):
            self.pop_screen()

    def action_step_out(self) -> None:
        """Leave a dialog as Esc does, else the program."""
        if len(self.screen_stack) > 2 and not isinstance(self.screen, SmallScreen):
            self.simulate_key("escape")
        else:
            self.action_leave()

    def action_leave(self) -> None:
        """End the program."""
        self.exit()
