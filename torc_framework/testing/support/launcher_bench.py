"""A bench for launchers: starts attempts and collects events; and a runner that is killed, to adopt its attempts."""

import contextlib
import json
import os
import secrets
import select
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

from attrs import define, field

from torc_framework.api import (
    Attempt,
    AttemptEnded,
    AttemptKey,
    AttemptSlotFreed,
    AttemptStarted,
    AttemptWaiting,
    AttemptWithdrawn,
    ExitObservation,
    Launcher,
    LauncherEvent,
    RunnerContext,
)
from torc_framework.testing.support.clauses import BROKEN_CLAUSES, broken, require
from torc_framework.testing.support.end_checks import check_end, check_start
from torc_framework.testing.support.guarded_launcher import GuardedLauncher

NO_OTHER_EVENTS: Final = "poll returns nothing but AttemptWaiting, -Started, -SlotFreed, -Ended, -Withdrawn"
ONE_END: Final = "every started attempt gives exactly one AttemptEnded"


def context(folder: Path, site: str = "") -> RunnerContext:
    """Return the context of the runner of a site, whose output goes to ``folder``, where its jobs run as well."""
    return RunnerContext(1, 1, str(folder), str(folder), "http://127.0.0.1:1/torc-service/v1", site=site)


MARK: Final = "TORC_CONTRACT_BENCH"
"""Variable by which the processes of a bench's attempts are found, to end those that are left."""
FAILED_PATIENCE_S: Final = 3.0
"""How long events are awaited in a test that has failed already."""


def _unguarded(launcher: Launcher | GuardedLauncher) -> GuardedLauncher:
    return launcher if isinstance(launcher, GuardedLauncher) else GuardedLauncher(launcher)


