"""A launcher as a plugin author would begin one: subprocesses, no descriptor to wait for, no adoption."""

import os
import signal
import subprocess
import time
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

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
    RunnerContext,
    hookimpl,
)


class SimpleLauncher(Launcher):
    """Runs each attempt as a subprocess."""

    name = "simple"
    description = "Subprocesses, nothing else"
    capabilities = Capabilities(can_launch=True)
    poll_interval_s = 0.02

    def __init__(self, options: object, context: RunnerContext) -> None:
        super().__init__(options, context)
        self._running: dict[AttemptKey, tuple[subprocess.Popen[bytes], float]] = {}
        self._news: list[LauncherEvent] = []
        self._asked: set[AttemptKey] = set()

    def processes(self, keys: Iterable[AttemptKey]) -> Mapping[AttemptKey, Sequence[int]]:
        """Answer the second question only, as one that has to ask others first."""
        known = {key: [self._running[key][0].pid] for key in keys if key in self._asked and key in self._running}
        self._asked.update(keys)
        return known

    def start(self, attempts: Sequence[Attempt]) -> None:
        for attempt in attempts:
            with Path(attempt.stdout_path).open("ab") as out, Path(attempt.stderr_path).open("ab") as err:
                process = subprocess.Popen(
                    ["/bin/sh", "-c", attempt.command],
                    cwd=attempt.working_dir,
                    env={**os.environ, **attempt.environment},
                    stdout=out,
                    stderr=err,
                    start_new_session=True,
                )
            self._running[attempt.key] = process, time.time()
            self._news.append(AttemptStarted(attempt.key, time.time()))

    def poll(self) -> list[LauncherEvent]:
        for key, (process, started_at) in list(self._running.items()):
            if (code := process.poll()) is not None:
                del self._running[key]
                seen = ExitObservation(
                    self.name,
                    exit_code=code if code >= 0 else None,
                    signal=-code if code < 0 else None,
                    started_at=started_at,
                    ended_at=time.time(),
                )
                self._news.append(AttemptEnded(key, seen))
        news, self._news = self._news, []
        return news

    def stop(self, keys: Iterable[AttemptKey], *, force: bool) -> None:
        for key in keys:
            if key in self._running:
                os.killpg(self._running[key][0].pid, signal.SIGKILL if force else signal.SIGTERM)


@hookimpl
def torc_executors() -> Sequence[type[Executor]]:
    return [SimpleLauncher]
