"""Tests of the server process: its start, its end, and its restart after a kill."""

import json
import os
import random
import signal
import socket
import sqlite3
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import closing, contextmanager, suppress
from http.client import HTTPConnection, HTTPException
from pathlib import Path
from typing import Any

import pytest
import sqlalchemy as sa
from sample_records import NODE
from waiting import eventually

from torc_framework.models.plan import Plan, PlannedJob
from torc_framework.models.records import WorkflowRecord
from torc_framework.store.database.opening import open_database
from torc_framework.store.database.probe import is_postgres
from torc_framework.store.tables import METADATA
from torc_framework.store.workflows.deletion import begin_deletion
from torc_framework.store.workflows.plans import create_plan

COMMAND = [
    sys.executable,
    "-m",
    "torc_framework.cli.programs.torc_server",
    "run",
    "--host",
    "127.0.0.1",
    "--log-level",
    "warning",
]
PREFIX = "/torc-service/v1"


@contextmanager
def started(database: Path | str, *more: str, **options: Any) -> Iterator[tuple["subprocess.Popen[str]", int]]:
    """Run a server; yield the process and its port."""
    process = subprocess.Popen(
        [*COMMAND, "--port", "0", "--database", str(database), *more],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        **options,
    )
    assert process.stdout is not None
    assert process.stderr is not None
    try:
        line = process.stdout.readline()
        assert line.startswith("TORC_SERVER_PORT="), process.stderr.read()
        yield process, int(line.partition("=")[2])
    finally:
        process.kill()
        process.wait()
        process.stdout.close()
        process.stderr.close()


def call(port: int, method: str, path: str, body: Any = None) -> Any:
    """Send JSON; return the body of the answer."""
    connection = HTTPConnection("127.0.0.1", port, timeout=60)
    try:
        connection.request(method, PREFIX + path, None if body is None else json.dumps(body))
        response = connection.getresponse()
        content = json.loads(response.read())
        assert response.status == 200, content
        return content
    finally:
        connection.close()


def planned(port: int, jobs: int) -> tuple[int, int]:
    """Make a workflow that is under way; return its id and a runner's."""
    plan = {
        "workflow": {"name": "w", "user": "u"},
        "jobs": [{"name": f"j{n}", "command": "true"} for n in range(jobs)],
        "dependencies": [[n, n - 10] for n in range(10, jobs)],
    }
    workflow_id = call(port, "POST", "/workflows/from_plan?initialize=true", plan)["id"]
    return workflow_id, call(port, "POST", "/compute_nodes", {**NODE, "workflow_id": workflow_id})["id"]


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_is_a_clean_end(tmp_path: Path, number: signal.Signals) -> None:
    """Exit code 0, at once, also while a runner waits; the runner gets its answer."""
    with started(tmp_path / "torc.db") as (process, port):
        workflow_id, node = planned(port, 1)
        call(port, "POST", f"/workflows/{workflow_id}/exchange", {"compute_node_id": node, "run_id": 1, "slots": 1})
        connection = HTTPConnection("127.0.0.1", port, timeout=30)
        waiting = {"compute_node_id": node, "run_id": 1, "slots": 1, "wait_s": 60}
        connection.request("POST", f"{PREFIX}/workflows/{workflow_id}/exchange", json.dumps(waiting))
        call(port, "GET", "/ping")
        process.send_signal(number)
        assert json.loads(connection.getresponse().read())["jobs"] == []
        connection.close()
        assert process.wait(20) == 0
        assert process.stderr is not None
        assert process.stderr.read() == ""


def test_the_end_of_the_parent_is_the_end(tmp_path: Path) -> None:
    """A server that was given a pipe ends with it."""
    reader, writer = os.pipe()
    with started(tmp_path / "torc.db", "--parent-fd", str(reader), pass_fds=[reader]) as (process, port):
        os.close(reader)
        call(port, "GET", "/ping")
        os.close(writer)
        assert process.wait(20) == 0


