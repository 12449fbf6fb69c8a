"""What the attempts wait for that were given to an executor and have not begun."""

from collections import Counter
from collections.abc import Mapping
from typing import Final

from torc_framework.executors import AttemptKey, AttemptWaiting
from torc_framework.models.exchange import WaitingReport

REPORT_S: Final = 5.0
"""Least time between two reports to the server. Of the changes in between, an attempt's last one is reported."""
MOST_REPORTS: Final = 1000
"""Most changes in one report; the others follow in the next."""
LONGEST_REASON: Final = 1000
"""Characters of a reason that are kept."""


class WaitingReasons:
    """The newest reason of each attempt that has not begun, and the changes that the server does not know."""

    def __init__(self) -> None:
        self._reasons: dict[AttemptKey, str] = {}
        self._changed: dict[AttemptKey, str | None] = {}
        self._due_at = float("-inf")
        self._counts: Mapping[str, int] | None = {}

    def note(self, event: AttemptWaiting) -> None:
        """Take over what a launcher reports."""
        reason = (event.reason or "").strip()[:LONGEST_REASON] or None
        if reason == self._reasons.get(event.key):
            return
        self._changed[event.key], self._counts = reason, None
        if reason is None:
            del self._reasons[event.key]
        else:
            self._reasons[event.key] = reason

    def forget(self, key: AttemptKey) -> None:
        """Forget an attempt that has begun or ended, or that the runner does not hold any more."""
        if self._reasons.pop(key, None) is not None:
            self._counts = None
        self._changed.pop(key, None)

    def counts(self) -> Mapping[str, int]:
        """Return how many attempts wait for each reason, the most frequent first."""
        if self._counts is None:
            self._counts = dict(Counter(self._reasons.values()).most_common())
        return self._counts

    def due_reports(self, now: float) -> list[WaitingReport]:
        """Return the changes that the server should be told of now."""
        if not self._changed or now < self._due_at:
            return []
        self._due_at = now + REPORT_S
        keys = list(self._changed)[:MOST_REPORTS]
        return [WaitingReport(key.job_id, key.attempt_id, self._changed.pop(key)) for key in keys]
