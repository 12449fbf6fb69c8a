"""A launcher whose attempts wait for a file ``room``, and that keeps their ends until the server has stored them."""

import time
from collections.abc import Iterable, Sequence
from pathlib import Path

from torc_framework.api import (
    Attempt,
    AttemptEnded,
    AttemptKey,
    AttemptStarted,
    AttemptWaiting,
    Capabilities,
    Executor,
    ExitObservation,
    Launcher,
    LauncherEvent,
    RunnerContext,
    hookimpl,
)

REASON = "Unschedulable: 0/1 nodes are available: 1 Insufficient cpu."


class WaitingLauncher(Launcher):
    """Reports attempts as waiting until the file is there; appends the keys of stored ends to a file ``stored``."""

    name = "waiting"
    description = "Attempts wait for a file"
    capabilities = Capabilities(can_launch=True)
    poll_interval_s = 0.02

    def __init__(self, options: object, context: RunnerContext) -> None:
        super().__init__(options, context)
        self._folder = Path(context.working_dir)
        self._waiting: list[AttemptKey] = []
        self._news: list[LauncherEvent] = []

    def start(self, attempts: Sequence[Attempt]) -> None:
        for attempt in attempts:
            self._waiting.append(attempt.key)
            self._news.append(AttemptWaiting(attempt.key, REASON))

    def poll(self) -> list[LauncherEvent]:
        if (self._folder / "room").exists():
            for key in self._waiting:
                ended = AttemptEnded(key, ExitObservation(self.name, exit_code=0, ended_at=time.time()))
                self._news += [AttemptStarted(key, time.time()), AttemptWaiting(key, "too late"), ended]
            self._waiting.clear()
        news, self._news = self._news, []
        return news

    def stop(self, keys: Iterable[AttemptKey], *, force: bool) -> None:
        stopped = [key for key in keys if key in self._waiting]
        self._waiting = [key for key in self._waiting if key not in stopped]
        seen = ExitObservation(self.name, signal=9 if force else 15, ended_at=time.time())
        self._news += [AttemptEnded(key, seen) for key in stopped]

    def ends_stored(self, keys: Iterable[AttemptKey]) -> None:
        with (self._folder / "stored").open("a") as stored:
            stored.writelines(f"{key.job_id} {key.attempt_id}\n" for key in keys)


@hookimpl
def torc_executors() -> Sequence[type[Executor]]:
    return [WaitingLauncher]
