"""``torc tui`` in a real terminal: keys in, screen out, at several sizes, with and without colours."""

import json
import os
import re
import signal
import socket
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from programs import Torc
from tui_bench import Terminal

Create = Callable[[dict[str, Any]], int]
COLOURS = {"colours": {"TERM": "xterm-256color"}, "none": {"TERM": "xterm-256color", "NO_COLOR": "1"}}


@pytest.fixture
def failed(create: Create, torc: Torc) -> int:
    """A workflow of which a job failed, and one that has not run."""
    train = {"name": "train_{i}", "command": "echo first; echo boom >&2; [ {i} != 2 ]", "parameters": {"i": "1:5"}}
    workflow = create({"name": "sweep", "jobs": [train]})
    torc("run", workflow)
    return workflow


@pytest.mark.parametrize("look", [("colours", (80, 24)), ("none", (80, 24)), ("colours", (200, 50))])
def test_each_screen(
    failed: int, torc_env: dict[str, str], terminal: Terminal, work: Path, look: tuple[str, tuple[int, int]]
) -> None:
    """All tabs, the viewer of logs, a job, keys, the palette, why-failed, and the end."""
    colours, size = look
    terminal.start(size, {**torc_env, "LANG": "C.UTF-8", **COLOURS[colours]}, work)
    terminal.until("[SSE Live]")
    terminal.until("Failures by cause")
    shown = terminal.screen(colours=True)
    assert ("\x1b[31m" in shown) is (colours == "colours")
    assert "✗ failed" in terminal.screen()
    for key, text in (
        *(("2", "train_5"), ("3", "This workflow has no files."), ("4", "job_failed"), ("5", "user_error")),
        *(("6", "No nodes were requested"), ("7", "ended"), ("8", "dependencies"), ("1", "Failures by cause")),
    ):
        terminal.keys(key)
        terminal.until(text)
    terminal.keys("2")
    terminal.until("train_5")
    terminal.keys("Right", "Down", "l")
    terminal.until("[stderr]")
    terminal.until("boom")
    terminal.keys("Tab")
    terminal.until("[stdout]")
    terminal.until("first")
    terminal.keys("q")
    terminal.until("TRY")
    terminal.keys("Enter")
    terminal.until("Return code")
    terminal.keys("q")
    terminal.until("TRY")
    terminal.keys("?")
    terminal.until("Shift-Tab")
    terminal.keys("q")
    terminal.until("TRY")
    terminal.keys(":")
    terminal.until("Actions")
    terminal.keys("w", "h", "y")
    terminal.until("Why jobs failed")
    terminal.keys("Escape")
    terminal.until("TRY")
    terminal.keys("Left", "W")
    terminal.until("Correct the error")
    terminal.keys("q")
    terminal.until("TRY")
    terminal.resize(60, 12)
    terminal.resize(*size)
    terminal.until("train_5")
    terminal.keys("q")
    terminal.until("ended with 0")


def test_a_workflow_from_its_spec_to_its_deletion(
    create: Create, torc_env: dict[str, str], terminal: Terminal, work: Path
) -> None:
    """New, initialize with existing output, run, retry, delete: each with what it would do."""
    (work / "w.json").write_text(
        json.dumps(
            {
                "name": "whole",
                "jobs": [{"name": "write", "command": "cat note && echo x > out.txt", "output_files": ["out"]}],
                "files": [{"name": "out", "path": "out.txt"}],
            }
        )
    )
    (work / "out.txt").write_text("old")
    terminal.start((100, 30), {**torc_env, "LANG": "C.UTF-8", "TERM": "xterm-256color"}, work)
    terminal.until("No workflows yet")
    terminal.keys("n")
    terminal.until("Spec files here:")
    terminal.keys("w.json", "Enter")
    terminal.until("Jobs: 1")
    terminal.until("y do it")
    terminal.keys("y")
    terminal.until("Created workflow with ID: 1")
    terminal.keys("q")
    terminal.until("not started")
    terminal.keys("i")
    terminal.until("out.txt")
    assert (work / "out.txt").exists()
    terminal.keys("n")
    terminal.until("not started")
    terminal.keys("x")
    terminal.until("Run here workflow 1")
    terminal.until("y do it")
    terminal.keys("y")
    terminal.until("✗ ended with exit code 1")
    terminal.keys("q")
    terminal.until("whole (workflow 1) failed")
    (work / "note").write_text("hello\n")
    terminal.keys("2")
    terminal.until("1 of 1")
    terminal.keys("Right", "y")
    terminal.until("Would retry 1 job: write.")
    terminal.until("y do it")
    terminal.keys("y")
    terminal.until("✓ done")
    terminal.keys("q")
    terminal.until("○")
    terminal.keys("x")
    terminal.until("Run here workflow 1")
    terminal.until("y do it")
    terminal.keys("y")
    terminal.until("✓ done")
    terminal.keys("q")
    terminal.until("✓ completed")
    terminal.keys("d")
    terminal.until("Deletes 1 job")
    terminal.keys("y")
    terminal.until("✓ done")
    terminal.keys("q")
    terminal.until("No workflows yet")


