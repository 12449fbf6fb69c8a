"""Tests of the server that ``torc run`` starts before it imports its own modules: when, and that none is left."""

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import psutil
import pytest

from torc_framework.cli.programs.early_start import start_early
from torc_framework.config.sections import Sections
from torc_framework.embedded.process import EarlyServerProcess
from torc_framework.embedded.server import EmbeddedServer
from torc_framework.errors import OperatorError
from torc_framework.models.settings import setting_entries

TORC = str(Path(sys.executable).with_name("torc"))
MARK = "EARLY_START_TEST"


@pytest.fixture(autouse=True)
def _own_home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Let each test begin without settings, in a folder of its own, and mark its processes."""
    for name in [name for name in os.environ if name.startswith(("TORC_", "XDG_"))]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv(MARK, str(tmp_path))
    monkeypatch.chdir(tmp_path)


def write_spec(folder: Path, command: str) -> None:
    """Write a spec of one job."""
    (folder / "one.json").write_text(json.dumps({"name": "one", "jobs": [{"name": "a", "command": command}]}))


def marked_servers(folder: Path) -> list[psutil.Process]:
    """Return the running servers that a test has started."""
    found = []
    for process in psutil.process_iter():
        try:
            if process.environ().get(MARK) == str(folder) and "_server" in " ".join(process.cmdline()):
                found.append(process)
        except psutil.Error:
            continue
    return found


def wait_until_none_is_left(folder: Path) -> None:
    """Wait until no server of a test runs."""
    deadline = time.monotonic() + 20
    while (left := marked_servers(folder)) and time.monotonic() < deadline:
        time.sleep(0.05)
    assert left == []


@pytest.mark.parametrize(
    "words",
    [
        "--help",
        "run --help",
        "run one.json --url http://127.0.0.1:1",
        "--url=http://127.0.0.1:1 run one.json",
        "jobs list 1",
        "workflows list",
        "",
    ],
)
def test_other_commands_start_none(words: str) -> None:
    """Neither do those that use a server that runs already."""
    assert start_early(words.split()) is None


def variables_of(*paths: tuple[str, ...]) -> list[str]:
    """Return the environment variables that set these settings."""
    entries = [entry for entry in setting_entries(Sections) if entry.path in paths]
    assert len(entries) == len(paths)
    regular = ["TORC_" + "__".join(entry.path).upper() for entry in entries]
    return [*regular, *(name for entry in entries for name in entry.facts.variables)]


@pytest.mark.parametrize("name", variables_of(("client", "api_url"), ("client", "keep_server")))
def test_a_variable_may_name_another_server(monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    """The command itself finds out whether it does."""
    monkeypatch.setenv(name, "x")
    assert start_early(["run", "one.json"]) is None


@pytest.mark.parametrize("setting", ['api_url = "http://127.0.0.1:1"', "keep_server = true"])
def test_a_configuration_file_may_name_another_server(tmp_path: Path, setting: str) -> None:
    """A file with other settings does not matter."""
    file = tmp_path / "torc.toml"
    file.write_text("[client.run]\nnum_cpus = 2\n")
    early = start_early(["-f", "json", "run", "one.json"])
    assert early is not None
    early.discard()
    file.write_text(f"[client]\n{setting}\n")
    assert start_early(["run", "one.json"]) is None


def test_the_command_reports_a_configuration_that_cannot_be_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It has the message; the early start has none."""
    monkeypatch.setenv("TORC_CONFIG", str(tmp_path / "missing.toml"))
    assert start_early(["run", "one.json"]) is None


def test_a_run_uses_the_server_that_was_started_early(tmp_path: Path) -> None:
    """It is the only one, and ends with the run."""
    write_spec(tmp_path, "touch started; sleep 2")
    with subprocess.Popen([TORC, "run", "one.json"], stdout=subprocess.DEVNULL) as run:
        deadline = time.monotonic() + 30
        while not (tmp_path / "started").exists() and time.monotonic() < deadline:
            time.sleep(0.05)
        (server,) = marked_servers(tmp_path)
        assert server.cmdline()[-1].endswith("early_server")
        assert server.ppid() == run.pid
        assert run.wait(30) == 0
    assert marked_servers(tmp_path) == []


@pytest.mark.parametrize("words", ["run", "run one.json --nonsense", "run missing.json", "-f nonsense run one.json"])
def test_a_command_that_fails_leaves_none(tmp_path: Path, words: str) -> None:
    """A server that was not needed is ended before the command is."""
    write_spec(tmp_path, "true")
    done = subprocess.run([TORC, *words.split()], capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode != 0
    assert "Traceback" not in done.stderr
    assert marked_servers(tmp_path) == []


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGKILL])
@pytest.mark.parametrize("after_s", [0.03, 0.08, 0.2, 0.5, 0.9])
def test_a_command_that_is_stopped_while_it_starts_leaves_none(
    tmp_path: Path, number: signal.Signals, after_s: float
) -> None:
    """The signal comes in each phase of the start, also in that of the interpreter, which writes its own message."""
    write_spec(tmp_path, "true")
    with subprocess.Popen([TORC, "run", "one.json"], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as run:
        time.sleep(after_s)
        run.send_signal(number)
        run.wait(60)
    wait_until_none_is_left(tmp_path)


def test_a_server_that_dies_before_it_serves_is_reported(tmp_path: Path) -> None:
    """With one message, as for one that was started late."""
    early = EarlyServerProcess()
    early.process.kill()
    early.process.wait()
    server = EmbeddedServer(tmp_path / "torc.db", early=early)
    server.start()
    with pytest.raises(OperatorError, match="ended at once"):
        _ = server.url


def test_a_process_that_is_told_nothing_ends() -> None:
    """Its parent has ended."""
    early = EarlyServerProcess()
    early.process.communicate(timeout=30)
    assert early.process.returncode == 0
    assert early.errors.seek(0, os.SEEK_END) == 0
    early.errors.close()
