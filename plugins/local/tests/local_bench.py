"""A launcher in a temporary folder, and a way to wait for its events."""

import os
import select
import signal
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from attrs import define, field
from torc_local.launcher import LocalLauncher
from torc_local.options import LocalOptions
from waiting import eventually

from torc_framework.api import (
    Attempt,
    AttemptEnded,
    AttemptKey,
    AttemptStarted,
    AttemptWithdrawn,
    ExitObservation,
    RunnerContext,
)

DEADLINE_S = 30.0


@define
class Bench:
    """A launcher under test, and the events that it has reported."""

    folder: Path
    launcher: LocalLauncher
    started: dict[AttemptKey, float] = field(factory=dict)
    ended: dict[AttemptKey, ExitObservation] = field(factory=dict)
    returned: set[AttemptKey] = field(factory=set)
    order: list[AttemptKey] = field(factory=list)
    ages: dict[AttemptKey, float] = field(factory=dict)
    bereaved: set[int] = field(factory=set)
    """Reapers whose supervisors were killed."""

    def attempt(self, command: str, job_id: int = 1, **changes: object) -> Attempt:
        """Return an attempt of a command; its logs are ``<job>.o`` and ``<job>.e``."""
        values: dict[str, Any] = {
            "key": AttemptKey(job_id, 1),
            "job_name": f"job{job_id}",
            "command": command,
            "environment": {"TORC_JOB_ID": str(job_id), "TORC_ATTEMPT_ID": "1"},
            "stdout_path": str(self.folder / f"{job_id}.o"),
            "stderr_path": str(self.folder / f"{job_id}.e"),
            "working_dir": str(Path.cwd()),
        }
        return Attempt(**(values | changes))

    def until(self, condition: Callable[[], object]) -> None:
        """Poll the launcher until a condition holds."""
        poller = select.poll()
        poller.register(self.launcher.wait_fd(), select.POLLIN)
        deadline = time.monotonic() + DEADLINE_S
        while not condition():
            assert time.monotonic() < deadline, f"nothing but {self.order} {self.started}"
            poller.poll(50)
            for event in self.launcher.poll():
                match event:
                    case AttemptStarted():
                        self.started[event.key] = event.at
                        self.ages[event.key] = event.age_s
                    case AttemptEnded():
                        assert event.key not in self.ended, "an end was reported twice"
                        self.ended[event.key] = event.observation
                        self.order.append(event.key)
                    case AttemptWithdrawn():
                        self.returned.add(event.key)

    def run(self, *attempts: Attempt) -> list[ExitObservation]:
        """Start attempts and return how they ended, in the order given."""
        self.launcher.start(attempts)
        keys = [attempt.key for attempt in attempts]
        self.until(lambda: all(key in self.ended for key in keys))
        return [self.ended[key] for key in keys]

    def reaper(self) -> int:
        """Return the pid of the present supervisor's parent."""
        return self.launcher._attempts._reapers[-1]

    def supervisor(self) -> int:
        """Return the pid of the present supervisor, once it is there."""
        self.until(lambda: children(self.reaper()))
        return children(self.reaper())[0]

    def kill_supervisor(self) -> None:
        """Kill the present supervisor; wait for it first if the last one was killed, too."""
        self.until(lambda: self.reaper() not in self.bereaved)
        supervisor = self.supervisor()
        self.bereaved.add(self.reaper())  # its other children are attempts from now on
        os.kill(supervisor, signal.SIGKILL)

    def text(self, name: str) -> str:
        """Return the content of a file in the folder."""
        return (self.folder / name).read_text()

    def wait_for_file(self, name: str) -> str:
        """Wait until a file in the folder has a line, and return it."""
        path = self.folder / name
        self.until(lambda: path.exists() and path.read_text().endswith("\n"))
        return path.read_text().strip()


def context(folder: Path) -> RunnerContext:
    """Return the context of a runner whose output goes to ``folder``."""
    return RunnerContext(1, 1, str(folder), str(Path.cwd()), "http://127.0.0.1:1/torc-service/v1")


@pytest.fixture
def make_bench(tmp_path: Path) -> Iterator[Callable[..., Bench]]:
    """Return a maker of benches; their launchers are closed at the end, their attempts killed."""
    benches: list[Bench] = []

    def make(folder: Path = tmp_path, **options: str) -> Bench:
        bench = Bench(folder, LocalLauncher(LocalOptions(**options), context(folder)))
        benches.append(bench)
        return bench

    yield make
    for bench in benches:
        bench.launcher.stop(bench.started.keys() - bench.ended.keys(), force=True)
        bench.launcher.close()


@pytest.fixture
def bench(make_bench: Callable[..., Bench]) -> Bench:
    """Return a launcher with the default options."""
    return make_bench()


def python(code: str) -> str:
    """Return the shell command that runs Python code."""
    return f"exec {sys.executable} -c '{code}'"


def children(pid: int) -> list[int]:
    """Return the children of a process."""
    try:
        return [int(child) for child in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]
    except OSError:
        return []  # it has ended


def child_of(pid: int) -> int:
    """Return the only child of a process, once it is there."""
    (child,) = eventually(lambda: children(pid), "it has no child", pause_s=0.001)
    return child


def is_gone(pid: int) -> bool:
    """Say whether a process has ended; a zombie has."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] in "ZX"
    except OSError:
        return True
