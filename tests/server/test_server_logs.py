"""Tests of log lines: their format, their fields for requests and events, and the secrets that they never hold."""

import json
import logging
import re
import shlex
import subprocess
import sys
from base64 import b64encode
from collections.abc import Iterator
from contextlib import contextmanager
from http.client import HTTPConnection
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from sample_records import NODE

from torc_framework.errors import ConfigError
from torc_framework.server import logs
from torc_framework.server.http.access_log import log_events
from torc_framework.server.settings import LoggingSettings
from torc_framework.store.database.base import Database

PREFIX = "/torc-service/v1"


def record(message: str, values: dict[str, Any]) -> logging.LogRecord:
    """Return a record of a line with fields."""
    made = logging.LogRecord("torc.server", logging.INFO, __file__, 1, message, (), None)
    made.fields = values
    return made


@given(st.text(), st.dictionaries(st.sampled_from("abcdef"), st.one_of(st.text(), st.integers(), st.booleans())))
def test_a_line_stays_one_line_with_any_content(message: str, values: dict[str, Any]) -> None:
    """Nobody forges a line by a name with a line end in it; JSON gives back what was told."""
    line = logs.KeyValueFormatter().format(record(message, values))
    assert not re.search(r"[\x00-\x1f]", line)
    names = [word.partition("=")[0] for word in _words(line)]
    assert names == ["time", "level", "logger", "message", *values]
    told = json.loads(logs.JsonFormatter().format(record(message, values)))
    assert {**values, "message": message}.items() <= told.items()


def _words(line: str) -> list[str]:
    """Split a line at the blanks outside of JSON texts."""
    return re.findall(r'(?:"(?:\\.|[^"\\])*"|[^ "])+', line)


def test_values_are_found_by_grep() -> None:
    """Numbers, paths and words stand without quotes."""
    values = {"workflow_id": 3, "path": "/a/b-c", "ok": True, "reason": "exit code 1"}
    line = logs.KeyValueFormatter().format(record("job_completed", values))
    assert line.endswith('message=job_completed workflow_id=3 path=/a/b-c ok=true reason="exit code 1"')


@pytest.fixture
def restored() -> Iterator[None]:
    """Give the root logger back as it was."""
    root = logging.getLogger()
    handlers, level, theirs = root.handlers[:], root.level, logging.getLogger("uvicorn").level
    yield
    for handler in root.handlers:
        if handler not in handlers:
            handler.close()
    root.handlers[:] = handlers
    root.setLevel(level)
    logging.getLogger("uvicorn").setLevel(theirs)


