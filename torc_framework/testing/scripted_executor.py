"""An executor whose attempts end as a script says, for endings that cannot be caused on demand.

The command of a job is JSON: fields of `ExitObservation` for each attempt, one after the other; the last
is repeated. A plugin file of the project makes it known::

    # torc_plugins/scripted.py
    from torc_framework.testing.scripted_executor import torc_executors

A job such as this ends for lack of memory, as a batch system tells it, and then completes::

    executor: scripted
    command: '[{"exit_code": 1, "scheduler_state": "OUT_OF_MEMORY", "stderr": "Killed"}, {"exit_code": 0}]'

``stdout`` and ``stderr`` are written to the logs; ``runtime_s`` is how long it claims to have run, and
``executor`` the one that it claims to be, for classifiers that speak for one only.
"""

import json
import time
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, ClassVar, Final

from torc_framework.api import (
    Attempt,
    AttemptEnded,
    AttemptKey,
    AttemptStarted,
    Capabilities,
    Executor,
    ExitObservation,
    Launcher,
    LauncherEvent,
    hookimpl,
)

_OWN: Final = ("stdout", "stderr", "runtime_s")


class ScriptedLauncher(Launcher):
    """A launcher that ends attempts as their commands say."""

    name: ClassVar[str] = "scripted"
    description: ClassVar[str] = "Attempts that end as their commands say, for tests"
    capabilities: Capabilities = Capabilities(can_launch=True)
    poll_interval_s: ClassVar[float] = 0.01

    def __init__(self, options: Any, context: Any) -> None:
        super().__init__(options, context)
        self._news: list[LauncherEvent] = []

    def start(self, attempts: Sequence[Attempt]) -> None:
        """End each attempt as its command says; `poll` returns the events."""
        for attempt in attempts:
            self._news += self._play(attempt)

    def _play(self, attempt: Attempt) -> list[LauncherEvent]:
        now = time.time()
        try:
            script: Any = json.loads(attempt.command)
            acts = script if isinstance(script, list) else [script]
            act: Mapping[str, Any] = acts[min(attempt.key.attempt_id, len(acts)) - 1]
            for path, stream in ((attempt.stdout_path, "stdout"), (attempt.stderr_path, "stderr")):
                with Path(path).open("a", encoding="utf-8") as log:
                    log.write(act.get(stream, ""))
            values = {name: value for name, value in act.items() if name not in _OWN}
            who = values.pop("executor", self.name)
            seen = ExitObservation(who, started_at=now - act.get("runtime_s", 0.0), ended_at=now, **values)
        except (AttributeError, IndexError, OSError, TypeError, ValueError) as error:
            seen = ExitObservation(self.name, ended_at=now, launch_error=f"no script: {error}")
            return [AttemptEnded(attempt.key, seen)]
        return [AttemptStarted(attempt.key, now), AttemptEnded(attempt.key, seen)]

    def poll(self) -> list[LauncherEvent]:
        """Return the events of the attempts that were started."""
        news, self._news = self._news, []
        return news

    def stop(self, keys: Iterable[AttemptKey], *, force: bool) -> None:
        """Do nothing: every attempt has ended already."""


@hookimpl
def torc_executors() -> Sequence[type[Executor]]:
    """Offer the executor."""
    return [ScriptedLauncher]