def test_a_running_job_is_stopped(create: Create, torc_env: dict[str, str], terminal: Terminal, work: Path) -> None:
    """Its log is followed; then the key stops it, and the next job runs."""
    command = "echo begun; exec sleep 300"
    create({"name": "long", "jobs": [{"name": "hang", "command": command}, {"name": "after", "command": "true"}]})
    terminal.start((100, 30), {**torc_env, "LANG": "C.UTF-8", "TERM": "xterm-256color"}, work)
    terminal.until("not started")
    terminal.keys("x")
    terminal.until("Run here workflow 1")
    terminal.until("y do it")
    terminal.keys("y", "q")
    terminal.until("running")
    terminal.until("End unknown: no job of hang has completed yet.")
    terminal.keys("2")
    terminal.until("1 of 2")
    terminal.keys("Right", "l")
    terminal.until("begun")
    terminal.keys("q", "t")
    terminal.until("would be taken from its runner")
    terminal.until("y do it")
    terminal.keys("y")
    terminal.until("✓ done")
    terminal.keys("q")
    terminal.until("waits for your verdict")
    terminal.keys("q")
    terminal.until("ended with 0")


def test_a_server_of_its_own(torc_env: dict[str, str], terminal: Terminal, work: Path) -> None:
    """It starts a server on the database, stops it, starts it again, and shows what it wrote."""
    terminal.start(
        *((160, 30), {**torc_env, "LANG": "C.UTF-8", "TERM": "xterm-256color"}, work),
        *("--standalone", "--database", "own.db"),
    )
    terminal.until("No workflows yet")
    assert "●" in terminal.screen()
    assert (work / "own.db").exists()
    terminal.keys("O")
    terminal.until("Output of the server")
    terminal.keys("q", "n")
    terminal.until("Spec file")
    for name in ("older", "newer"):
        (work / f"{name}.json").write_text(json.dumps({"name": name, "jobs": [{"name": "a", "command": "true"}]}))
    terminal.keys("older.json", "Enter")
    terminal.until("y do it")
    terminal.keys("y")
    terminal.until("Created workflow with ID: 1")
    terminal.keys("q")
    terminal.until("older (workflow 1) not started")
    terminal.keys("n")
    terminal.until("Spec file")
    terminal.keys("newer.json", "Enter")
    terminal.until("y do it")
    terminal.keys("y")
    terminal.until("Created workflow with ID: 2")
    terminal.keys("q")
    terminal.until("newer (workflow 2) not started")
    terminal.keys("Down")
    terminal.until("older (workflow 1) not started")
    terminal.keys("K")
    shown = terminal.until("S starts one, u takes a URL ○")
    assert "no server, data is " in shown
    assert "older (workflow 1) not started" in shown
    terminal.keys("S")
    terminal.until("●")
    terminal.until("[SSE Live]")
    assert "older (workflow 1) not started" in terminal.screen()
    terminal.keys("q")
    terminal.until("ended with 0")


def test_plain_lines(failed: int, torc: Torc) -> None:
    """Without a terminal it prints a line for each workflow, and ends when nothing runs."""
    done = torc("tui")
    assert done.returncode == 0
    assert done.stdout[9:] == "sweep (workflow 1) failed: 4 of 5 jobs done, 1 failed\n"
    assert "Workflow not found" in torc("tui", "99", "--plain").stderr


def test_errors_of_the_command_line(torc: Torc) -> None:
    """One message, and no traceback."""
    done: subprocess.CompletedProcess[str] = torc("tui", "--standalone", "--url", "http://127.0.0.1:1")
    assert (done.returncode, "Traceback" in done.stderr) == (2, False)
    away = torc("tui", "--url", "http://127.0.0.1:1")
    assert away.returncode == 3
    assert "Traceback" not in away.stderr


def test_a_server_of_its_own_that_cannot_start_and_one_that_is_killed(
    torc_env: dict[str, str], terminal: Terminal, work: Path
) -> None:
    """The first line says that there is no server and which key starts one, for as long as that is so."""
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        environment = {**torc_env, "LANG": "C.UTF-8", "TERM": "xterm-256color"}
        terminal.start((80, 24), environment, work, "--standalone", "--port", str(port), "--database", "own.db")
        terminal.until("Address already in use")
        terminal.keys("Down")
        terminal.until("no server: S starts one, u takes a URL")
    terminal.keys("S")
    terminal.until("No workflows yet")
    terminal.until("●")
    listeners = subprocess.run(["ss", "-Htlnp", f"sport = {port}"], capture_output=True, text=True, check=True)
    server = re.search(r"pid=(\d+)", listeners.stdout)
    assert server is not None
    os.kill(int(server[1]), signal.SIGKILL)
    terminal.keys("r")
    terminal.until(" old: S starts one, u takes a URL ○")
    terminal.keys("S")
    terminal.until("●")
    terminal.keys("q")
    terminal.until("ended with 0")


def test_keys_that_come_together_act_in_their_order(
    failed: int, torc_env: dict[str, str], terminal: Terminal, work: Path
) -> None:
    """A filter is typed while its prompt opens; a row is chosen, its job shown, and left again, in one write."""
    terminal.start((80, 24), {**torc_env, "LANG": "C.UTF-8", **COLOURS["colours"]}, work)
    terminal.until("Failures by cause")
    terminal.keys("2")
    terminal.until("train_5")
    terminal.keys(*"/status:failed", "Enter")
    terminal.until("1 of 1")
    assert "train_2" in terminal.screen()
    terminal.keys("Escape")
    terminal.until("1 of 5")
    terminal.keys("Home", "Down", "Down", "Enter")
    terminal.until("train_3 (job 3)")
    terminal.keys("q", "Up", "Enter")
    terminal.until("train_2 (job 2)")
    terminal.keys("q", *":why-failed", "Enter")
    terminal.until("torc why-failed 1 --job 2")
