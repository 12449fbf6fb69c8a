"""A program that runs attempts through every stage, for Python 3.8 and newer without any other module of ours.

usage: attempts_program.py FOLDER

It prints the last report of each attempt by the attempt's job id as JSON, and what became of the attempts of a launcher
that was killed.
"""

from __future__ import annotations

import json
import os
import select
import signal
import sys
import time
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

from torc_framework.supervision.attempts import SupervisedAttempts
from torc_framework.supervision.commands import AttemptCommand
from torc_framework.supervision.machine import memory_bytes, usable_cpus, visible_gpus

FOLDER = Path(sys.argv[1])
DEADLINE_S = 30.0
DEAF = "trap '' TERM; echo up; while :; do sleep 0.05; done"
"""A command that SIGTERM does not end."""


def command(job: int, text: str, **changes: Any) -> AttemptCommand:
    """Return an attempt of a command."""
    values = {
        "environment": {"TORC_JOB_ID": str(job), "TORC_ATTEMPT_ID": "1", "NAME": "\u00e4\udcff"},
        "stdout": str(FOLDER / f"{job}.o"),
        "stderr": str(FOLDER / f"{job}.o"),
        "working_dir": str(FOLDER),
    }
    return AttemptCommand(job, 1, text, **{**values, **changes})


class Attempts:
    """Supervised attempts with the reports that they have given."""

    def __init__(self) -> None:
        self.supervised = SupervisedAttempts(FOLDER / "state" / "here.journal")
        self.reports: dict[int, list[Any]] = {}

    def until(self, condition: Callable[[], object]) -> None:
        """Poll until a condition holds."""
        deadline = time.monotonic() + DEADLINE_S
        while not condition():
            assert time.monotonic() < deadline, self.reports
            select.select([self.supervised], [], [], 0.05)
            for report in self.supervised.poll():
                kind, job, _, *_ = json.loads(json.dumps(report))
                assert self.reports.get(job, ["S"])[0] == "S", f"an end was reported twice: {report}"
                self.reports[job] = [kind, *report[1:]]

    def has_ended(self, *jobs: int) -> Callable[[], bool]:
        """Return the condition that attempts of these jobs are over."""
        return lambda: all(self.reports.get(job, ["S"])[0] != "S" for job in jobs)

    def has_started(self, *jobs: int) -> Callable[[], bool]:
        """Return the condition that attempts of these jobs were reported."""
        return lambda: all(job in self.reports for job in jobs)


def up(*jobs: int) -> Callable[[], bool]:
    """Return the condition that attempts of these jobs have printed a line."""
    return lambda: all((FOLDER / f"{job}.o").exists() and (FOLDER / f"{job}.o").read_text() for job in jobs)


def children(pid: int) -> list[int]:
    """Return the children of a process."""
    return [int(child) for child in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]


def keys(*jobs: int) -> Iterable[tuple[int, int]]:
    """Return first attempts of jobs."""
    return [(job, 1) for job in jobs]


def endings() -> dict[int, list[Any]]:
    """Run attempts that end in all ways, also under a supervisor that is killed."""
    one = Attempts()
    attempts = one.supervised
    attempts.start([command(1, "exit 7"), command(2, "kill -SEGV $$"), command(3, "pwd; echo $NAME", shell="sh -e")])
    attempts.start([command(4, "true", shell="no-such-shell"), command(5, "true", working_dir=str(FOLDER / "none"))])
    attempts.start([command(6, DEAF), command(7, "#" + "x" * 200_000 + "\nexit 8"), command(8, "sleep 0.2")])
    attempts.queue([command(9, "exit 9"), command(10, "exit 10"), command(11, "exit 11", lane=5)])
    one.until(up(6))
    attempts.withdraw(keys(11))
    attempts.stop(keys(6), signal.SIGTERM)
    attempts.stop(keys(6), signal.SIGKILL)
    one.until(one.has_ended(*range(1, 12)))
    attempts.start([command(12, "echo up; sleep 0.4; exit 12"), command(13, "echo up; exec sleep 100")])
    one.until(up(12, 13))
    os.kill(children(attempts._reapers[-1])[0], signal.SIGKILL)
    one.until(lambda: len(attempts._reapers) == 2)
    attempts.start([command(14, "exit 14")])
    attempts.stop(keys(13), signal.SIGTERM)
    one.until(one.has_ended(12, 13, 14))
    attempts.close()
    return one.reports


def adoption() -> dict[str, Any]:
    """Let a process begin attempts and die, and another one adopt them."""
    gate = FOLDER / "gate"
    if not (victim := os.fork()):
        first = Attempts()
        until_open = f"echo up; until [ -e '{gate}' ]; do sleep 0.05; done; exit 22"
        first.supervised.start([command(21, "exit 21"), command(22, until_open)])
        first.supervised.start([command(23, "echo up; exec sleep 100"), command(24, "echo up; exec sleep 100")])
        first.supervised.queue([command(25, "exit 25", lane=5)])
        first.until(first.has_ended(21))
        first.until(up(22, 23, 24))
        os.kill(os.getpid(), signal.SIGKILL)
    os.waitpid(victim, 0)
    second = Attempts()
    found = second.supervised.adopt(second.supervised.state(), keys(21, 22, 23, 25))
    second.until(second.has_started(22, 23))
    pids = second.supervised.pids(keys(22, 23))
    gate.touch()
    second.supervised.stop(keys(23), signal.SIGTERM)
    second.until(second.has_ended(21, 22, 23))
    files = sorted(path.name for path in (FOLDER / "state").iterdir())
    second.supervised.close()
    return {
        "found": found._asdict(),
        "pids": len(pids),
        "reports": second.reports,
        "files": files,
        "left": (FOLDER / "state").exists(),
    }


facts = {"cpus": usable_cpus(), "memory_bytes": memory_bytes(), "gpus": visible_gpus()}
print(json.dumps({"endings": endings(), "adoption": adoption(), "facts": facts}))
