"""The ways in which ``torc-dash --standalone`` ends or does not start, and what becomes of its server."""

import os
import signal
import socket
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Final

import pytest
from dash_bench import DashProgram, running_dash
from small_disk import MISSING, mounted
from waiting import eventually

pytestmark = pytest.mark.e2e
WORKFLOW: Final = {"name": "w", "jobs": [{"name": "a", "command": "true"}]}


def standalone(folder: Path) -> tuple[str, ...]:
    """Return the flags for a server of the dashboard's own."""
    return ("--standalone", "--database", str(folder / "own.db"))


def has_ended(pid: int) -> bool:
    """Return whether a process has ended; its parent may not have asked for its exit code yet."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(") ")[2].startswith("Z")
    except (FileNotFoundError, ProcessLookupError):
        return True


@pytest.fixture
def own(tmp_path: Path) -> Iterator[DashProgram]:
    """A dashboard with a server of its own."""
    with running_dash(tmp_path, *standalone(tmp_path)) as program:
        yield program


@pytest.mark.parametrize(
    ("number", "code"),
    [(signal.SIGINT, 0), (signal.SIGTERM, 0), (signal.SIGHUP, 0), (signal.SIGKILL, -signal.SIGKILL)],
)
def test_the_server_ends_with_the_dashboard(own: DashProgram, number: signal.Signals, code: int) -> None:
    """Also when the dashboard is killed: the kernel closes the pipe between them."""
    owner = own.owner()
    owner.create(WORKFLOW)
    server = int(owner.get("dash/server")["pid"])
    own.process.send_signal(number)
    assert own.process.wait(90) == code
    eventually(lambda: has_ended(server), "the server goes on without its dashboard")


def test_a_killed_server_is_told_and_can_be_started_again(own: DashProgram) -> None:
    owner = own.owner()
    id_ = owner.create(WORKFLOW)
    server = int(owner.get("dash/server")["pid"])
    os.kill(server, signal.SIGKILL)
    eventually(lambda: owner.get("dash/server")["running"] is False, "the end of the server is not told")
    refused = owner.http.get("api/workflows")
    assert (refused.status_code, refused.json()["upstream"]) == (502, "away")
    eventually(lambda: owner.get("dash/state")["server"]["state"] == "away", "the state is not told")
    assert owner.http.post("dash/server/start").json()["running"] is True
    assert owner.get(f"api/workflows/{id_}")["name"] == "w"
    assert owner.get("dash/state")["server"]["state"] == "live"


def test_the_server_is_started_with_other_options(own: DashProgram, tmp_path: Path) -> None:
    """Another database, port and log level; what is not given stays as it was at the last start."""
    owner = own.owner()
    id_ = owner.create(WORKFLOW)
    first = owner.get("dash/server")["database"]
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    owner.http.post("dash/server/stop")
    other = tmp_path / "other" / "torc.db"
    wanted = {"database": str(other), "port": port, "log_level": "debug"}
    owner.http.post("dash/server/start")
    assert "stop it before" in owner.http.post("dash/server/start", json=wanted).text
    owner.http.post("dash/server/stop")
    assert owner.http.post("dash/server/start", json=wanted).json().items() >= wanted.items()
    assert other.exists()
    assert owner.get("dash/server")["url"].startswith(f"http://127.0.0.1:{port}/")
    assert owner.get("api/workflows")["items"] == []
    owner.http.post("dash/server/stop")
    assert owner.http.post("dash/server/start", json={"database": first, "port": 0}).json()["log_level"] == "debug"
    assert owner.get(f"api/workflows/{id_}")["name"] == "w"


@pytest.mark.parametrize(
    ("wanted", "words"),
    [
        ({"port": 65536}, "port"),
        ({"port": "8080"}, "port"),
        ({"log_level": "loud"}, "log_level"),
        ({"log_level": "info\n"}, "log_level"),
        ({"database": "a\n"}, "database"),
        ({"database": ""}, "database"),
        ({"database": "a\0b"}, "database"),
        ({"host": "0.0.0.0"}, "host"),
        ({"database": "/dev/null/torc.db"}, "/dev/null"),
    ],
)
def test_options_with_which_no_server_starts(own: DashProgram, wanted: dict[str, object], words: str) -> None:
    """The message names the option; the options of the last start stay."""
    owner = own.owner()
    before = owner.get("dash/server")["database"]
    owner.http.post("dash/server/stop")
    refused = owner.http.post("dash/server/start", json=wanted)
    assert 400 <= refused.status_code < 500, refused.text
    assert words in refused.text
    assert owner.get("dash/server")["database"] == before
    assert owner.http.post("dash/server/start").json()["running"] is True


def test_two_dashboards_of_one_user_share_a_database(own: DashProgram, tmp_path: Path) -> None:
    id_ = own.owner().create(WORKFLOW)
    with running_dash(tmp_path, *standalone(tmp_path)) as second:
        assert second.owner().get(f"api/workflows/{id_}")["name"] == "w"
    assert own.owner().get(f"api/workflows/{id_}")["name"] == "w"


def _used_port(folder: Path, stack: ExitStack) -> str:
    listener = stack.enter_context(socket.create_server(("127.0.0.1", 0)))
    return str(listener.getsockname()[1])


def _folder_as_database(folder: Path, stack: ExitStack) -> str:
    (folder / "folder").mkdir()
    return str(folder / "folder")


def _text_as_database(folder: Path, stack: ExitStack) -> str:
    (folder / "text").write_text("This is a text and no database. " * 100)
    return str(folder / "text")


def _database_below_a_file(folder: Path, stack: ExitStack) -> str:
    (folder / "file").touch()
    return str(folder / "file" / "torc.db")


def _database_on_a_full_disk(folder: Path, stack: ExitStack) -> str:
    disk = stack.enter_context(mounted(folder / "disk", "64k"))
    if disk is None:
        pytest.skip(MISSING)
    return str(disk / "torc.db")


@pytest.mark.parametrize(
    ("option", "value", "message"),
    [
        ("--port", _used_port, r"cannot listen on 127.0.0.1:\d+: Address already in use; --port 0 takes a free one"),
        ("--server-port", _used_port, "Address already in use; --server-port 0 takes a free one"),
        ("--database", _folder_as_database, "Is a directory"),
        ("--database", _text_as_database, "file is not a database"),
        ("--database", _database_below_a_file, "cannot make the folder of the database"),
        ("--database", _database_on_a_full_disk, "database or disk is full"),
    ],
)
def test_what_prevents_a_start_is_told_in_one_line(
    tmp_path: Path, option: str, value: Callable[[Path, ExitStack], str], message: str
) -> None:
    with ExitStack() as stack:
        flags = {"--database": str(tmp_path / "own.db"), option: value(tmp_path, stack)}
        words = [word for pair in flags.items() for word in pair]
        with pytest.raises(AssertionError, match=message) as failure, running_dash(tmp_path, "--standalone", *words):
            pass
        assert "Traceback" not in str(failure.value)
        assert str(failure.value).count("Error: ") == 1
