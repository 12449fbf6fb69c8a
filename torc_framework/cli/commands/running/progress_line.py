"""The progress of a run on standard error: a bar on a terminal, elsewhere a line every 10 seconds at most."""

import shutil
import sys
import time
from collections import Counter
from collections.abc import Iterable, Mapping
from typing import Final, TextIO

from torc_framework.models.statuses import DONE, JobStatus
from torc_framework.runner import Progress
from torc_framework.text.headline import counts_text
from torc_framework.text.terminal import one_line, raw_stream
from torc_framework.text.widths import shortened

LINE_INTERVAL_S: Final = 10.0
"""Least seconds between two lines where standard error is no terminal."""
_MOST_REASONS: Final = 4
_LONGEST_REASON: Final = 120
_ENDED: Final = frozenset(status.label for status in DONE) | {JobStatus.PENDING_FAILED.label}


def waiting_text(waiting: Mapping[str, int]) -> str:
    """Return how many attempts wait that were given to an executor, and for what; empty if none does.

    A single reason is shown whole. Of several only their first words are, up to a colon.

    Args:
        waiting: Number of attempts by reason, the most frequent first.
    """
    if not waiting:
        return ""
    total = sum(waiting.values())
    words: Counter[str] = Counter()
    for reason, number in waiting.items():
        words[one_line(reason).partition(": ")[0]] += number
    if len(waiting) == 1 or len(words) == 1:
        said = one_line(next(iter(waiting)))
    else:
        said = ", ".join(f"{number:,} {word}" for word, number in words.most_common(_MOST_REASONS))
    said = shortened(said, _LONGEST_REASON, ellipsis="...", at_end=True)
    return f"{total:,} {'waits' if total == 1 else 'wait'}: {said}"


class ProgressLine:
    """Shows the progress that a runner reports, until `finish`.

    A server that cannot be reached, and its return, are reported at once, also when progress is not shown.

    Attributes:
        stream: Where it writes; names from specs are cleaned there.
        is_enabled: Progress is shown.
    """

    def __init__(self, stream: TextIO | None = None, *, enabled: bool = True) -> None:
        self.stream = stream or sys.stderr
        self._stream = raw_stream(self.stream)  # unfiltered: for control sequences
        self.is_enabled = enabled
        self._draws = self._stream.isatty()
        self._shown = self._waited = ""
        self._trouble: str | None = None
        # Without a terminal the first line comes after the interval too: a short run prints none.
        self._next = 0.0 if self._draws else time.monotonic() + LINE_INTERVAL_S

    def __call__(self, progress: Progress) -> None:
        """Show a state; without a terminal at most one line in `LINE_INTERVAL_S`."""
        now = time.monotonic()
        if progress.trouble != self._trouble:
            self._show_trouble(progress.trouble)
        if progress.waits_for is None:
            self._waited = ""
        begins_to_wait = progress.waits_for is not None and not self._waited
        if not self.is_enabled or (now < self._next and not begins_to_wait) or not progress.counts:
            return
        self._next = 0.0 if self._draws else now + LINE_INTERVAL_S
        self._waited = progress.waits_for or ""
        said = counts_text(progress.counts), progress.hindrance, waiting_text(progress.waiting), progress.waits_for
        text = "; ".join(filter(None, said))
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

    def print_above(self, lines: Iterable[str]) -> None:
        """Print lines above the line of progress, which is then drawn again."""
        if self._draws and self._shown:
            self._stream.write("\r\x1b[2K")
        self.stream.write("".join(f"{line}\n" for line in lines))
        self._shown = ""
        self.stream.flush()

    def print_warning(self, text: str) -> None:
        """Print a warning on a line of its own, also when progress is not shown."""
        self.print_above([f"Warning: {one_line(text)}"])

    @property
    def is_terminal(self) -> bool:
        """Whether it draws on a terminal."""
        return self._draws

    def _bar(self, counts: Mapping[str, int]) -> str:
        width = max(10, min(40, shutil.get_terminal_size().columns - 60))
        total, done = sum(counts.values()), sum(count for label, count in counts.items() if label in _ENDED)
        filled = width if total == 0 else width * done // total
        return f"[{'━' * filled}{' ' * (width - filled)}]"

    def finish(self, counts: Mapping[str, int] | None = None) -> None:
        """Erase the line on a terminal, because a report follows; without counts, end it."""
        if self._draws and self._shown:
            self._stream.write("\n" if counts is None else "\r\x1b[2K")
            self._stream.flush()
