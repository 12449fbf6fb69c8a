"""The progress of a run on standard error: a bar on a terminal, elsewhere a line every 10 seconds at most."""

import shutil
import sys
import time
from collections.abc import Mapping
from typing import Final, TextIO

from torc_framework.models.statuses import DONE, UNSUCCESSFUL, JobStatus
from torc_framework.runner import Progress
from torc_framework.text.terminal import raw_stream

LINE_INTERVAL_S: Final = 10.0
"""Least seconds between two lines where standard error is no terminal."""
_ENDED: Final = frozenset(status.label for status in DONE) | {JobStatus.PENDING_FAILED.label}


def summary(counts: Mapping[str, int], running: int = 0, interrupted: int = 0) -> str:
    """Return counts of jobs as text: ``3/4 jobs done, 1 running, 1 failed``.

    Args:
        interrupted: How many of the terminated jobs are not done: the next runner continues them.
    """
    total, done = sum(counts.values()), sum(count for label, count in counts.items() if label in _ENDED)
    if interrupted:
        terminated = JobStatus.TERMINATED.label
        done, counts = done - interrupted, {**counts, terminated: counts.get(terminated, 0) - interrupted}
    parts = [f"{done}/{total} jobs done"]
    if running:
        parts.append(f"{running} running")
    parts += [f"{interrupted} interrupted"] if interrupted else []
    parts += [f"{counts[status.label]} {status.label}" for status in UNSUCCESSFUL if counts.get(status.label)]
    return ", ".join(parts)


class ProgressLine:
    """Shows the progress that a runner reports; `finish` leaves the last state on the terminal.

    A server that cannot be reached, and its return, are reported at once, also when progress is not shown.
    """

    def __init__(self, stream: TextIO | None = None, *, enabled: bool = True) -> None:
        self._stream = raw_stream(stream or sys.stderr)  # unfiltered: its lines hold no names from specs
        self._enabled = enabled
        self._draws = self._stream.isatty()
        self._shown = ""
        self._trouble: str | None = None
        # Without a terminal the first line comes after the interval too: a short run prints none.
        self._next = 0.0 if self._draws else time.monotonic() + LINE_INTERVAL_S

    def __call__(self, progress: Progress) -> None:
        """Show a state; without a terminal at most one line in `LINE_INTERVAL_S`."""
        now = time.monotonic()
        if progress.trouble != self._trouble:
            self._show_trouble(progress.trouble)
        if not self._enabled or now < self._next or not progress.counts:
            return
        self._next = 0.0 if self._draws else now + LINE_INTERVAL_S
        text = summary(progress.counts, progress.running)
        if progress.hindrance:
            text += f"; {progress.hindrance}"
        if text == self._shown:
            return
        self._shown = text
        if self._draws:
            self._stream.write(f"\r\x1b[2K{self._bar(progress.counts)} {text}")
        else:
            self._stream.write(f"{text}\n")
        self._stream.flush()

    def _show_trouble(self, trouble: str | None) -> None:
        """Print why the server does not answer, or that it answers again, on a line of its own."""
        self._trouble, self._shown = trouble, ""
        text = "The server goes on" if trouble is None else f"The server cannot go on, waiting for it: {trouble}"
        self._stream.write(f"\r\x1b[2K{text}\n" if self._draws else f"{text}\n")
        self._stream.flush()

    def _bar(self, counts: Mapping[str, int]) -> str:
        width = max(10, min(40, shutil.get_terminal_size().columns - 60))
        total, done = sum(counts.values()), sum(count for label, count in counts.items() if label in _ENDED)
        filled = width if total == 0 else width * done // total
        return f"[{'━' * filled}{' ' * (width - filled)}]"

    def finish(self, counts: Mapping[str, int] | None = None) -> None:
        """Show the last state on a terminal, if it is known, and end its line."""
        if self._draws and counts is not None:
            self(Progress(counts, running=0))
        if self._draws and self._shown:
            self._stream.write("\n")
            self._stream.flush()
