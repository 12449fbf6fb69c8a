"""Stops attempts: at their run time limit, when the workflow is canceled, when the runner must end."""

import heapq
from collections.abc import Callable, Iterable
from itertools import count

from torc_framework.models.exits import StopReason
from torc_framework.runner.attempts.held_jobs import HeldJob, JobStage

StopAttempts = Callable[[list[HeldJob], bool], None]
"""Stops held jobs through their launchers; True sends SIGKILL."""


class StopSchedule:
    """Keeps deadlines and escalates: SIGTERM first for jobs that support it, SIGKILL after the lead time.

    Args:
        stop: Passes a request on to the launchers.
        term_lead_s: Seconds between the two signals.

    Attributes:
        cause: What makes the runner end; None as long as it does not have to.
    """

    def __init__(self, stop: StopAttempts, term_lead_s: float) -> None:
        self._stop, self._lead_s = stop, term_lead_s
        self.cause: str | None = None
        self._due: list[tuple[float, int, HeldJob, StopReason]] = []
        self._ties = count()

    def limit(self, item: HeldJob, now: float, age_s: float) -> None:
        """Enforce the run time limit of an attempt that began ``age_s`` seconds ago."""
        if item.job.resources.runtime_s is not None:
            self._add(now + item.job.resources.runtime_s - age_s, item, StopReason.RUNTIME_LIMIT)

    def stop(self, items: Iterable[HeldJob], reason: StopReason, now: float, *, force: bool = False) -> None:
        """Stop these running attempts by SIGKILL, or by SIGTERM first where the job supports it and not ``force``."""
        gently: list[HeldJob] = []
        at_once: list[HeldJob] = []
        for item in items:
            is_gentle = item.job.supports_termination and not force
            if item.stop_forced or (is_gentle and item.stop_reason is not None):
                continue  # it is being stopped already
            if item.stop_reason is None:
                item.stop_reason, item.stop_cause = reason, self.cause if reason is StopReason.SHUTDOWN else None
            item.stop_forced = not is_gentle
            (gently if is_gentle else at_once).append(item)
            if is_gentle:
                self._add(now + self._lead_s, item, reason)
        for group, forced in ((gently, False), (at_once, True)):
            if group:
                self._stop(group, forced)

    def _add(self, when: float, item: HeldJob, reason: StopReason) -> None:
        heapq.heappush(self._due, (when, next(self._ties), item, reason))

    def run(self, now: float) -> list[HeldJob]:
        """Stop the attempts whose deadline has passed, and return them."""
        stopped = []
        while self._due and self._due[0][0] <= now:
            _, _, item, reason = heapq.heappop(self._due)
            if item.stage is JobStage.RUNNING and not item.stop_forced:
                self.stop([item], reason, now, force=item.stop_reason is not None)
                stopped.append(item)
        return stopped

    def next_due(self) -> float | None:
        """Return when `run` should be called again; None if there is no deadline."""
        return self._due[0][0] if self._due else None