@define
class LauncherBench:
    """A launcher in a folder of its own.

    Attributes:
        launcher: The launcher; its calls are checked (`GuardedLauncher`).
        patience_s: How long to wait for events before the contract counts as broken.
        given: For each attempt of which events are expected, when a launcher was given it, seconds since the epoch.
        started: When attempts began, as the launcher reported.
        ended: How they ended.
        freed: Those whose place was given up.
        returned: Queued ones that were given back.
        waiting: What those that had not begun waited for, as told last.
        order: The attempts that ended, in order.
    """

    folder: Path
    launcher: GuardedLauncher = field(converter=_unguarded)
    patience_s: float = 60.0
    given: dict[AttemptKey, float] = field(factory=dict)
    started: dict[AttemptKey, float] = field(factory=dict)
    ended: dict[AttemptKey, ExitObservation] = field(factory=dict)
    freed: set[AttemptKey] = field(factory=set)
    returned: set[AttemptKey] = field(factory=set)
    waiting: dict[AttemptKey, str | None] = field(factory=dict)
    order: list[AttemptKey] = field(factory=list)
    _own: set[AttemptKey] = field(factory=set, init=False)
    _with_outputs: set[AttemptKey] = field(factory=set, init=False)
    _mark: str = field(factory=lambda: secrets.token_hex(8), init=False)
    _broken: int = field(factory=lambda: len(BROKEN_CLAUSES), init=False)

    @property
    def has_failed(self) -> bool:
        """Whether a clause was broken since the bench was made."""
        return len(BROKEN_CLAUSES) > self._broken

    def attempt(self, command: str, job_id: int = 1, **changes: Any) -> Attempt:
        """Return an attempt of a command; its logs are ``<job>.o`` and ``<job>.e`` in the folder.

        Its job sets no options: those of the attempt have the defaults of `Executor.JobOptions`.
        """
        values: dict[str, Any] = {
            "key": AttemptKey(job_id, 1),
            "job_name": f"job{job_id}",
            "command": command,
            "environment": {"TORC_JOB_ID": str(job_id)},
            "stdout_path": str(self.folder / f"{job_id}.o"),
            "stderr_path": str(self.folder / f"{job_id}.e"),
            "working_dir": str(self.folder),
            "options": self.launcher.make_job_options(None),
        } | changes
        values["environment"] = {**values["environment"], MARK: self._mark}
        return Attempt(**values)

    def start(self, *attempts: Attempt) -> None:
        """Give attempts to the launcher, to begin at once."""
        self._expect_own(attempts)
        self.launcher.start(attempts)

    def queue(self, attempts: Sequence[Attempt]) -> None:
        """Give attempts to the launcher, to begin when others of their lanes end."""
        self._expect_own(attempts)
        self.launcher.queue(attempts)

    def _expect_own(self, attempts: Sequence[Attempt]) -> None:
        self._own.update(attempt.key for attempt in attempts)
        self._with_outputs.update(attempt.key for attempt in attempts if attempt.outputs)
        self.expect(attempt.key for attempt in attempts)

    def expect(self, keys: Iterable[AttemptKey]) -> None:
        """Expect events of these attempts from now on."""
        now = time.time()
        for key in keys:
            self.given.setdefault(key, now)

    def take_events(self) -> None:
        """Collect the launcher's events, and check that they obey the contract."""
        for event in self.launcher.poll():
            require(isinstance(event, LauncherEvent), NO_OTHER_EVENTS, event)
            require(event.key in self.given, "events are about attempts that this launcher was given", event)
            given_at, now = self.given[event.key], time.time()
            match event:
                case AttemptWaiting():
                    has_begun = event.key in self.started or event.key in self.ended or event.key in self.returned
                    require(not has_begun, "only an attempt that has not begun waits", event)
                    reason: Any = event.reason
                    is_reason = reason is None or (isinstance(reason, str) and reason.strip() != "")
                    require(is_reason, "what an attempt waits for is text, or None", event)
                    self.waiting[event.key] = event.reason
                case AttemptStarted():
                    require(event.key not in self.started, "an attempt's start is told once", event)
                    require(event.key not in self.ended, "an attempt's start is not told after its end", event)
                    check_start(event, given_at, now)
                    self.started[event.key] = event.at
                case AttemptEnded():
                    require(event.key not in self.ended, ONE_END, ("reported twice", event))
                    require(event.key not in self.returned, "what was given back does not end", event)
                    checks = self.launcher.capabilities.checks_outputs and event.key in self._with_outputs
                    check_end(event.observation, self.launcher.name, given_at, now, checks_outputs=checks)
                    self.ended[event.key] = event.observation
                    self.order.append(event.key)
                case AttemptSlotFreed():
                    require(event.key not in self.ended, "a place is given up before the end is told", event)
                    require(event.key not in self.freed, "a place is given up once", event)
                    self.freed.add(event.key)
                case AttemptWithdrawn():
                    require(event.key not in self.started, "only an attempt that has not begun is given back", event)
                    self.returned.add(event.key)

    def until(self, condition: Callable[[], object], clause: str) -> None:
        """Collect events until a condition holds; the clause is broken if it does not within ``patience_s``."""
        patience_s = min(self.patience_s, FAILED_PATIENCE_S) if self.has_failed else self.patience_s
        deadline = time.monotonic() + patience_s
        while True:
            self.take_events()
            if condition():
                return
            if time.monotonic() > deadline:
                broken(clause, f"not within {patience_s:.0f} s; ended so far: {self.ended}")
            self._wait()

    def _wait(self) -> None:
        descriptor = self.launcher.wait_fd()
        if descriptor is None:
            time.sleep(min(self.launcher.poll_interval_s, 0.05))
        else:
            select.select([descriptor], [], [], 0.05)

    def run(self, *attempts: Attempt) -> list[ExitObservation]:
        """Start attempts and return how they ended, in the order given."""
        self.start(*attempts)
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
        """Kill all attempts that still run, close the launcher, and end processes that are left.

        What fails here is reported only if nothing was reported before.
        """
        reported = contextlib.suppress(AssertionError) if self.has_failed else contextlib.nullcontext()
        with reported:
            self._finish()

    def _finish(self) -> None:
        try:
            # An own attempt may run before its start is reported; adopted ones count from their first event.
            left = (self._own | self.started.keys()) - self.ended.keys() - self.returned
            if left:
                self.launcher.stop(list(left), force=True)
                self.until(lambda: left <= self.ended.keys() | self.returned, "a forced stop ends every attempt")
            self.launcher.close()
            if not self.has_failed:
                self._require_nothing_left()
        finally:
            for pid in self.processes_left():
                with contextlib.suppress(OSError):
                    os.kill(pid, signal.SIGKILL)

    def _require_nothing_left(self) -> None:
        deadline = time.monotonic() + FAILED_PATIENCE_S
        while left := self.processes_left():
            clause = "no process of an attempt that was stopped by force is left, children included"
            require(time.monotonic() < deadline, clause, left)
            time.sleep(0.05)

    def processes_left(self) -> list[int]:
        """Return the pids of processes of this machine that belong to the bench's attempts."""
        mark, found = f"{MARK}={self._mark}".encode(), []
        for path in Path("/proc").glob("[0-9]*/environ"):
            with contextlib.suppress(OSError):
                if mark in path.read_bytes().split(b"\0"):
                    found.append(int(path.parent.name))
        return found


_VICTIM: Final = """
import importlib, json, sys, time
from pathlib import Path
from torc_framework.api import Attempt, AttemptKey
from torc_framework.testing.support.launcher_bench import context
module, name, options, folder, site, commands = json.loads(sys.stdin.readline())
kind = importlib.import_module(module)
for part in name.split("."):
    kind = getattr(kind, part)
launcher = kind(kind.Options(**options), context(Path(folder), site))
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
        site: The site that the launcher serves.
    """

    def __init__(
        self, launcher: type[Launcher], options: Mapping[str, Any], folder: Path, *commands: str, site: str = ""
    ) -> None:
        order = [launcher.__module__, launcher.__qualname__, dict(options), str(folder), site, commands]
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
