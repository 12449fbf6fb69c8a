"""A launcher for a queue whose daemon is gone: it begins attempts, and never tells of an end.

The method that the variable TOYQ_RAISES names raises an error.
"""

import os
import time
from collections.abc import Iterable, Sequence
from typing import Any

from torc_framework.api import (
    Adoption,
    Attempt,
    AttemptKey,
    AttemptStarted,
    Capabilities,
    Executor,
    Launcher,
    LauncherEvent,
    LaunchSite,
    RunnerContext,
    hookimpl,
)


def _raise_in(method: str) -> None:
    if os.environ.get("TOYQ_RAISES") == method:
        raise RuntimeError("boom")


class ToyQueue(Launcher):
    """Begins attempts whose ends it never reports."""

    name = "toyq"
    description = "A queue without a daemon"
    capabilities = Capabilities(can_launch=True)
    poll_interval_s = 0.02

    def __init__(self, options: object, context: RunnerContext) -> None:
        super().__init__(options, context)
        _raise_in("__init__")
        self._news: list[LauncherEvent] = []

    def start(self, attempts: Sequence[Attempt]) -> None:
        _raise_in("start")
        self._news += [AttemptStarted(attempt.key, time.time()) for attempt in attempts]

    def poll(self) -> list[LauncherEvent]:
        _raise_in("poll")
        if os.environ.get("TOYQ_RAISES") == "poll answers None":
            return None  # type: ignore[return-value] # the mistake of an author
        news, self._news = self._news, []
        return news

    def stop(self, keys: Iterable[AttemptKey], *, force: bool) -> None:
        _raise_in("stop")

    def wait_fd(self) -> int | None:
        _raise_in("wait_fd")
        return None

    def launch_site(self) -> LaunchSite | None:
        _raise_in("launch_site")
        return None

    def state(self) -> dict[str, Any]:
        _raise_in("state")
        return {"seen": object()} if os.environ.get("TOYQ_RAISES") == "state is no JSON" else {}

    def adopt(self, state: object, keys: Sequence[AttemptKey]) -> Adoption:
        _raise_in("adopt")
        return Adoption(unknown=tuple(keys))

    def abandon(self) -> None:
        _raise_in("abandon")


class HalfQueue(ToyQueue):
    """Lacks the method stop."""

    name = "halfq"
    stop = Launcher.stop


@hookimpl
def torc_executors() -> Sequence[type[Executor]]:
    return [ToyQueue, HalfQueue]
