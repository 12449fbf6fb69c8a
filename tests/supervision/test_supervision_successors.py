"""Launchers that are killed at random and follow each other on one journal: each attempt runs once, no end is lost."""

import json
import os
import random
import subprocess
import sys
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from waiting import let_pass

pytestmark = [pytest.mark.crash, pytest.mark.slow]

PROGRAM = """
import json, select, sys
from pathlib import Path
from torc_framework.api.supervision import AttemptCommand, SupervisedAttempts
attempts = SupervisedAttempts(Path(sys.argv[1]))
print(json.dumps(["reports", []]), flush=True)
while True:
    select.select([attempts, sys.stdin], [], [], 0.2)
    if select.select([sys.stdin], [], [], 0)[0]:
        request = json.loads(sys.stdin.readline() or "null")
        if request is None:
            break
        do, value = request
        if do == "adopt":
            found = attempts.adopt(attempts.state(), map(tuple, value))
            print(json.dumps(["found", *found]), flush=True)
        else:
            getattr(attempts, do)([AttemptCommand(*each) for each in value])
    reports = attempts.poll()
    if reports:
        print(json.dumps(["reports", reports]), flush=True)
attempts.close()
"""


class Successors:
    """A launcher process after the other, and what is known of the attempts that they were given."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.outstanding: dict[tuple[int, int], list[Any]] = {}
        """Commands of attempts without an end."""
        self.ends: dict[int, int] = {}
        self.process = self._begin()

    def _begin(self) -> "subprocess.Popen[str]":
        """Start a process; return it when its journal is there."""
        with (self.folder / "errors").open("a") as log:
            self.process = subprocess.Popen(
                [sys.executable, "-c", PROGRAM, str(self.folder / "state" / "x.journal")],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=log,
                text=True,
                bufsize=1,
            )
        self.read()
        return self.process

    def send(self, do: str, value: Any) -> None:
        """Send a request."""
        assert self.process.stdin is not None
        self.process.stdin.write(json.dumps([do, value]) + "\n")

    def give(self, do: str, jobs: range) -> None:
        """Give attempts to the present process; each writes its number to a file, and ends with a code of its own."""
        rows: list[list[Any]] = []
        for job in jobs:
            text = f"echo {job} >>{self.folder}/ran; sleep 0.0{job % 7}; exit {job % 200}"
            environment = {"TORC_JOB_ID": str(job), "TORC_ATTEMPT_ID": "1"}
            rows.append([job, 1, text, environment, os.devnull, os.devnull, str(self.folder)])
        self.outstanding |= {(row[0], 1): row for row in rows}
        self.send(do, rows)

    def replace(self) -> None:
        """Kill the present process, take what it has said, and let another one adopt its attempts."""
        self.process.kill()
        self.end()
        self.process = self._begin()
        asked = list(self.outstanding)
        self.send("adopt", asked)
        kind, adopted, never_started, unknown = self.read()
        assert kind == "found"
        assert unknown == [], (self.folder / "errors").read_text()
        assert len(adopted) + len(never_started) == len(asked)
        if never_started:
            self.send("start", [self.outstanding[job, attempt] for job, attempt in never_started])

    def end(self) -> None:
        """Take what the present process says until it ends."""
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        with suppress(BrokenPipeError):
            self.process.stdin.close()
        for line in self.process.stdout:
            if line.endswith("\n"):
                self.take(json.loads(line))
        self.process.stdout.close()
        self.process.wait()

    def read(self) -> list[Any]:
        """Return the next message of the present process."""
        assert self.process.stdout is not None
        message: list[Any] = json.loads(self.process.stdout.readline())
        return message

    def take(self, message: list[Any]) -> None:
        """Take note of reports."""
        if message[0] == "reports":
            for kind, job, attempt, *details in message[1]:
                if kind != "S":
                    assert kind == "E", (kind, job, details)
                    self.ends[job] = details[0] >> 8
                    self.outstanding.pop((job, attempt), None)


@pytest.mark.parametrize("seed", [1, 2])
def test_launchers_killed_at_random(tmp_path: Path, seed: int) -> None:
    chance = random.Random(seed)
    successors = Successors(tmp_path)
    last = 1
    for _ in range(12):
        more = chance.randrange(1, 30)
        successors.give("start", range(last, last + 2))
        successors.give("queue", range(last + 2, last + 2 + more))
        last += 2 + more
        let_pass(chance.random() * 0.3)
        successors.replace()
    while successors.outstanding:
        successors.take(successors.read())
    assert successors.ends == {job: job % 200 for job in range(1, last)}
    assert sorted(map(int, (tmp_path / "ran").read_text().split())) == [*range(1, last)], "each ran once"
    successors.end()
    assert not (tmp_path / "state").exists()
