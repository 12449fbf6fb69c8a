"""The listeners of a run with several runners: one call at a time, with the progress of all sites together."""

import threading
from collections import Counter

from torc_framework.runner.process.settings import FailureNotice, Progress, RunListeners


class SharedListeners:
    """Passes on what the runners of all sites report, from any of their threads."""

    def __init__(self, listeners: RunListeners) -> None:
        self._listeners, self._lock = listeners, threading.Lock()
        self._reported: dict[str, Progress] = {}
        self._newest: Progress | None = None
        self._absent: dict[str, str] = {}

    def of(self, site: str) -> RunListeners:
        """Return the listeners for the runner of a site."""
        return RunListeners(
            progress=None if self._listeners.progress is None else lambda progress: self._show(site, progress),
            failure=None if self._listeners.failure is None else self._fail,
            warning=self.warn,
        )

    def warn(self, text: str) -> None:
        """Pass on a warning."""
        if self._listeners.warning is not None:
            with self._lock:
                self._listeners.warning(text)

    def note_absence(self, site: str, text: str | None) -> None:
        """Mention a site without a runner in the progress; None if it has one again, or needs none."""
        with self._lock:
            self._absent.pop(site, None)
            if text is not None:
                self._absent[site] = text

    def note_end(self, site: str) -> None:
        """Leave the last progress of a site out, because its runner has ended."""
        with self._lock:
            self._reported.pop(site, None)

    def _fail(self, notice: FailureNotice) -> None:
        if self._listeners.failure is not None:
            with self._lock:
                self._listeners.failure(notice)

    def _show(self, site: str, progress: Progress) -> None:
        if self._listeners.progress is None:
            return
        with self._lock:
            former = self._reported.get(site)
            if self._newest is None or former is None or progress.counts is not former.counts:
                self._newest = progress  # the other runners' counts are older
            self._reported[site] = progress
            self._listeners.progress(self._together(self._newest))

    def _together(self, newest: Progress) -> Progress:
        """Return the progress of all sites; what they wait for is shown only if all of them wait."""
        reported = self._reported.values()
        hindrances = dict.fromkeys(filter(None, (*(each.hindrance for each in reported), *self._absent.values())))
        waits = [each.waits_for for each in reported]
        return Progress(
            newest.counts,
            sum(each.running for each in reported),
            next(filter(None, (each.trouble for each in reported)), None),
            "; ".join(hindrances) or None,
            waits[-1] if all(waits) else None,
            dict(sum((Counter(each.waiting) for each in reported), Counter()).most_common()),
        )
