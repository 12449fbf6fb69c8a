"""An executor with options of jobs and containers, whose attempts run in a folder that the runner does not look at.

It looks for output files itself, as one does whose attempts have file systems of their own. What an attempt was given
goes to its standard output as one line of JSON, before the output of its command.
"""

import json
import subprocess
import time
from collections.abc import Iterable, Sequence
from pathlib import Path

from attrs import asdict, field, frozen

from torc_framework.api import (
    Attempt,
    AttemptEnded,
    AttemptKey,
    AttemptStarted,
    Capabilities,
    ConfigError,
    Executor,
    ExitObservation,
    Launcher,
    LauncherEvent,
    RunnerContext,
    hookimpl,
)


@frozen(kw_only=True)
class BoxMount:
    """A folder in a box."""

    path: str
    read_only: bool = False


@frozen(kw_only=True)
class BoxOptions:
    """What a job may set."""

    image: str = ""
    cpus: int | None = None
    labels: dict[str, str] = field(factory=dict)
    mounts: list[BoxMount] = field(factory=list)

    def __attrs_post_init__(self) -> None:
        if self.cpus is not None and self.cpus < 1:
            raise ConfigError(f"cpus is {self.cpus}; expected 1 or more")


class BoxLauncher(Launcher):
    """Runs each attempt at once, in the folder ``boxes`` beside the working folder."""

    name = "boxes"
    description = "Commands in a folder of their own"
    capabilities = Capabilities(can_launch=True, runs_containers=True, checks_outputs=True)
    JobOptions = BoxOptions
    poll_interval_s = 0.02

    def __init__(self, options: object, context: RunnerContext) -> None:
        super().__init__(options, context)
        self._news: list[LauncherEvent] = []

    def start(self, attempts: Sequence[Attempt]) -> None:
        for attempt in attempts:
            self._news += self._run(attempt)

    def _run(self, attempt: Attempt) -> list[LauncherEvent]:
        box = Path(attempt.working_dir, "boxes")
        box.mkdir(exist_ok=True)
        began = time.time()
        given = {"container": attempt.container, "options": asdict(attempt.options), "outputs": attempt.outputs}
        done = subprocess.run(["/bin/sh", "-c", attempt.command], cwd=box, capture_output=True, text=True, check=False)
        with Path(attempt.stdout_path).open("a") as out:
            out.write(json.dumps(given) + "\n" + done.stdout)
        with Path(attempt.stderr_path).open("a") as err:
            err.write(done.stderr)
        seen = ExitObservation(
            self.name,
            exit_code=done.returncode,
            started_at=began,
            ended_at=time.time(),
            missing_outputs=tuple(path for path in attempt.outputs if not (box / path).exists()),
        )
        return [AttemptStarted(attempt.key, began), AttemptEnded(attempt.key, seen)]

    def poll(self) -> list[LauncherEvent]:
        news, self._news = self._news, []
        return news

    def stop(self, keys: Iterable[AttemptKey], *, force: bool) -> None:
        """Do nothing: every attempt has ended."""


@hookimpl
def torc_executors() -> Sequence[type[Executor]]:
    return [BoxLauncher]
