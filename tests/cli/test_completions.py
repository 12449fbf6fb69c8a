"""Completion: what is offered where, and that real shells take it."""

import fcntl
import os
import pty
import pwd
import select
import struct
import subprocess
import termios
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from shutil import which

import pytest

from torc_framework.cli.programs.command_tree import CORE_COMMANDS

Torc = Callable[..., "subprocess.CompletedProcess[str]"]
Offered = Callable[..., list[str]]
SPEC = "name: odd $(touch oops) `touch oops` \\$(touch oops)\njobs:\n  - {name: a, command: 'true'}\n"
DEADLINE_S = 60.0
USER = pwd.getpwuid(os.getuid()).pw_name
"""Who we are; fish does not believe the environment."""


@pytest.fixture
def offered(torc: Torc) -> Offered:
    """Return the completions that bash gets for a command line whose last word is being typed."""

    def ask(*words: str, env: dict[str, str] | None = None) -> list[str]:
        line = ["torc", *words]
        question = {"COMP_WORDS": " ".join(line), "COMP_CWORD": str(len(line) - 1), "_TORC_COMPLETE": "complete_bash"}
        done = torc(env={**question, "USER": USER, **(env or {})})
        assert done.stderr == ""
        return done.stdout.split()

    return ask


@pytest.fixture(scope="module")
def owned(server: str) -> str:
    """A server with a single workflow of the tester's."""
    return server


@pytest.fixture
def workflow(torc: Torc, owned: str, work: Path) -> str:
    """Id of the one workflow on the server."""
    (work / "odd.yaml").write_text(SPEC)
    (work / "100.yaml").write_text(SPEC)
    listed = torc("workflows", "list", "-f", "json", "--url", owned, env={"USER": USER}).stdout
    if '"id"' not in listed:
        done = torc("workflows", "create", "odd.yaml", "--url", owned, env={"USER": USER})
        assert done.returncode == 0, done.stderr
    return "1"


def test_commands_and_options_are_offered(offered: Offered) -> None:
    """From the commands' own declarations."""
    assert offered("")[: len(CORE_COMMANDS)] == list(CORE_COMMANDS)
    assert offered("workf") == ["workflows"]
    assert {"create", "list", "get", "delete"} <= set(offered("workflows", ""))
    assert {"--url", "--username"} <= set(offered("--u"))
    assert {"--limit", "--help"} <= set(offered("workflows", "list", "--"))


def test_values_are_offered(offered: Offered) -> None:
    """Where an option, or an argument, takes one of a few words."""
    assert offered("--format", "") == ["table", "json"]
    assert offered("workflows", "list", "-f", "j") == ["json"]
    assert offered("--log-level", "d") == ["debug"]
    assert offered("run", "--executor", "") == ["k8s", "local", "slurm", "ssh"]
    assert offered("completions", "f") == ["fish"]


def test_ids_of_workflows_are_offered(offered: Offered, workflow: str, owned: str) -> None:
    """By the server that is configured or named; where a spec may stand, only for what begins like an id."""
    here = {"TORC_API_URL": owned}
    assert offered("workflows", "get", "", env=here) == [workflow]
    assert offered("workflows", "get", "7", env=here) == []
    assert offered("--url", owned, "workflows", "get", "") == [workflow]
    assert offered("workflows", "get", "--url", owned, "") == [workflow]
    assert offered("run", "1", env=here) == [workflow]
    assert offered("run", "", env=here) == []  # files, of the shell's own


@pytest.mark.parametrize(
    "words",
    [
        ("workflows", "get", ""),
        ("nosuch", ""),
        ("workflows", "nosuch", "--x", ""),
        ("--format", "xml", "workflows", "get", ""),
        ("--url", "nonsense", "workflows", "get", ""),
        ("--url", "http://127.0.0.1:1", "workflows", "get", ""),
    ],
)
@pytest.mark.parametrize("env", [{}, {"TORC_SERVER__PORT": "many"}])
def test_what_cannot_be_answered_is_passed_over_in_silence(
    offered: Offered, work: Path, words: tuple[str, ...], env: dict[str, str]
) -> None:
    """Without a server, or with a wrong word or configuration, nothing is printed and nothing is started."""
    assert offered(*words, env=env) == []
    assert not (work.parent / "home" / ".local").exists()


