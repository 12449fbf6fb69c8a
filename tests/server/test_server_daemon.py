"""Tests of the daemon: when its parent returns, when a second one may start, and which files it leaves."""

import json
import os
import re
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import suppress
from http.client import HTTPConnection
from pathlib import Path

import pytest
from waiting import eventually

COMMAND = [sys.executable, "-m", "torc_framework.cli.programs.torc_server", "run", "--daemon", "--port", "0"]
Start = Callable[..., "subprocess.CompletedProcess[str]"]


@pytest.fixture
def start(tmp_path: Path, torc_env: dict[str, str]) -> Iterator[Start]:
    """Start daemons in a folder of the test; each that wrote a pid file is ended."""
    known: set[int] = set()

    def call(*more: str) -> "subprocess.CompletedProcess[str]":
        done = subprocess.run(
            [*COMMAND, *more], cwd=tmp_path, env=torc_env, capture_output=True, text=True, timeout=60, check=False
        )
        for path in tmp_path.glob("*.pid"):
            with suppress(FileNotFoundError):  # a daemon that ends removes it
                known.update(map(int, re.findall(r"^\d+$", path.read_text().strip())))
        return done

    yield call
    for pid in known:
        _kill(pid, signal.SIGKILL)


FLAGS = ("--log-dir", "logs", "--pid-file", "s.pid", "--database", "torc.db")


def _kill(pid: int, number: int) -> None:
    """Send a signal to a daemon of this test, if it still runs."""
    try:
        command = Path(f"/proc/{pid}/cmdline").read_bytes()
    except OSError:
        return
    if b"--daemon" in command:
        os.kill(pid, number)


def _gone(pid: int) -> None:
    """Wait for the end of a process that is no child of ours."""

    def has_ended() -> bool:
        try:
            return Path(f"/proc/{pid}/stat").read_text().split(") ")[1][0] == "Z"
        except OSError:
            return True

    eventually(has_ended, "the process ends")


def ping(port: int) -> object:
    """Ask a server."""
    connection = HTTPConnection("127.0.0.1", port, timeout=30)
    try:
        connection.request("GET", "/torc-service/v1/ping")
        return json.loads(connection.getresponse().read())
    finally:
        connection.close()


def test_the_parent_returns_when_the_server_answers(start: Start, tmp_path: Path) -> None:
    """With its port first; the server has no terminal, and takes its pid file along when it ends."""
    done = start(*FLAGS)
    assert (done.returncode, done.stderr) == (0, "")
    line, more = done.stdout.splitlines()
    pid = int((tmp_path / "s.pid").read_text())
    assert ping(int(line.removeprefix("TORC_SERVER_PORT="))) == {"status": "ok"}
    assert more == f"torc-server runs as process {pid}, pid file s.pid, log logs/torc-server.log"
    assert os.getsid(pid) not in (os.getsid(0), pid)  # not the leader of its session: no terminal can become its own
    assert Path(f"/proc/{pid}/fd/1").readlink() == Path("/dev/null")
    _kill(pid, signal.SIGTERM)
    _gone(pid)
    assert not (tmp_path / "s.pid").exists()
    log = (tmp_path / "logs" / "torc-server.log").read_text()
    assert 'message="the server listens"' in log
    assert 'message="the server ends"' in log


def test_a_second_start_is_refused(start: Start, tmp_path: Path) -> None:
    """The first goes on undisturbed and keeps its pid file."""
    port = int(start(*FLAGS).stdout.split()[0].removeprefix("TORC_SERVER_PORT="))
    pid = (tmp_path / "s.pid").read_text()
    done = start(*FLAGS)
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr == f"Error: a server runs already: process {pid.strip()} of pid file s.pid\n"
    assert (tmp_path / "s.pid").read_text() == pid
    assert ping(port) == {"status": "ok"}


def test_the_pid_file_of_a_killed_server_is_taken_over(start: Start, tmp_path: Path) -> None:
    """Also when its number belongs to another process by now; the log says so."""
    start(*FLAGS)
    pid = int((tmp_path / "s.pid").read_text())
    _kill(pid, signal.SIGKILL)
    _gone(pid)
    (tmp_path / "s.pid").write_text(f"{os.getpid()}\n")
    assert start(*FLAGS).returncode == 0
    assert f"process {os.getpid()} of s.pid did not end cleanly" in (tmp_path / "logs" / "torc-server.log").read_text()


@pytest.mark.parametrize(
    ("more", "code", "message"),
    [
        (("--pid-file", "s.pid"), 2, "--daemon needs --log-dir DIR: "),
        (("--log-dir", "logs", "--pid-file", "no/such/s.pid"), 1, "cannot write the pid file no/such/s.pid: No such"),
        (("--log-dir", "/proc/no"), 2, "cannot make the log folder /proc/no: "),
        ((*FLAGS, "--database", "logs"), 2, "cannot open database logs: "),
        ((*FLAGS, "--https"), 2, "--https needs --tls-cert FILE and --tls-key FILE"),
        ((*FLAGS, "--host", "no.such.host.invalid"), 2, "cannot listen on no.such.host.invalid:0: "),
    ],
)
def test_a_daemon_that_cannot_start_is_told_by_its_parent(
    start: Start, tmp_path: Path, more: tuple[str, ...], code: int, message: str
) -> None:
    """With the exit code of a server in the foreground; nothing is left running."""
    (tmp_path / "logs").mkdir()
    done = start(*more)
    assert (done.returncode, done.stdout) == (code, "")
    assert done.stderr.startswith(f"Error: {message}")
    assert not (tmp_path / "s.pid").exists()


def test_a_server_in_the_foreground_may_hold_a_pid_file_too(start: Start, tmp_path: Path) -> None:
    """It keeps a daemon off."""
    command = [*(part for part in COMMAND if part != "--daemon"), "--pid-file", "s.pid", "--database", "f.db"]
    process = subprocess.Popen(command, cwd=tmp_path, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    assert process.stdout is not None
    assert process.stderr is not None
    try:
        ping(int(process.stdout.readline().strip().removeprefix("TORC_SERVER_PORT=")))
        done = start(*FLAGS)
        assert (done.returncode, f"process {process.pid} " in done.stderr) == (1, True)
    finally:
        process.terminate()
        assert process.wait(30) == 0
        process.stdout.close()
        process.stderr.close()
    assert not (tmp_path / "s.pid").exists()
