"""Tells a listener how the workflow goes, and the server why attempts cannot begin."""

from collections.abc import Callable, Mapping
from typing import Final

from torc_framework.runner.process.settings import Progress, ProgressListener

COUNTS_S: Final = 0.5
"""How often the server is asked to count, at most."""
TELL_S: Final = 0.1
"""How often the listener is told, at most."""
RECORD_S: Final = 5.0
"""How often the server is told why attempts cannot begin, at most; pauses shorter than that do not end it."""


class ProgressReporter:
    """Tells what has changed: the server's counts, and how many attempts run here.

    Args:
        record: Stores on the server why attempts cannot begin, None at the end of that; returns whether it is stored.
    """

    def __init__(
        self, listener: ProgressListener | None, record: Callable[[str | None], bool] = lambda _: True
    ) -> None:
        self._listener, self._record = listener, record
        self._recorded: str | None = None
        self._hindered_at = self._record_at = float("-inf")
        self._counts: Mapping[str, int] = {}
        self._counted_at = self._told_at = float("-inf")
        self._told: Progress | None = None

    def wants_counts(self, now: float) -> bool:
        """Say whether the next call should ask for counts."""
        return self._listener is not None and now - self._counted_at >= COUNTS_S

    def set_counts(self, counts: Mapping[str, int], now: float) -> None:
        """Take in the server's counts."""
        self._counts, self._counted_at = counts, now

    def update(self, running: int, now: float, trouble: str | None = None, hindrance: str | None = None) -> None:
        """Tell the present state, if it is news and the last telling is not too recent."""
        if (hindrance or self._recorded) and not trouble:
            self._keep(hindrance, now)
        if self._listener is None or not (self._counts or trouble) or now - self._told_at < TELL_S:
            return
        progress = Progress(self._counts, running, trouble, hindrance)
        if progress != self._told:
            self._told, self._told_at = progress, now
            self._listener(progress)

    def _keep(self, hindrance: str | None, now: float) -> None:
        """Have the server know why attempts cannot begin; short pauses in between do not count."""
        if hindrance:
            self._hindered_at = now
        elif now - self._hindered_at < RECORD_S:
            return
        if hindrance != self._recorded and now >= self._record_at:
            self._record_at = now + RECORD_S
            if self._record(hindrance):
                self._recorded = hindrance