# --- real shells ----------------------------------------------------------------------------------

SHELLS: dict[str, tuple[list[str], list[str]]] = {
    "bash": (["bash", "--norc", "--noprofile", "-i"], ['eval "$(torc completions bash)"']),
    "zsh": (["zsh", "-f", "-i"], ["autoload -Uz compinit; compinit -u -D", 'eval "$(torc completions zsh)"']),
    "fish": (["fish", "--no-config", "-i"], ["torc completions fish | source"]),
    "elvish": (["elvish", "-norc"], ["eval (torc completions elvish | slurp)"]),
}


class Terminal:
    """A shell at a terminal."""

    def __init__(self, command: list[str], folder: Path, environ: dict[str, str]) -> None:
        self._master, slave = pty.openpty()
        fcntl.ioctl(slave, termios.TIOCSWINSZ, struct.pack("4H", 40, 200, 0, 0))
        self.process = subprocess.Popen(
            ["setsid", "--ctty", *command],
            cwd=folder,
            stdin=slave,
            stdout=slave,
            stderr=slave,
            env={**environ, "TERM": "xterm", "HISTFILE": "/dev/null"},
        )
        os.close(slave)
        self.shown = b""

    def type(self, text: str) -> None:
        """Press keys."""
        os.write(self._master, text.encode())

    def read_until(self, done: Callable[[], bool], seconds: float) -> bool:
        """Read what the shell shows until something has happened."""
        end = time.monotonic() + seconds
        while not done():
            if time.monotonic() > end:
                return False
            ready, _, _ = select.select([self._master], [], [], 0.05)
            if ready:
                self.shown += os.read(self._master, 65536)
        return True

    def close(self) -> None:
        """End the shell."""
        self.process.kill()
        self.process.wait()
        os.close(self._master)


@contextmanager
def terminal(shell: str, folder: Path, environ: dict[str, str]) -> Iterator[Terminal]:
    """Sit at a shell that has read our script."""
    command, setup = SHELLS[shell]
    if which(shell) is None:
        assert os.environ.get("CI") != "true", f"{shell} is missing: install the package {shell}"
        pytest.skip(f"{shell} is not installed")
    sitting = Terminal(command, folder, environ)
    try:
        for line in (*setup, "env printf READY%s 1"):
            sitting.type(f"{line}\r")
        assert sitting.read_until(lambda: b"READY1" in sitting.shown, DEADLINE_S), sitting.shown
        yield sitting
    finally:
        sitting.close()


@pytest.mark.slow
@pytest.mark.e2e
@pytest.mark.parametrize("shell", SHELLS)
def test_a_shell_completes_what_is_typed(
    torc_env: dict[str, str], work: Path, owned: str, workflow: str, shell: str
) -> None:
    """A word, an option's value, the id of a workflow: the completed line runs. Names of workflows do no harm."""
    answer = work / "answer"
    line = f"torc workfl\t get \t -f js\t > {answer}"

    def answered() -> bool:
        return answer.exists() and answer.read_text().rstrip().endswith("}")

    with terminal(shell, work, {**torc_env, "USER": USER, "TORC_API_URL": owned}) as sitting:
        end = time.monotonic() + DEADLINE_S
        while not answered() and time.monotonic() < end:
            sitting.type(f"{line}\r")  # typed again if the shell was not ready and took it for something else
            sitting.read_until(answered, DEADLINE_S / 3)
            sitting.type("\x03")
        assert answered(), sitting.shown.decode("utf-8", "replace")
    assert f'"id": {workflow},' in answer.read_text()
    assert not (work / "oops").exists()


def test_powershell_gets_a_script_too(torc: Torc) -> None:
    """Whether it works is checked on no machine of ours: PowerShell is not among its packages."""
    done = torc("completions", "powershell")
    assert (done.returncode, done.stderr) == (0, "")
    assert "Register-ArgumentCompleter -Native -CommandName torc" in done.stdout


def test_an_unknown_shell_is_refused(torc: Torc) -> None:
    """With those that are known."""
    done = torc("completions", "csh")
    assert (done.returncode, done.stdout) == (2, "")
    assert "Invalid value for 'shell': 'csh' is not one of bash, zsh, fish, powershell, elvish; see" in done.stderr
    assert torc("completions", "BASH").stdout == torc("completions", "bash").stdout != ""
