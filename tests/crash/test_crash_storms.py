"""Many runs at once, servers killed at the last moment, signals at any moment: the report of ``torc run`` is true."""

import json
import os
import random
import signal
import subprocess
import threading
import time
from pathlib import Path

import pytest
from crash_bench import BIN, Bench
from waiting import let_pass

from torc_framework.client import TorcClient
from torc_framework.embedded.server import EmbeddedServer
from torc_framework.models.records import JobRecord, ResultRecord, WorkflowRecord

pytestmark = [pytest.mark.crash, pytest.mark.slow]

ROUNDS = int(os.environ.get("TORC_TEST_STORM_ROUNDS", "1"))
"""How many times the usual number of moments is tried."""
PATIENCE_S = 180


def run(folder: Path, *arguments: str, database: str = "torc.db") -> "subprocess.Popen[str]":
    """Start ``torc run`` in a folder, with an embedded server."""
    environment = {name: value for name, value in os.environ.items() if not name.startswith("TORC_")}
    return subprocess.Popen(
        [BIN / "torc", "--database", database, "-f", "json", "run", *arguments],
        cwd=folder,
        env={**environment, "XDG_STATE_HOME": str(folder / "state")},  # logs of servers that failed are kept there
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def spec_of(folder: Path, count: int, command: str) -> str:
    """Write a spec of chains of jobs, four at a time; return its name."""
    jobs = [
        {"name": f"j{n}", "command": command.format(n=n), "depends_on": [f"j{n - 4}"] if n >= 4 else []}
        for n in range(count)
    ]
    (folder / "spec.json").write_text(json.dumps({"name": "storm", "jobs": jobs}))
    return "spec.json"


@pytest.mark.parametrize("number", range(2 * ROUNDS))
def test_many_start_at_once_on_a_database_that_is_not_there_yet(tmp_path: Path, number: int) -> None:
    """All of them make it, migrate it and write to it."""
    folders = [tmp_path / str(n) for n in range(5)]
    for folder in folders:
        folder.mkdir()
        spec_of(folder, 8, "true")
    runs = [run(folder, "spec.json", database=str(tmp_path / "torc.db")) for folder in folders]
    ended = [(process.communicate(timeout=PATIENCE_S)[1], process.returncode) for process in runs]
    assert [code for _, code in ended] == [0] * len(runs), (number, [said for said, code in ended if code])
    with EmbeddedServer(tmp_path / "torc.db") as server, TorcClient(server.url) as client:
        workflows = client.find(WorkflowRecord)
        assert len({each.id for each in workflows}) == len(runs)
        assert all(len(client.find(ResultRecord, workflow_id=each.id)) == 8 for each in workflows)


@pytest.mark.parametrize("seed", range(3 * ROUNDS))
def test_a_server_killed_at_the_last_moments(bench: Bench, seed: int) -> None:
    """The run reports that all jobs are done, whenever the server was killed and restarted."""
    chance = random.Random(seed)
    bench.create([0] * 24, 0.05)
    runner = bench.start_runner()
    bench.wait_until_begun(24)
    for _ in range(3):
        let_pass(chance.random() * 0.15)
        if runner.poll() is not None:
            break
        bench.kill_server()
        bench.start_server()
    assert runner.wait(PATIENCE_S) == 0
    bench.check()


@pytest.fixture(scope="module")
def whole_run_s(tmp_path_factory: pytest.TempPathFactory) -> float:
    """Seconds that an undisturbed run takes."""
    folder = tmp_path_factory.mktemp("whole")
    began = time.monotonic()
    run(folder, spec_of(folder, 12, "sleep 0.1")).communicate(timeout=PATIENCE_S)
    return time.monotonic() - began


@pytest.mark.parametrize("number", range(8 * ROUNDS))
@pytest.mark.parametrize("name", ["SIGINT", "SIGTERM"])
def test_an_interrupt_at_any_moment(tmp_path: Path, whole_run_s: float, number: int, name: str) -> None:
    """The run ends soon and without a traceback; ``torc run ID`` brings the workflow to its end."""
    process = run(tmp_path, spec_of(tmp_path, 12, "sleep 0.1; echo {n} >> done"))
    moment_s = whole_run_s * (number + random.Random(number).random()) / (8 * ROUNDS)
    threading.Timer(moment_s, process.send_signal, [getattr(signal, name)]).start()
    said = process.communicate(timeout=PATIENCE_S)[1]
    # SIGTERM before the runner works ends the process as any other program.
    assert process.returncode in (0, 130, -signal.SIGTERM if name == "SIGTERM" else 0), (moment_s, said)
    assert "Traceback" not in said, moment_s
    assert "internal" not in said, moment_s
    if not (tmp_path / "torc.db").exists():
        return
    with EmbeddedServer(tmp_path / "torc.db") as server, TorcClient(server.url) as client:
        ids = [each.id or 0 for each in client.find(WorkflowRecord)]
    if not ids:
        return
    goes_on = run(tmp_path, str(ids[0]))
    out, said = goes_on.communicate(timeout=PATIENCE_S)
    assert goes_on.returncode == 0, (moment_s, out, said)
    assert {*(tmp_path / "done").read_text().split()} == {str(n) for n in range(12)}
    with EmbeddedServer(tmp_path / "torc.db") as server, TorcClient(server.url) as client:
        assert {each.status for each in client.iterate(JobRecord, workflow_id=ids[0])} == {"completed"}