def refused(*arguments: str) -> str:
    """Run a server that cannot start; return its one message."""
    done = subprocess.run([*COMMAND, *arguments], capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 2
    assert "Traceback" not in done.stderr
    assert done.stdout == ""
    (line,) = done.stderr.splitlines()
    return line


def test_a_database_that_cannot_be_used_is_told(tmp_path: Path) -> None:
    """One line, exit code 2, no port."""
    (tmp_path / "text").write_text("hello, this is no database at all\n" * 40)
    assert "file is not a database" in refused("--port", "0", "--database", str(tmp_path / "text"))
    assert "cannot open database" in refused("--port", "0", "--database", str(tmp_path / "text" / "torc.db"))
    assert "cannot open database" in refused("--port", "0", "--database", str(tmp_path))
    assert "expected the path of a file" in refused("--port", "0", "--database", "mysql://x/y")


def test_an_address_that_is_taken_is_told(tmp_path: Path) -> None:
    """With the address."""
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = str(taken.getsockname()[1])
        assert f"127.0.0.1:{port}" in refused("--port", port, "--database", str(tmp_path / "torc.db"))


def test_two_servers_share_a_database(place: str) -> None:
    """Started at once on a database that is empty; what one stores the other shows."""
    with started(place) as (_, first), started(place) as (_, second):
        workflow_id, _ = planned(first, 3)
        assert call(second, "GET", f"/workflows/{workflow_id}/job_counts")["total"] == 3
        planned(second, 3)
        assert call(first, "GET", "/workflows")["total_count"] == 2


def test_another_process_wakes_a_waiting_runner(place: str, background: Any) -> None:
    """Servers that share a database need not know of each other."""
    with started(place) as (_, first), started(place) as (_, second):
        workflow_id, node = planned(first, 1)
        path = f"/workflows/{workflow_id}/exchange"
        wish = {"compute_node_id": node, "run_id": 1, "slots": 1}
        assert len(call(first, "POST", path, wish)["jobs"]) == 1
        idle = background(lambda: call(first, "POST", path, {**wish, "wait_s": 60}))
        call(first, "GET", "/ping")
        call(second, "PUT", f"/workflows/{workflow_id}/cancel", {})
        assert idle.result()["is_canceled"]


@pytest.mark.crash
@pytest.mark.parametrize("seed", range(3))
def test_a_killed_server_has_lost_nothing(place: str, seed: int) -> None:
    """Killed in the midst of exchanges: what it answered is there, the database is whole, the rest goes on."""
    random_ = random.Random(seed)
    jobs = 120
    told: dict[int, int] = {}
    kills = 4
    workflow_id = node = 0
    held: dict[int, int] = {}
    for round_ in range(kills + 1):
        with started(place) as (process, port):
            if not workflow_id:
                workflow_id, node = planned(port, jobs)
            timer = threading.Timer(random_.uniform(0.005, 0.08), process.kill)
            if round_ < kills:
                timer.start()
            with suppress(OSError, HTTPException):
                _work(port, workflow_id, node, held, told)
            timer.cancel()
        stored, statuses = _kept(place)
        assert told.items() <= stored.items()
    assert len(told) == len(stored) == jobs
    assert statuses == {5: jobs}


def _kept(place: str) -> tuple[dict[int, int], dict[int, int]]:
    """Return the return codes by job and the number of jobs by status, from a database that is whole."""
    if not is_postgres(place):
        with closing(sqlite3.connect(place)) as connection:
            assert connection.execute("PRAGMA integrity_check").fetchall() == [("ok",)]
            assert connection.execute("PRAGMA foreign_key_check").fetchall() == []
    database = open_database(place)
    try:
        with database.read() as tx:
            stored = tx.connection.exec_driver_sql("SELECT job_id, return_code FROM result")
            counts = tx.connection.exec_driver_sql("SELECT status, count(*) FROM job GROUP BY status")
            return {row[0]: row[1] for row in stored}, {row[0]: row[1] for row in counts}
    finally:
        database.close()


def _work(port: int, workflow_id: int, node: int, held: dict[int, int], told: dict[int, int]) -> None:
    """Be a runner until the workflow is complete; ``told`` are the return codes that the server has answered for."""
    while True:
        reports: list[dict[str, Any]] = [
            {
                "job_id": job,
                "attempt_id": attempt,
                "status": "completed",
                "return_code": job % 7,
                "exec_time_s": 0.1,
                "ended_at": 1.7e9,
            }
            for job, attempt in held.items()
        ]
        request = {
            "compute_node_id": node,
            "run_id": 1,
            "slots": 7,
            "holding": list(held),
            "started": [{"job_id": job, "attempt_id": attempt, "at": 1.7e9} for job, attempt in held.items()],
            "ended": reports,
        }
        answer = call(port, "POST", f"/workflows/{workflow_id}/exchange", request)
        told.update((report["job_id"], report["return_code"]) for report in reports)
        held.clear()
        held.update((job["id"], job["attempt_id"]) for job in answer["jobs"])
        if answer["is_complete"]:
            return


def test_a_new_server_continues_a_deletion(tmp_path: Path) -> None:
    """A workflow whose deletion a killed server had begun is gone, and soon its rows are."""
    database = tmp_path / "torc.db"
    plan = Plan(WorkflowRecord(name="w", user="u"), [PlannedJob(f"j{n}", "true") for n in range(50)])
    with closing(open_database(str(database))) as opened:
        with opened.write() as tx:
            workflow_id = create_plan(tx, plan).id
        with opened.write() as tx:
            begin_deletion(tx, workflow_id, force=True)
        with started(database) as (_, port):
            assert call(port, "GET", "/workflows")["items"] == []

            def rows() -> int:
                with opened.read() as tx:
                    tables = METADATA.tables["workflow"], METADATA.tables["job"]
                    counts = [tx.connection.execute(sa.select(sa.func.count()).select_from(table)) for table in tables]
                    return sum(count.scalar_one() for count in counts)

            eventually(lambda: rows() == 0, "the rows of the workflow are deleted")