@pytest.mark.usefixtures("restored")
def test_a_file_that_is_full_makes_room(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Five older ones stay."""
    monkeypatch.setattr(logs, "MAX_FILE_BYTES", 1000)
    logs.configure_logging("info", LoggingSettings(log_dir=tmp_path / "deep" / "logs"), on_stderr=False)
    for number in range(200):
        logging.getLogger("torc.server").info("line %d", number)
    names = sorted(path.name for path in (tmp_path / "deep" / "logs").iterdir())
    assert names == ["torc-server.log", *(f"torc-server.log.{number}" for number in range(1, 6))]
    assert all(path.stat().st_size <= 1000 for path in (tmp_path / "deep" / "logs").iterdir())
    assert 'message="line 199"' in (tmp_path / "deep" / "logs" / "torc-server.log").read_text()


@pytest.mark.usefixtures("restored")
def test_a_file_that_cannot_be_written_is_told(tmp_path: Path) -> None:
    (tmp_path / "text").write_text("")
    with pytest.raises(ConfigError, match=r"cannot write the log file .*torc-server\.log: .*; see --log-dir"):
        logs.configure_logging("info", LoggingSettings(log_dir=tmp_path / "text"))


@pytest.mark.usefixtures("restored")
def test_events_are_not_even_looked_at_when_no_line_would_show(tmp_path: Path) -> None:
    """The cost of a hidden line is that of not being asked."""
    heard: list[Any] = []

    class Deaf(Database):
        def __init__(self) -> None: ...

        def on_stored_events(self, listener: Any) -> None:
            heard.append(listener)

    Deaf.__abstractmethods__ = frozenset()
    deaf: Any = Deaf  # for mypy it is still abstract
    logs.configure_logging("error", on_stderr=False)
    log_events(deaf())
    assert heard == []
    logs.configure_logging("info", on_stderr=False)
    log_events(deaf())
    assert len(heard) == 1


# --- a real server --------------------------------------------------------------------------------


@contextmanager
def logged(folder: Path, environ: dict[str, str], *flags: str) -> Iterator[int]:
    """Run a server that logs to a file and to standard error, both in the folder; yield its port."""
    command = [
        sys.executable,
        "-m",
        "torc_framework.cli.programs.torc_server",
        "run",
        "--port",
        "0",
        "--log-dir",
        "logs",
    ]
    with (folder / "stderr").open("wb") as stderr:
        process = subprocess.Popen(
            [*command, *flags], cwd=folder, env=environ, stdout=subprocess.PIPE, stderr=stderr, text=True
        )
    assert process.stdout is not None
    try:
        yield int(process.stdout.readline().strip().removeprefix("TORC_SERVER_PORT="))
    finally:
        process.terminate()
        assert process.wait(30) == 0
        process.stdout.close()


def ask(port: int, method: str, path: str, body: Any = None, **headers: str) -> Any:
    """Send JSON; return the answer's headers and body."""
    connection = HTTPConnection("127.0.0.1", port, timeout=60)
    try:
        connection.request(method, PREFIX + path, None if body is None else json.dumps(body), headers)
        response = connection.getresponse()
        return response.headers, json.loads(response.read())
    finally:
        connection.close()


def lines(folder: Path) -> list[dict[str, Any]]:
    """Return the lines of a JSON log."""
    return [json.loads(line) for line in (folder / "logs" / "torc-server.log").read_text().splitlines()]


def test_the_life_of_a_workflow_is_told(tmp_path: Path, torc_env: dict[str, str]) -> None:
    """A line for each change, with what was made, claimed, ended; questions are told at debug only."""
    plan = {"workflow": {"name": "w", "user": "u"}, "jobs": [{"name": "a\nb", "command": "true"}]}
    with logged(tmp_path, torc_env, "--json-logs") as port:
        headers, made = ask(port, "POST", "/workflows/from_plan?initialize=true", plan)
        workflow = made["id"]
        node = ask(port, "POST", "/compute_nodes", {**NODE, "workflow_id": workflow})[1]["id"]
        wish = {"compute_node_id": node, "run_id": 1, "slots": 1}
        job = ask(port, "POST", f"/workflows/{workflow}/exchange", wish)[1]["jobs"][0]["id"]
        ask(port, "POST", f"/workflows/{workflow}/exchange", wish)
        report = {
            "job_id": job,
            "attempt_id": 1,
            "status": "completed",
            "return_code": 0,
            "exec_time_s": 1.0,
            "ended_at": 1.0,
        }
        ask(port, "POST", f"/workflows/{workflow}/exchange", {**wish, "ended": [report]})
        ask(port, "GET", f"/workflows/{workflow}")
        ask(port, "DELETE", f"/workflows/{workflow}")
    told = lines(tmp_path)
    requests = [line for line in told if line["logger"] == "torc.server.access"]
    assert [(line["method"], line["path"].removeprefix(PREFIX), line["status"]) for line in requests] == [
        ("POST", "/workflows/from_plan", 200),
        ("POST", "/compute_nodes", 200),
        ("POST", f"/workflows/{workflow}/exchange", 200),
        ("POST", f"/workflows/{workflow}/exchange", 200),
        ("DELETE", f"/workflows/{workflow}", 200),
    ]
    assert (requests[0]["workflow_id"], requests[0]["span"]) == (workflow, headers["X-Span-ID"])
    assert requests[1]["compute_node_id"] == node
    assert [(line["claimed"], line["reported"]) for line in requests[2:4]] == [(1, 0), (0, 1)]
    assert all(line["duration_ms"] >= 0 for line in requests)
    (ended,) = (line for line in told if line["message"] == "job_completed")
    assert (ended["workflow_id"], ended["job_id"], ended["status"], ended["level"]) == (
        workflow,
        job,
        "completed",
        "info",
    )
    plain = (tmp_path / "stderr").read_text()
    assert f"message=job_completed workflow_id={workflow} job_id={job} " in plain
    assert len(plain.splitlines()) == len(told)


def test_debug_tells_questions_too(tmp_path: Path, torc_env: dict[str, str]) -> None:
    """Without --json-logs the file has the same form as standard error."""
    with logged(tmp_path, torc_env, "--log-level", "debug") as port:
        ask(port, "GET", "/workflows?name=secret")
        ask(port, "GET", "/workflows/77")
    text = (tmp_path / "logs" / "torc-server.log").read_text()
    assert text == (tmp_path / "stderr").read_text()
    assert f"method=GET path={PREFIX}/workflows status=200 duration_ms=" in text
    assert "status=404" in text
    assert "secret" not in text
    assert [word for word in shlex.split(text.splitlines()[-2]) if word == "workflow_id=77"]


def test_passwords_are_not_told(tmp_path: Path, torc_env: dict[str, str]) -> None:
    """Neither those of clients nor that of the database."""
    with logged(tmp_path, torc_env, "--log-level", "debug") as port:
        ask(port, "GET", "/workflows", Authorization="Basic " + b64encode(b"eve:open-sesame").decode())
    text = (tmp_path / "logs" / "torc-server.log").read_text()
    assert "open-sesame" not in text
    assert b64encode(b"eve:open-sesame").decode() not in text
    assert logs.url_without_password("postgresql://eve:open-sesame@db/torc") == "postgresql://eve:***@db/torc"
