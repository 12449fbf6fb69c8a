"""Progress: reported to a listener, with what keeps attempts from starting also to the server."""

from collections.abc import Callable, Mapping
from typing import Final

from torc_framework.runner.process.settings import Progress, ProgressListener

COUNTS_S: Final = 0.5
"""Least time between two requests for counts."""
COUNTED_JOBS_PER_S: Final = 200_000
"""Most jobs that a runner has the server count per second, on average. It counts about ten million a second."""
LISTENER_S: Final = 0.1
"""Least time between two calls of the listener."""
NOTHING_WAITS: Final[Mapping[str, int]] = {}
RECORD_S: Final = 5.0
"""Least time between two changes of the server's record of why attempts cannot begin. Shorter pauses are ignored."""


class ProgressReporter:
    """Reports changes: of the server's counts, and of the number of attempts that run here.

    Args:
        listener: Called for changes.
        record: Stores on the server why attempts cannot begin, or None when they can again; returns whether it could.
        counts_jobs: Counts are wanted if there is a listener.
    """

    def __init__(
        self,
        listener: ProgressListener | None,
        record: Callable[[str | None], bool] = lambda _: True,
        *,
        counts_jobs: bool = True,
    ) -> None:
        self._wants_counts = listener is not None and counts_jobs
        self._listener, self._record = listener, record
        self._recorded: str | None = None
        self._hindered_at = self._record_at = float("-inf")
        self._counts: Mapping[str, int] = {}
        self._counts_pause_s = COUNTS_S
        self._is_stale = False
        self._counted_at = self._reported_at = float("-inf")
        self._reported: Progress | None = None

    def wants_counts(self, now: float) -> bool:
        """Return whether the next exchange should ask for counts."""
        return self._wants_counts and now - self._counted_at >= self._counts_pause_s

    def wants_recount(self, now: float) -> bool:
        """Return whether an exchange should be made for counts alone, because they do not include the last reports."""
        return self._is_stale and self.wants_counts(now)

    def set_counts(self, counts: Mapping[str, int] | None, now: float, *, has_reports: bool = False) -> None:
        """Set the counts of an answer; None if it has none.

        Args:
            counts: Jobs by status label.
            now: The monotonic clock.
            has_reports: The call reported starts or ends of attempts.
        """
        if counts is None:
            self._is_stale = self._is_stale or has_reports
        else:
            self._counts, self._counted_at, self._is_stale = counts, now, False
            self._counts_pause_s = max(COUNTS_S, sum(counts.values()) / COUNTED_JOBS_PER_S)

    def update(
        self,
        running: int,
        now: float,
        trouble: str | None = None,
        hindrance: str | None = None,
        waits_for: str | None = None,
        *,
        waiting: Mapping[str, int] = NOTHING_WAITS,
    ) -> None:
        """Call the listener, if the state has changed and the last call is not too recent."""
        if (hindrance or self._recorded) and not trouble:
            self._update_record(hindrance, now)
        awaits_counts = self._wants_counts and not (self._counts or trouble)
        if self._listener is None or awaits_counts or now - self._reported_at < LISTENER_S:
            return
        progress = Progress(self._counts, running, trouble, hindrance, waits_for, waiting)
        if progress != self._reported:
            self._reported, self._reported_at = progress, now
            self._listener(progress)

    def _update_record(self, hindrance: str | None, now: float) -> None:
        """Keep the server's record of why attempts cannot begin up to date."""
        if hindrance:
            self._hindered_at = now
        elif now - self._hindered_at < RECORD_S:
            return
        if hindrance != self._recorded and now >= self._record_at:
            self._record_at = now + RECORD_S
            if self._record(hindrance):
                self._recorded = hindrance
