"""Tests of the kept server with the real programs: commands share a server that outlives them and ends when idle."""

import json
import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import psutil
import pytest
from programs import BIN, isolated_environment
from small_disk import MISSING, mounted
from waiting import eventually

import torc_framework
from torc_framework.kept_server.kept_server import server_environment
from torc_framework.kept_server.server_files import ServerFiles, ServerState, running_servers, try_lock

PROGRAM = "torc_framework.kept_server.program"
COMMANDS = 20
"""Commands at once."""


class Site:
    """A user's environment with the setting, a database with one workflow, and a folder for servers.

    Attributes:
        runtime: The user's runtime folder.
        environment: The environment of commands.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.runtime = folder / "run"
        self.runtime.mkdir(mode=0o700)
        self.database = folder / "torc.db"
        self.environment = {
            **isolated_environment(folder / "home"),
            "TORC_DATABASE": str(self.database),
            "TORC_KEEP_SERVER": "true",
            "XDG_RUNTIME_DIR": str(self.runtime),
        }
        self.torc("workflows", "list")  # an embedded server makes the database

    @property
    def servers(self) -> Path:
        """The folder of the files of servers."""
        return self.runtime / "torc"

    def start(self, *words: str, program: str = "torc", **variables: str) -> "subprocess.Popen[str]":
        """Start a command in a process group of its own."""
        return subprocess.Popen(
            [str(BIN / program), *words],
            env={**self.environment, **variables},
            cwd=self.folder,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            process_group=0,
        )

    def torc(self, *words: str, program: str = "torc", code: int = 0, **variables: str) -> tuple[str, str]:
        """Return what a command prints on standard output and standard error."""
        process = self.start(*words, program=program, **variables)
        output, errors = process.communicate(timeout=120)
        assert process.returncode == code, (output, errors)
        return output, errors

    def listed(self, **variables: str) -> str:
        """Read as a user does; return the warnings."""
        process = self.start("-f", "json", "workflows", "list", **variables)
        output, errors = process.communicate(timeout=120)
        assert (process.returncode, output) == (0, "[]\n"), errors
        return errors

    def states(self) -> list[ServerState]:
        """Return the servers that run."""
        return [*running_servers(self.servers)]

    def pid(self) -> int:
        """Return the process id of the one server."""
        (state,) = self.states()
        return state.pid

    def processes(self) -> list[int]:
        """Return the processes of kept servers of this user, also those that have no file."""
        found = []
        for process in psutil.process_iter():
            try:
                words = process.cmdline()
            except psutil.Error:
                continue
            if PROGRAM in words and str(self.folder) in words[-1]:
                found.append(process.pid)
        return found

    def spec(self, command: str) -> str:
        """Write a spec with one job; return its path."""
        path = self.folder / "workflow.json"
        path.write_text(json.dumps({"name": "w", "jobs": [{"name": "j", "command": command}]}))
        return str(path)


def is_gone(pid: int) -> Callable[[], bool]:
    """Return a function that tells whether a process has ended."""
    return lambda: not psutil.pid_exists(pid) or psutil.Process(pid).status() == psutil.STATUS_ZOMBIE


@pytest.fixture
def site(tmp_path: Path) -> Iterator[Site]:
    """A user without a server."""
    made = Site(tmp_path)
    assert made.processes() == []
    yield made
    for pid in made.processes():
        os.kill(pid, signal.SIGKILL)


def test_commands_share_a_server_that_stays(site: Site) -> None:
    """It has neither the terminal nor the folder nor the secrets of the command that started it."""
    assert site.listed(AWS_SECRET="hidden", TORC_PASSWORD="hidden") == ""
    (state,) = site.states()
    process = psutil.Process(state.pid)
    assert process.cwd() == "/"
    assert "hidden" not in process.environ().values()
    assert process.terminal() is None
    assert os.getsid(state.pid) == state.pid
    assert site.torc("run", site.spec("true"))[1] == ""
    assert len(json.loads(site.torc("-f", "json", "workflows", "list")[0])) == 1
    assert site.processes() == [state.pid]
    assert {path.stat().st_mode & 0o777 for path in site.servers.iterdir()} == {0o600}
    assert site.servers.stat().st_mode & 0o777 == 0o700


def test_the_setting_is_needed_and_a_named_server_wins(site: Site) -> None:
    """A command without the setting, and one with a URL, start and use none."""
    site.listed(TORC_KEEP_SERVER="false")
    site.torc("workflows", "list", code=3, TORC_API_URL="http://127.0.0.1:1")
    assert site.processes() == []


def test_jobs_reach_the_server_of_their_run(site: Site) -> None:
    """With any program, as with an embedded server."""
    probe = "import os, urllib.request as r; r.urlopen(os.environ['TORC_API_URL'] + '/ping')"
    site.listed()
    output, errors = site.torc("run", site.spec(f'{sys.executable} -c "{probe}" && torc -f json workflows list'))
    assert errors == ""
    assert "completed" in output


def test_a_server_without_use_ends(site: Site) -> None:
    """It removes its files; the next command starts another one."""
    site.listed(TORC_CLIENT__KEEP_SERVER_MINUTES="0.02")
    (pid,) = site.processes()
    eventually(is_gone(pid), "the server does not end")
    assert [*site.servers.iterdir()] == []
    site.listed()
    assert site.pid() != pid


def test_a_server_stays_while_a_command_uses_it(site: Site) -> None:
    """Also if the command sends no request for longer than a server stays without use."""
    site.listed(TORC_CLIENT__KEEP_SERVER_MINUTES="0.01")
    output, errors = site.torc("run", site.spec("sleep 4"), TORC_CLIENT__KEEP_SERVER_MINUTES="0.01")
    assert errors == ""
    assert "completed" in output


def test_a_killed_server_is_replaced(site: Site) -> None:
    """Its files do not mislead the next command."""
    site.listed()
    first = site.pid()
    os.kill(first, signal.SIGKILL)
    eventually(is_gone(first))
    assert site.listed() == ""
    assert site.pid() != first


def test_of_commands_at_once_one_starts_a_server(site: Site) -> None:
    """All of them use it."""
    commands = [site.start("-f", "json", "workflows", "list") for _ in range(COMMANDS)]
    for command in commands:
        output, errors = command.communicate(timeout=300)
        assert (command.returncode, errors) == (0, ""), output
    assert site.processes() == [site.pid()]


def test_commands_at_once_with_servers_that_end(site: Site) -> None:
    """A server that ends because it is idle fails no command."""
    for _ in range(4):
        commands = [
            site.start("-f", "json", "workflows", "list", TORC_CLIENT__KEEP_SERVER_MINUTES="0.01") for _ in range(5)
        ]
        for command in commands:
            output, errors = command.communicate(timeout=300)
            assert (command.returncode, errors) == (0, ""), output


def test_the_end_of_the_server_of_a_run_is_told(site: Site) -> None:
    """A run whose server is killed keeps its results, and the next command starts another server."""
    begun, end = site.folder / "begun", site.folder / "end"
    command = site.start("run", site.spec(f"touch {begun}; while ! test -e {end}; do sleep 0.1; done"))
    eventually(begun.exists)
    pid = site.pid()
    errors = site.torc("kept", "stop", program="torc-server", code=1)[1]
    assert errors == f"Error: commands use process {pid}: end them first, or give --force\n"
    assert site.pid() == pid
    site.torc("kept", "stop", "--force", program="torc-server")
    assert is_gone(pid)()
    assert site.states() == []  # although the run is its parent
    site.torc("workflows", "list")
    assert site.pid() != pid
    end.touch()
    os.killpg(command.pid, signal.SIGINT)
    command.communicate(timeout=300)
    assert command.returncode != 0


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGKILL])
def test_the_end_of_a_command_does_not_end_the_server(site: Site, number: signal.Signals) -> None:
    """Neither Ctrl-C, which reaches the whole process group, nor kill -9."""
    begun = site.folder / "begun"
    command = site.start("run", site.spec(f"touch {begun}; sleep 60"))
    eventually(begun.exists)
    pid = site.pid()
    os.killpg(command.pid, number)
    command.communicate(timeout=120)
    assert command.returncode == (130 if number is signal.SIGINT else -number)
    site.torc("workflows", "list")
    assert site.processes() == [pid]


def test_another_program_has_another_server(site: Site, tmp_path: Path) -> None:
    """An upgrade or an edit leaves the former server to those who use it."""
    copy = tmp_path / "copy"
    source = Path(torc_framework.__file__).parent
    shutil.copytree(source, copy / source.name, ignore=shutil.ignore_patterns("__pycache__"))
    site.environment["PYTHONPATH"] = str(copy)
    site.listed()
    first = site.pid()
    with (copy / source.name / "store" / "errors.py").open("a") as file:
        file.write("# edited\n")
    site.listed()
    assert len(site.states()) == 2
    assert first in site.processes()


def test_another_file_at_the_path_has_another_server(site: Site) -> None:
    """The former server has the removed file open."""
    site.torc("run", site.spec("true"))
    for path in site.folder.glob("torc.db*"):
        path.unlink()
    site.listed()
    assert site.listed() == ""
    assert len(site.states()) == 2


def other_owner(folder: Path) -> None:
    """Make a folder that belongs to another user."""
    if os.geteuid() != 0:
        pytest.skip("only root can give a folder to another user")
    folder.mkdir(mode=0o700)
    os.chown(folder, 12345, -1)


def link(folder: Path) -> None:
    """Make a link to a folder."""
    (folder.parent / "elsewhere").mkdir(mode=0o700)
    folder.symlink_to("elsewhere")


def open_to_all(folder: Path) -> None:
    """Make a folder that other users may write to."""
    folder.mkdir()
    folder.chmod(0o777)


def within_an_open_folder(folder: Path) -> None:
    """Make a folder that other users may replace."""
    folder.mkdir(mode=0o700)
    folder.parent.chmod(0o777)


UNSAFE: dict[str, Callable[[Path], Any]] = {
    "another user's": other_owner,
    "a link": link,
    "open to all": open_to_all,
    "replaceable": within_an_open_folder,
    "a file": lambda folder: folder.touch(),
}


@pytest.mark.parametrize("kind", UNSAFE)
def test_a_folder_that_is_not_safe_is_not_used(site: Site, kind: str) -> None:
    """The command says so once and does its work as without the setting."""
    UNSAFE[kind](site.servers)
    for words in (("run", site.spec("true")), ("workflows", "list")):
        errors = site.torc(*words)[1].splitlines()
        assert len(errors) == 1
        assert errors[0].startswith("Warning: the server that stays is not used: ")
        assert str(site.servers) in errors[0]
    assert site.processes() == []


def test_a_server_that_cannot_start_is_not_used(site: Site) -> None:
    """Its own message is the reason."""
    (site.folder / "state").touch()
    errors = site.torc("run", site.spec("true"), XDG_STATE_HOME=str(site.folder / "state"))[1]
    assert errors.startswith("Warning: the server that stays is not used: it cannot be started: ")

    assert site.processes() == []


def test_a_full_disk_leaves_no_server(site: Site) -> None:
    """The command does its work as without the setting."""
    with mounted(site.folder / "disk", "64k") as disk:
        if disk is None:
            pytest.skip(MISSING)
        disk.chmod(0o700)
        with (disk / "filler").open("wb", buffering=0) as file, suppress(OSError):
            while True:
                file.write(bytes(4096))
        errors = site.listed(XDG_RUNTIME_DIR=str(disk))
    assert errors.startswith("Warning: the server that stays is not used: it ended at once: ")
    assert "No space left on device" in errors
    assert site.processes() == []


def test_a_server_that_does_not_answer_is_not_used(site: Site) -> None:
    """The command ends; so does the server, at the command for that."""
    site.listed()
    pid = site.pid()
    os.kill(pid, signal.SIGSTOP)
    errors = site.listed()
    assert errors.startswith(f"Warning: the server that stays is not used: process {pid} does not answer")
    os.kill(pid, signal.SIGCONT)
    site.torc("kept", "stop", program="torc-server")
    assert is_gone(pid)()


def test_without_a_runtime_folder_the_data_folder_is_used(site: Site) -> None:
    """As on login nodes without systemd."""
    site.environment["XDG_RUNTIME_DIR"] = str(site.folder / "missing")
    site.listed()
    (state,) = running_servers(site.folder / "home" / ".local" / "share" / "torc" / "servers")
    assert site.processes() == [state.pid]


def test_servers_are_shown_and_ended(site: Site) -> None:
    """With their addresses, and without their tokens."""
    assert site.torc("kept", "status", program="torc-server", code=3)[0] == "no server that stays runs\n"
    site.listed()
    (state,) = site.states()
    token = state.url.partition("~")[2].partition("/")[0]
    (shown,) = json.loads(site.torc("kept", "status", "--json", program="torc-server")[0])
    configured = site.torc("config", "show")[0]
    (also_shown,) = json.loads(site.torc("config", "show", "-f", "json")[0])["kept_servers"]
    assert shown == also_shown
    assert (shown["pid"], shown["database"]) == (state.pid, str(site.database))
    assert f"# server that stays: process {state.pid} since {shown['since']}" in configured
    assert token not in f"{shown}{configured}"
    site.torc("kept", "stop", program="torc-server")
    assert is_gone(state.pid)()
    assert [*site.servers.iterdir()] == []
    assert site.torc("kept", "stop", program="torc-server")[0] == "no server that stays runs\n"


def test_a_ping_reaches_the_server(site: Site) -> None:
    """With the setting there is a server to ask."""
    site.torc("ping")
    assert site.processes() == [site.pid()]


def test_a_lock_is_of_the_file_that_has_the_name(tmp_path: Path) -> None:
    """A program that locks the name later does not get the lock of a removed file."""
    files = ServerFiles(tmp_path, "s")
    first = try_lock(files.lock)
    assert first is not None
    assert try_lock(files.lock) is None
    files.lock.unlink()
    second = try_lock(files.lock)
    assert second is not None
    os.close(first)
    os.close(second)
    shared = [try_lock(files.use, is_shared=True) for _ in range(2)]
    assert None not in shared
    assert try_lock(files.use) is None


@pytest.mark.parametrize("content", ["", "{", "[]", "{}", '{"pid": 1}', '{"pid": "x"}'])
def test_a_damaged_state_is_no_server(tmp_path: Path, content: str) -> None:
    """Nor is one of a process that ended."""
    files = ServerFiles(tmp_path, "s")
    files.state.write_text(content)
    assert files.read_state() is None
    assert [*running_servers(tmp_path)] == []


def test_the_environment_of_a_server_has_absolute_paths_and_no_secrets() -> None:
    """It works in another folder, and for other commands."""
    found = server_environment({"PATH": "/bin", "PYTHONPATH": "src:/x", "LC_ALL": "C", "PGPASSWORD": "p", "PWD": "/y"})
    assert found == {"PATH": "/bin", "PYTHONPATH": f"{Path.cwd() / 'src'}:/x", "LC_ALL": "C"}
