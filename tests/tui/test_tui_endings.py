"""How ``torc tui`` ends, is suspended and is squeezed: keys, signals, a lost connection, and what is left."""

import os
import re
import signal
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from programs import BIN, Torc
from pty_program import PtyProgram
from tui_bench import Terminal
from waiting import eventually

Create = Callable[[dict[str, Any]], int]


Start = Callable[..., None]


@pytest.fixture
def start(terminal: Terminal, environment: dict[str, str], work: Path) -> Start:
    """Start the program in a terminal of tmux."""

    def call(size: tuple[int, int] = (80, 24), *arguments: str) -> None:
        terminal.start(size, environment, work, *arguments)

    return call


@pytest.fixture
def environment(torc_env: dict[str, str]) -> dict[str, str]:
    """The variables of a person at a terminal."""
    return {**torc_env, "LANG": "C.UTF-8", "TERM": "xterm-256color"}


@pytest.fixture
def hanging(create: Create, work: Path) -> Path:
    """Workflow 1, whose only job ends when there is a file ``go`` in this folder."""
    create({"name": "long", "jobs": [{"name": "wait", "command": "while [ ! -e go ]; do sleep 0.1; done"}]})
    return work


def program_of(terminal: Terminal) -> int:
    """Return the process of ``torc tui`` in a terminal of tmux."""
    pane = int(terminal.ask("#{pane_pid}"))
    children = subprocess.run(
        ["ps", "-ww", "-o", "pid=,args=", "--ppid", str(pane)], capture_output=True, text=True, check=True
    )
    return next(int(line.split()[0]) for line in children.stdout.splitlines() if "torc tui" in line)


def test_ctrl_c_leaves_a_dialog_and_then_the_program(
    hanging: Path, environment: dict[str, str], terminal: Terminal, work: Path
) -> None:
    """Pressed at any place it does no harm: a question is left without its action."""
    terminal.start((80, 24), environment, work)
    terminal.until("not started")
    for key, text in (
        ("?", "Shift-Tab"),
        ("d", "Deletes 1 job"),
        ("n", "Spec file"),
        (":", "Actions"),
    ):
        terminal.keys(key)
        terminal.until(text)
        terminal.keys("C-c")
        terminal.until("palette")
    terminal.keys("C-c")
    terminal.until("ended with 0")


def test_suspended_and_continued(hanging: Path, environment: dict[str, str], terminal: Terminal, work: Path) -> None:
    """Ctrl-Z gives the shell its terminal back, and fg the screen."""
    terminal.shell((80, 24), environment, work)
    terminal.until("$")
    terminal.keys("torc tui", "Enter")
    terminal.until("not started")
    terminal.keys("C-z")
    terminal.until("Stopped")
    terminal.keys("echo in the $((40 + 2)). shell", "Enter")
    terminal.until("in the 42. shell")
    terminal.keys("fg", "Enter")
    terminal.until("not started")
    terminal.keys("?")
    terminal.until("Shift-Tab")
    terminal.keys("q", "q")
    terminal.until("in the 42. shell")


def test_stopped_and_continued_by_another_program(hanging: Path, start: Start, terminal: Terminal) -> None:
    """It reads the terminal in one thread as before: of two, one could stay after the end."""
    start()
    terminal.until("not started")
    program = program_of(terminal)
    threads = Path(f"/proc/{program}/task")
    before = len([*threads.iterdir()])
    for number in (signal.SIGSTOP, signal.SIGCONT, signal.SIGCONT):
        os.kill(program, number)
    terminal.keys("?")
    terminal.until("Shift-Tab")
    eventually(lambda: len([*threads.iterdir()]) <= before)
    terminal.keys("q", "q")
    terminal.until("ended with 0")


@pytest.mark.parametrize(("number", "code"), [(signal.SIGTERM, 143), (signal.SIGINT, 130), (signal.SIGHUP, 129)])
def test_a_signal_ends_it_in_order(
    hanging: Path, start: Start, terminal: Terminal, number: signal.Signals, code: int
) -> None:
    """The terminal is as it was, and the exit code names the signal."""
    start()
    terminal.until("not started")
    os.kill(program_of(terminal), number)
    shown = terminal.until(f"ended with {code}")
    assert "not started" not in shown
    assert "Traceback" not in shown


@pytest.mark.parametrize("way", ["killed", "closed"])
def test_a_run_goes_on_without_the_screens(
    hanging: Path, start: Start, terminal: Terminal, torc: Torc, way: str
) -> None:
    """A run that was started by key ends well although the program is killed, or its terminal is closed, meanwhile."""
    start()
    terminal.until("not started")
    terminal.keys("x")
    terminal.until("torc run 1")
    terminal.until("y do it")  # before the preview has come, y is not taken
    terminal.keys("y")
    eventually(lambda: "running" in torc("jobs", "list", 1).stdout)
    process = program_of(terminal)
    if way == "killed":
        os.kill(process, signal.SIGKILL)
        terminal.until("ended with 137")
    else:
        terminal.close()
        eventually(lambda: not Path(f"/proc/{process}").exists())
    (hanging / "go").write_text("")
    eventually(lambda: "completed" in torc("jobs", "list", 1).stdout)


def test_its_own_server_ends_when_the_terminal_is_closed(
    environment: dict[str, str], terminal: Terminal, work: Path
) -> None:
    """Nothing of a server of its own is left after SIGHUP."""
    terminal.start((120, 24), environment, work, "--standalone", "--database", "own.db")
    shown = terminal.until("No workflows yet")
    port = re.search(r"127.0.0.1:(\d+)", shown)
    assert port is not None
    terminal.close()
    eventually(
        lambda: subprocess.run(["ss", "-Htln", f"sport = {port[1]}"], capture_output=True, check=True).stdout == b""
    )


def test_a_terminal_that_is_too_small(
    hanging: Path, environment: dict[str, str], terminal: Terminal, work: Path
) -> None:
    """It says so, and goes on when the terminal is larger; also from the start, and in a dialog."""
    terminal.start((20, 5), environment, work)
    terminal.until("40x12 fits")
    terminal.resize(80, 24)
    terminal.until("not started")
    terminal.keys("?")
    terminal.until("Shift-Tab")
    terminal.resize(20, 5)
    terminal.until("20x5")
    terminal.resize(1, 1)
    terminal.resize(200, 50)
    terminal.until("Shift-Tab")
    terminal.resize(39, 12)
    terminal.until("39x12")
    terminal.keys("q")
    terminal.until("ended with 0")


@pytest.mark.parametrize("variables", [{"TERM": "dumb"}, {"TERM": ""}])
def test_a_terminal_that_takes_no_control_sequences(
    hanging: Path, environment: dict[str, str], work: Path, variables: dict[str, str]
) -> None:
    """It gets lines, without a control sequence."""
    command = [str(BIN / "torc"), "tui"]
    with PtyProgram(command, {**environment, **variables}, work, columns=80, lines=24) as program:
        program.until("long (workflow 1) not started")
        program.process.wait(60)
        program.settle()
        assert b"\x1b" not in b"".join(program.written)
