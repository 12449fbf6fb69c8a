"""A bench for launchers: starts attempts and collects events; and a runner that is killed, to adopt its attempts."""

import json
import os
import select
import subprocess
import sys
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Final

from attrs import define, field

from torc_framework.api import (
    Attempt,
    AttemptEnded,
    AttemptKey,
    AttemptSlotFreed,
    AttemptStarted,
    AttemptWithdrawn,
    ExitObservation,
    Launcher,
    RunnerContext,
)
from torc_framework.testing.support.clauses import broken, require

NO_OTHER_EVENTS: Final = "poll returns nothing but AttemptStarted, AttemptSlotFreed, AttemptEnded, AttemptWithdrawn"
ONE_END: Final = "every started attempt gives exactly one AttemptEnded"


def context(folder: Path) -> RunnerContext:
    """Return the context of a runner whose output goes to ``folder``, where its jobs run as well."""
    return RunnerContext(1, 1, str(folder), str(folder), "http://127.0.0.1:1/torc-service/v1")


@define
class LauncherBench:
    """A launcher in a folder of its own.

    Attributes:
        patience_s: How long to wait for events before the contract counts as broken.
        started: When attempts began, as the launcher reported.
        ended: How they ended.
        returned: Queued ones that were given back.
        order: The attempts that ended, in order.
    """

    folder: Path
    launcher: Launcher
    patience_s: float = 60.0
    started: dict[AttemptKey, float] = field(factory=dict)
    ended: dict[AttemptKey, ExitObservation] = field(factory=dict)
    returned: set[AttemptKey] = field(factory=set)
    order: list[AttemptKey] = field(factory=list)

    def attempt(self, command: str, job_id: int = 1, **changes: Any) -> Attempt:
        """Return an attempt of a command; its logs are ``<job>.o`` and ``<job>.e`` in the folder."""
        values: dict[str, Any] = {
            "key": AttemptKey(job_id, 1),
            "job_name": f"job{job_id}",
            "command": command,
            "environment": {"TORC_JOB_ID": str(job_id)},
            "stdout_path": str(self.folder / f"{job_id}.o"),
            "stderr_path": str(self.folder / f"{job_id}.e"),
            "working_dir": str(self.folder),
        }
        return Attempt(**(values | changes))

    def take_events(self) -> None:
        """Collect the launcher's events, and check that they obey the contract."""
        for event in self.launcher.poll():
            match event:
                case AttemptStarted():
                    require(event.key not in self.started, "an attempt's start is told once", event)
                    require(event.key not in self.ended, "an attempt's start is not told after its end", event)
                    self.started[event.key] = event.at
                case AttemptEnded():
                    require(event.key not in self.ended, ONE_END, ("reported twice", event))
                    self.ended[event.key] = event.observation
                    self.order.append(event.key)
                case AttemptSlotFreed():
                    require(event.key not in self.ended, "a place is given up before the end is told", event)
                case AttemptWithdrawn():
                    require(event.key not in self.started, "only an attempt that has not begun is given back", event)
                    self.returned.add(event.key)
                case _:
                    broken(NO_OTHER_EVENTS, event)

    def until(self, condition: Callable[[], object], clause: str) -> None:
        """Collect events until a condition holds; the clause is broken if it does not within ``patience_s``."""
        deadline = time.monotonic() + self.patience_s
        while True:
            self.take_events()
            if condition():
                return
            if time.monotonic() > deadline:
                broken(clause, f"not within {self.patience_s:.0f} s; ended so far: {self.ended}")
            self._wait()

    def _wait(self) -> None:
        descriptor = self.launcher.wait_fd()
        if descriptor is None:
            time.sleep(min(self.launcher.poll_interval_s, 0.05))
        else:
            select.select([descriptor], [], [], 0.05)

    def run(self, *attempts: Attempt) -> list[ExitObservation]:
        """Start attempts and return how they ended, in the order given."""
        self.launcher.start(attempts)
        keys = [attempt.key for attempt in attempts]
        self.until(lambda: all(key in self.ended for key in keys), ONE_END)
        return [self.ended[key] for key in keys]

    def wait_for(self, name: str) -> str:
        """Wait until a file in the folder has a whole line; return its text."""
        path = self.folder / name
        self.until(
            lambda: path.exists() and path.read_text().endswith("\n"),
            "attempts run and can write where they were told to",
        )
        return path.read_text()

    def finish(self) -> None:
        """Kill all attempts that still run, and close the launcher."""
        left = [key for key in self.started if key not in self.ended]
        if left:
            self.launcher.stop(left, force=True)
            self.until(lambda: all(key in self.ended for key in left), "a forced stop ends every attempt")
        self.launcher.close()


_VICTIM: Final = """
import importlib, json, sys, time
from pathlib import Path
from torc_framework.api import Attempt, AttemptKey
from torc_framework.testing.support.launcher_bench import context
module, name, options, folder, commands = json.loads(sys.stdin.readline())
kind = importlib.import_module(module)
for part in name.split("."):
    kind = getattr(kind, part)
launcher = kind(kind.Options(**options), context(Path(folder)))
launcher.start([
    Attempt(AttemptKey(job, 1), "job", command, {}, f"{folder}/{job}.o", f"{folder}/{job}.e", folder)
    for job, command in enumerate(commands, 1)
])
print(json.dumps(launcher.state()), flush=True)
while True:
    launcher.poll()
    print(json.dumps(launcher.state()), flush=True)
    time.sleep(0.05)
"""


class DyingRunner:
    """A runner in a process of its own, which begins attempts 1, 2, ... and is then killed as by the kernel.

    Args:
        launcher: Its launcher, a class that can be imported by its name.
        options: Values of the launcher's options.
        folder: Its output directory.
        commands: What the attempts run.
    """

    def __init__(self, launcher: type[Launcher], options: Mapping[str, Any], folder: Path, *commands: str) -> None:
        order = [launcher.__module__, launcher.__qualname__, dict(options), str(folder), commands]
        self._process = subprocess.Popen(
            [sys.executable, "-c", _VICTIM],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            cwd=folder,
            env={**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))},
        )
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(json.dumps(order) + "\n")
        self._process.stdin.flush()
        self._first = self._process.stdout.readline()
        if not self._first:
            _, said = self._process.communicate()
            broken("state() answers with JSON values as soon as attempts were started", said.strip()[-2000:])

    def kill(self) -> dict[str, Any]:
        """Kill the runner; return the last complete state that it stored."""
        self._process.kill()
        later, _ = self._process.communicate()
        lines = [self._first, *later.splitlines(keepends=True)]
        state: dict[str, Any] = json.loads([line for line in lines if line.endswith("\n")][-1])
        return state
