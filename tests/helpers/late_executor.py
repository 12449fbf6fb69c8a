"""A launcher that frees the slots of attempts early and reports their ends late: when all three have begun."""

import time
from collections.abc import Iterable, Sequence

from torc_framework.api import (
    Attempt,
    AttemptEnded,
    AttemptKey,
    AttemptSlotFreed,
    AttemptStarted,
    Capabilities,
    Executor,
    ExitObservation,
    Launcher,
    LauncherEvent,
    RunnerContext,
    hookimpl,
)

ALL = 3
SOON_S = 1.0
"""By then there is nothing left to report of the start."""
PATIENCE_S = 20.0


class LateLauncher(Launcher):
    """Reports good ends when all attempts have begun, and bad ends if they have not in time."""

    name = "late"
    description = "Ends are told late"
    capabilities = Capabilities(can_launch=True)
    poll_interval_s = 0.02

    def __init__(self, options: object, context: RunnerContext) -> None:
        super().__init__(options, context)
        self._open: list[AttemptKey] = []
        self._news: list[LauncherEvent] = []
        self._at_work: list[tuple[float, AttemptKey]] = []
        self._begun, self._patient_until = 0, time.monotonic() + PATIENCE_S

    def start(self, attempts: Sequence[Attempt]) -> None:
        for attempt in attempts:
            self._begun += 1
            self._open.append(attempt.key)
            self._at_work.append((time.monotonic() + SOON_S, attempt.key))
            self._news.append(AttemptStarted(attempt.key, time.time()))

    def poll(self) -> list[LauncherEvent]:
        now = time.monotonic()
        self._news += [AttemptSlotFreed(key) for due, key in self._at_work if due <= now]
        self._at_work = [each for each in self._at_work if each[0] > now]
        is_late = now > self._patient_until
        if self._begun >= ALL or is_late:
            seen = ExitObservation("late", exit_code=int(is_late), ended_at=time.time())
            self._news += [AttemptEnded(key, seen) for key in self._open]
            self._open.clear()
        news, self._news = self._news, []
        return news

    def stop(self, keys: Iterable[AttemptKey], *, force: bool) -> None:
        self._patient_until = 0.0


@hookimpl
def torc_executors() -> list[type[Executor]]:
    return [LateLauncher]
