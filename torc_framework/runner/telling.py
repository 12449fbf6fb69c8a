"""Tells a listener how the workflow goes."""

from collections.abc import Mapping
from typing import Final

from torc_framework.runner.settings import Progress, ProgressListener

COUNTS_S: Final = 0.5
"""How often the server is asked to count, at most."""
TELL_S: Final = 0.1
"""How often the listener is told, at most."""


class Teller:
    """Tells what has changed: the server's counts, and how many attempts run here."""

    def __init__(self, listener: ProgressListener | None) -> None:
        self._listener = listener
        self._counts: Mapping[str, int] = {}
        self._counted_at = self._told_at = float("-inf")
        self._told: Progress | None = None

    def wants_counts(self, now: float) -> bool:
        """Say whether the next call should ask for counts."""
        return self._listener is not None and now - self._counted_at >= COUNTS_S

    def counted(self, counts: Mapping[str, int], now: float) -> None:
        """Take in the server's counts."""
        self._counts, self._counted_at = counts, now

    def tell(self, running: int, now: float, trouble: str | None = None, hindrance: str | None = None) -> None:
        """Tell the present state, if it is news and the last telling is not too recent."""
        if self._listener is None or not (self._counts or trouble) or now - self._told_at < TELL_S:
            return
        progress = Progress(self._counts, running, trouble, hindrance)
        if progress != self._told:
            self._told, self._told_at = progress, now
            self._listener(progress)
