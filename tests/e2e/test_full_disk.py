"""A full disk under the database: said at once and as what it is; a run goes on when there is room again."""

import json
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from small_disk import MISSING, mounted
from waiting import eventually, let_pass

SIZE = "8m"
FILL = """
import json, os, sys, urllib.error, urllib.request

def post(size):
    body = json.dumps({"name": "x", "user": "u", "description": "x" * size}).encode()
    url, head = os.environ["TORC_API_URL"] + "/workflows", {"Content-Type": "application/json"}
    request = urllib.request.Request(url, body, head)
    try:
        urllib.request.urlopen(request).read()
    except urllib.error.HTTPError as error:
        return error.code, error.read().decode()
    return 200, ""

with open("disk/filler", "wb", buffering=0) as filler:
    try:
        while filler.write(bytes(4096)) == 4096:
            pass
    except OSError:
        pass
for size in (1 << 20, 1 << 16, 1 << 12, 1):
    while (answer := post(size))[0] == 200:
        pass
print(*answer)
open("full", "w").close()
"""
SPEC = """
name: full
compute_node_wait_for_healthy_database_minutes: {minutes}
jobs:
- {{name: fill, command: "python3 fill.py"}}
- {{name: "late{{i}}", command: "echo >> ran{{i}}", depends_on: [fill], parameters: {{i: "1:3"}}}}
"""


@pytest.fixture
def disk(work: Path) -> Iterator[Path]:
    """A file system of its own, of a few MiB."""
    (work / "fill.py").write_text(FILL)
    with mounted(work / "disk", SIZE) as folder:
        yield folder or pytest.skip(MISSING)


def test_a_run_waits_for_room_and_goes_on(torc: Any, work: Path, disk: Path) -> None:
    """The reason stands on the progress line at once and in the log; nothing is lost or run twice; the code is 0."""
    (work / "w.yaml").write_text(SPEC.format(minutes=5))

    def make_room() -> None:
        eventually((work / "full").exists)
        let_pass(1.5)
        (disk / "filler").unlink()

    helper = threading.Thread(target=make_room, daemon=True)
    helper.start()
    done = torc("run", "w.yaml", "--database", disk / "t.db", "-o", "out")
    assert done.returncode == 0, done.stderr
    said = done.stderr.splitlines()
    waits = next(n for n, line in enumerate(said) if line.startswith("The server cannot go on, waiting for it: "))
    assert "database or disk is full; nothing of this request was stored; make room" in said[waits]
    assert "The server goes on" in said[waits:]
    (log,) = (work / "out").glob("job_runner_*.log")
    assert "event=server_cannot_go_on" in log.read_text()
    assert "event=server_answers_again" in log.read_text()
    assert [(work / f"ran{n}").read_text() for n in (1, 2, 3)] == ["\n"] * 3
    printed = next((work / "out" / "job_stdio").glob("job_wf1_j1_*.o")).read_text()
    code, _, body = printed.partition(" ")
    assert int(code) == 507
    assert json.loads(body)["code"] == 507


def test_a_run_without_room_ends_and_can_be_gone_on_with(torc: Any, work: Path, disk: Path) -> None:
    """It reports the cause and the remedy; results of ended jobs are kept, so that they do not run again."""
    (work / "w.yaml").write_text(SPEC.format(minutes=0).replace("python3 fill.py", "echo >> filled; python3 fill.py"))
    done = torc("run", "w.yaml", "--database", disk / "t.db", "-o", "out")
    assert done.returncode == 3
    assert "database or disk is full" in done.stderr.splitlines()[-1]
    assert "'torc run 1' goes on" in done.stderr.splitlines()[-1]
    (disk / "filler").unlink()
    again = torc("run", "1", "--database", disk / "t.db", "-o", "out")
    assert again.returncode == 0, again.stderr
    assert (work / "filled").read_text() == "\n"
    assert [(work / f"ran{n}").read_text() for n in (1, 2, 3)] == ["\n"] * 3


def test_a_disk_that_is_full_from_the_start_is_named(torc: Any, work: Path, disk: Path) -> None:
    """The embedded server ends; the message has its reason, not the failed connection."""
    (work / "w.yaml").write_text("name: x\njobs: [{name: a, command: 'true'}]\n")
    (disk / "filler").write_bytes(bytes(7 << 20))
    with (disk / "filler").open("ab", buffering=0) as filler:
        try:
            while filler.write(bytes(4096)) == 4096:
                pass
        except OSError:
            pass
    done = torc("run", "w.yaml", "--database", disk / "t.db")
    assert done.returncode != 0
    (line,) = done.stderr.splitlines()
    assert "database or disk is full" in line
    assert "no Torc server answers" not in line


def test_logs_on_a_full_disk_are_a_fact_on_the_result(torc: Any, work: Path, disk: Path) -> None:
    """The job that filled it and the one after it: marked, warned about, and the exit code is not 0."""
    jobs = "{name: roomy, command: 'true'}, {name: fill, command: 'head -c 20m /dev/zero; true', depends_on: [roomy]}"
    (work / "w.yaml").write_text(f"name: logs\njobs: [{jobs}]\n")
    done = torc("run", "w.yaml", "--database", "t.db", "-o", disk / "out")
    assert done.returncode == 1
    assert "(workflow 1) completed: " in done.stdout
    (warning,) = [line for line in done.stderr.splitlines() if line.startswith("Warning: ")]
    assert warning.startswith("Warning: 1 attempt ended while the disk of the logs was full")
    assert "Traceback" not in done.stderr
    told = torc("-f", "json", "reports", "results", "1", "--database", "t.db", "-o", disk / "out")
    marks = {row["job_name"]: row["log_disk_full"] for row in json.loads(told.stdout)["results"]}
    assert marks == {"roomy": False, "fill": True}
