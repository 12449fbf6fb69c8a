"""Tests of the embedded server: other users of the machine cannot use it."""

import json
import sqlite3
import subprocess
import sys
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import psutil
import pytest
from people import Person

from torc_framework.client import TorcClient
from torc_framework.embedded.server import EmbeddedServer
from torc_framework.errors import ApiError
from torc_framework.models.plan import Plan, PlannedJob
from torc_framework.models.records import WorkflowRecord


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[EmbeddedServer]:
    """A running embedded server."""
    with EmbeddedServer(tmp_path_factory.mktemp("own") / "torc.db") as server:
        yield server


def token_of(server: EmbeddedServer) -> str:
    """Return the secret in a server's URL."""
    return urlsplit(server.url).path.split("/")[1].removeprefix("~")


def test_the_url_is_all_that_is_needed(server: EmbeddedServer) -> None:
    """The client and any other program get through with the URL alone."""
    with TorcClient(server.url) as client:
        assert client.ping() == {"status": "ok"}
    with urllib.request.urlopen(f"{server.url}/ping") as answer:
        assert json.loads(answer.read()) == {"status": "ok"}


@pytest.mark.parametrize(
    "path", ["/torc-service/v1/ping", "/~/torc-service/v1/ping", "/~guess/torc-service/v1/workflows", "/", "/metrics"]
)
def test_without_the_token_nothing_is_told(server: EmbeddedServer, path: str) -> None:
    """No path is served without the token, or with a wrong or a longer one."""
    stranger = Person(server.url)
    assert stranger.call("GET", f"/{path}").status == 403
    assert stranger.call("GET", f"//~{token_of(server)}x/torc-service/v1/ping").status == 403
    assert stranger.call("GET", f"//~{token_of(server)[:-1]}/torc-service/v1/ping").status == 403


def test_a_server_of_one_run_starts_no_worker_for_large_bodies(server: EmbeddedServer) -> None:
    """It has one client, which would only wait for the start of another process."""
    jobs = [PlannedJob(name=f"j{n}", command="x" * 100) for n in range(5000)]
    with TorcClient(server.url) as client:
        assert client.create_from_plan(Plan(WorkflowRecord(name="large", user="u"), jobs)).id
    assert psutil.Process(server.pid).children(recursive=True) == []


def test_a_server_of_one_run_takes_very_large_plans(server: EmbeddedServer) -> None:
    """Larger than what a shared server takes."""
    jobs = [PlannedJob(name=f"j{n}", command="x" * 1_000_000) for n in range(65)]
    with TorcClient(server.url) as client:
        assert client.create_from_plan(Plan(WorkflowRecord(name="very large", user="u"), jobs)).id


def test_what_a_server_wrote_can_be_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """In a file that only its owner reads."""
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    server = EmbeddedServer(tmp_path / "torc.db", log_level="info")
    server.start()
    assert server.url
    server.close()
    log = server.keep_log()
    assert log is not None
    assert log.parent == tmp_path / "state" / "torc"
    assert "the server ends" in log.read_text()
    assert (log.stat().st_mode & 0o777, log.parent.stat().st_mode & 0o777) == (0o600, 0o700)


def test_a_damaged_database_is_told_as_such(tmp_path: Path) -> None:
    """It is no fault of the program."""
    path = tmp_path / "torc.db"
    with EmbeddedServer(path) as server, TorcClient(server.url) as client:
        client.create(WorkflowRecord(name="w", user="u"))
    with sqlite3.connect(path) as connection:
        (page,) = connection.execute("SELECT rootpage FROM sqlite_master WHERE name = 'workflow'").fetchone()
    connection.close()
    content = bytearray(path.read_bytes())
    content[4096 * (page - 1) : 4096 * page] = b"x" * 4096
    path.write_bytes(content)
    with EmbeddedServer(path) as server, TorcClient(server.url) as client, pytest.raises(ApiError) as caught:
        client.find(WorkflowRecord)
    assert caught.value.status == 503
    assert "malformed" in str(caught.value)


def test_a_web_page_gets_nothing(server: EmbeddedServer) -> None:
    """Even a page that knew the URL would have to come from this machine."""
    assert Person(server.url, more={"Host": "evil.example"}).call("GET", "/ping").status == 403
    assert Person(server.url, more={"Origin": "https://evil.example"}).call("POST", "/workflows").status == 403


def test_the_token_is_no_argument_and_is_not_shown(server: EmbeddedServer) -> None:
    """Other users see the arguments of processes; messages end up in logs."""
    assert server.pid is not None
    assert token_of(server) not in " ".join(psutil.Process(server.pid).cmdline())
    with TorcClient(server.url) as client:
        assert token_of(server) not in client.url
        assert client.environment == {"TORC_API_URL": server.url}


def test_jobs_call_their_server(torc: Any, work: Path) -> None:
    """A job reaches it with torc and with plain HTTP; nothing that is printed or logged holds the token."""
    code = "import os, urllib.request as u; print(u.urlopen(os.environ['TORC_API_URL'] + '/ping').read())"
    (work / "ask.py").write_text(code)
    command = f"torc -f json workflows list && {sys.executable} ask.py && printenv TORC_API_URL > url && ps -ef > all"
    (work / "flow.yaml").write_text(json.dumps({"name": "w", "jobs": [{"name": "j", "command": command}]}))
    done: subprocess.CompletedProcess[str] = torc("run", "flow.yaml", "--output-dir", "out")
    assert done.returncode == 0, (done.stdout, done.stderr)
    token = urlsplit((work / "url").read_text().strip()).path.split("/")[1]
    assert token.startswith("~")
    assert len(token) > 40
    written = [file.read_bytes() for file in (work / "out").rglob("*") if file.is_file()]
    assert token.encode() not in b"".join([*written, done.stdout.encode(), done.stderr.encode()])
    assert token not in (work / "all").read_text()
