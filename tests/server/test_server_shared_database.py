"""Tests of several servers on one PostgreSQL database."""

import json
import subprocess
import threading
from collections import Counter
from collections.abc import Iterator
from contextlib import suppress
from http.client import HTTPException
from itertools import count
from pathlib import Path
from typing import Any

import psycopg
import pytest
from postgres_server import OWNER, PostgresServer
from programs import BIN, Torc, isolated_environment

THREADS = 4
JOBS = 400


@pytest.fixture
def url(postgres: PostgresServer) -> Iterator[str]:
    """A fresh database."""
    with postgres.database() as made:
        yield made


class Server:
    """A server process."""

    def __init__(self, folder: Path, database: str, *options: str) -> None:
        self.process = subprocess.Popen(
            [BIN / "torc-server", "run", "--port", "0", "--log-level", "info" if options else "warning", *options],
            env={**isolated_environment(folder), "DATABASE_URL": database},
            stdout=subprocess.PIPE,
            text=True,
        )
        assert self.process.stdout is not None
        self.port = int(self.process.stdout.readline().partition("=")[2])
        self.url = f"http://127.0.0.1:{self.port}/torc-service/v1"

    def end(self) -> None:
        """Kill it."""
        self.process.kill()
        self.process.wait()
        assert self.process.stdout is not None
        self.process.stdout.close()


@pytest.fixture
def servers(tmp_path: Path, url: str, make_api: Any) -> Iterator[list[Server]]:
    """Two servers that were started at once on an empty database."""
    started = [Server(tmp_path / str(n), url) for n in range(2)]
    for server in started:
        make_api(server.url).ok("GET", "/ping")
    yield started
    for server in started:
        server.end()


@pytest.mark.crash
def test_no_job_is_handed_out_twice(
    servers: list[Server], tmp_path: Path, url: str, make_api: Any, report_end: Any
) -> None:
    """Runners claim at both servers; one is killed in the middle and comes back; what was answered is there."""
    workflow_id = make_api(servers[0].url).planned(JOBS)
    handed: Counter[tuple[int, int]] = Counter()
    told: set[int] = set()
    enough, lock = threading.Event(), threading.Lock()

    def runner(number: int) -> None:
        """Claim, report, claim; after a lost answer, ask the other server, naming what is held."""
        node = make_api(servers[0].url).node(workflow_id)
        held: list[dict[str, Any]] = []
        for n in count(number):
            request: dict[str, Any] = {
                "slots": 3,
                "holding": [job["id"] for job in held],
                "ended": [report_end(job["id"], attempt=job["attempt_id"]) for job in held],
            }
            with suppress(OSError, HTTPException):
                answer = make_api(servers[n % 2].url).exchange(workflow_id, node, **request)
                with lock:
                    told.update(request["holding"])
                    handed.update((job["id"], node) for job in answer["jobs"])
                    if len(told) > JOBS // 4:
                        enough.set()
                held = answer["jobs"]
                if answer["is_complete"]:
                    return

    threads = [threading.Thread(target=runner, args=(n,), daemon=True) for n in range(THREADS)]
    for thread in threads:
        thread.start()
    assert enough.wait(60)
    servers[1].end()
    servers[1] = Server(tmp_path / "again", url)
    for thread in threads:
        thread.join(60)
        assert not thread.is_alive()
    assert len({job for job, _ in handed}) == len(handed) == len(told) == JOBS, "each job had one runner"
    with psycopg.connect(url) as connection:
        jobs = connection.execute("SELECT status, count(*), count(result_id) FROM job GROUP BY status").fetchall()
        assert jobs == [(5, JOBS, JOBS)]
        results = connection.execute("SELECT count(*), count(DISTINCT job_id) FROM result").fetchall()
        assert results == [(JOBS, JOBS)]


def test_a_database_that_goes_away_is_told(
    servers: list[Server], make_api: Any, postgres: PostgresServer, background: Any
) -> None:
    """503 with the reason; a runner that waits hears nothing until it is back, and then everything."""
    api = make_api(servers[0].url)
    workflow_id = api.planned(1)
    node = api.node(workflow_id)
    assert len(api.exchange(workflow_id, node, slots=1)["jobs"]) == 1
    postgres.stop()
    try:
        for method, path, body in (
            ("GET", "/workflows", None),
            ("POST", "/workflows", {"name": "w", "user": "u"}),
            ("POST", f"/workflows/{workflow_id}/exchange", {"compute_node_id": node, "run_id": 1}),
        ):
            answer = api.call(method, path, body)
            assert answer.status == 503
            assert f"cannot use database postgresql://{OWNER}@" in answer.message
        assert api.call("GET", "/ping").status == 200
    finally:
        postgres.start()
    waiting = background(lambda: api.exchange(workflow_id, node, slots=1, wait_s=60))
    make_api(servers[1].url).ok("PUT", f"/workflows/{workflow_id}/cancel", {})
    assert waiting.result()["is_canceled"]


def test_a_command_has_its_own_server_on_it(torc: Torc, work: Path, url: str) -> None:
    """By flag or by environment; the next command finds what the first left."""
    spec = {"name": "small", "jobs": [{"name": "a", "command": "true"}, {"name": "b", "command": "true"}]}
    (work / "w.json").write_text(json.dumps(spec))
    ran = torc("--database", url.replace("postgresql:", "postgresql+psycopg:"), "run", "w.json")
    assert ran.returncode == 0, ran.stderr
    listed = torc("-f", "json", "jobs", "list", 1, env={"TORC_DATABASE": url})
    assert [job["status"] for job in json.loads(listed.stdout)["jobs"]] == ["completed"] * 2


@pytest.mark.parametrize("program", ["torc-server", "torc"])
def test_a_database_that_cannot_be_used_is_told(program: str, tmp_path: Path) -> None:
    """In one line without the password, with exit code 3: it may be there later."""
    arguments = {"torc-server": ["run", "--port", "0"], "torc": ["workflows", "list"]}[program]
    database = "postgresql://u:sesame@127.0.0.1:1/x"
    done = subprocess.run(
        [BIN / program, *arguments],
        env={**isolated_environment(tmp_path), "DATABASE_URL": database, "TORC_DATABASE": database},
        capture_output=True,
        text=True,
        check=False,
    )
    (line,) = done.stderr.splitlines()
    assert "cannot open database postgresql://u@127.0.0.1:1/x: " in line
    assert (done.returncode, done.stdout) == (3, "")


def test_the_log_has_no_password(tmp_path: Path, url: str, make_api: Any) -> None:
    """Neither one of the address nor one of the options."""
    address = url.replace("@/", ":sesame@/") + "&sslpassword=sesame"
    started = Server(tmp_path, address, "--log-dir", str(tmp_path))
    try:
        make_api(started.url).ok("GET", "/ping")
    finally:
        started.end()
    log = (tmp_path / "torc-server.log").read_text()
    assert "postgresql://torc:***@/" in log
    assert "sesame" not in log
