"""The sample executor: processes of this machine, looked at now and then."""

import os
import signal
import subprocess
import time
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import ClassVar

from attrs import define

from torc_framework.api import (
    Attempt,
    AttemptEnded,
    AttemptKey,
    AttemptStarted,
    Capabilities,
    ExitObservation,
    Launcher,
    LauncherEvent,
    LaunchError,
    RunnerContext,
    option,
    shell_command,
)


@define
class SampleOptions:
    """Options of the sample executor."""

    greeting: str = option("hello", "Text that jobs find in SAMPLE_GREETING.", metavar="TEXT")


class SampleLauncher(Launcher):
    """Runs each attempt by `subprocess.Popen`."""

    name: ClassVar[str] = "sample"
    description: ClassVar[str] = "Processes, in the simplest way that can work"
    capabilities: ClassVar[Capabilities] = Capabilities(can_launch=True)
    Options: ClassVar[type[SampleOptions]] = SampleOptions

    def __init__(self, options: SampleOptions, context: RunnerContext) -> None:
        super().__init__(options, context)
        self._running: dict[AttemptKey, tuple[subprocess.Popen[bytes], float]] = {}
        self._news: list[LauncherEvent] = []

    def start(self, attempts: Sequence[Attempt]) -> None:
        """Start a process group for each attempt."""
        for attempt in attempts:
            now = time.time()
            try:
                process = self._spawn(attempt)
            except (OSError, LaunchError) as error:
                observation = ExitObservation(self.name, ended_at=now, launch_error=str(error))
                self._news.append(AttemptEnded(attempt.key, observation))
                continue
            self._running[attempt.key] = (process, now)
            self._news.append(AttemptStarted(attempt.key, now))

    def _spawn(self, attempt: Attempt) -> "subprocess.Popen[bytes]":
        with Path(attempt.stdout_path).open("ab") as out, Path(attempt.stderr_path).open("ab") as err:
            return subprocess.Popen(
                [*shell_command(attempt.shell), "-c", attempt.command],
                stdin=subprocess.DEVNULL,
                stdout=out,
                stderr=err,
                cwd=attempt.working_dir,
                env={**os.environ, **attempt.environment, "SAMPLE_GREETING": self.options.greeting},
                start_new_session=True,
            )

    def poll(self) -> list[LauncherEvent]:
        """Look at every process."""
        for key, (process, began) in list(self._running.items()):
            if process.poll() is None:
                continue
            del self._running[key]
            self._news.append(AttemptEnded(key, self._observe(process.returncode, began)))
        news, self._news = self._news, []
        return news

    def _observe(self, code: int, began: float) -> ExitObservation:
        return ExitObservation(
            self.name,
            exit_code=code if code >= 0 else None,
            signal=-code if code < 0 else None,
            started_at=began,
            ended_at=time.time(),
        )

    def stop(self, keys: Iterable[AttemptKey], *, force: bool) -> None:
        """Signal the process groups."""
        for key in keys:
            if key in self._running:
                os.killpg(self._running[key][0].pid, signal.SIGKILL if force else signal.SIGTERM)
