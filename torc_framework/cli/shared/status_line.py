"""A line on standard error that says how far a command is: redrawn on a terminal, elsewhere printed now and then."""

import shutil
import sys
import time
from typing import Final

from torc_framework.text.terminal import one_line, raw_stream

LINE_INTERVAL_S: Final = 10.0
"""Least seconds between two lines where standard error is no terminal."""
REDRAW_INTERVAL_S: Final = 0.1
"""Least seconds between two states of the line on a terminal."""


class StatusLine:
    """Shows the last text that it was given.

    Args:
        enabled: Texts are shown.
    """

    def __init__(self, *, enabled: bool = True) -> None:
        self._stream = raw_stream(sys.stderr)  # unfiltered: for control sequences
        self._is_enabled = enabled
        self._draws = self._stream.isatty()
        self._is_drawn = False
        # Without a terminal the first line comes after the interval too: a short command prints none.
        self._next = 0.0 if self._draws else time.monotonic() + LINE_INTERVAL_S

    def show(self, text: str) -> None:
        """Show a text, unless the last one was shown just now."""
        now = time.monotonic()
        if not self._is_enabled or now < self._next:
            return
        if self._draws:
            width = shutil.get_terminal_size().columns - 1
            self._stream.write(f"\r\x1b[2K{one_line(text)[:width]}")
        else:
            self._stream.write(f"{one_line(text)}\n")
        self._stream.flush()
        self._is_drawn = self._draws
        self._next = now + (REDRAW_INTERVAL_S if self._draws else LINE_INTERVAL_S)

    def erase(self) -> None:
        """Erase the line on a terminal, because other lines follow."""
        if self._is_drawn:
            self._stream.write("\r\x1b[2K")
            self._stream.flush()
            self._is_drawn = False
