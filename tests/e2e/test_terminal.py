"""The program at a terminal: progress, questions, lists to pick from."""

import fcntl
import json
import os
import pty
import select
import signal
import subprocess
import termios
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from waiting import eventually

pytestmark = pytest.mark.e2e

DEADLINE_S = 60.0
Talk = Callable[..., tuple[int, str]]


def _sit_down() -> None:
    """Make the terminal this process's own, so that Ctrl-C becomes a signal, also where SIGINT was ignored."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    fcntl.ioctl(0, termios.TIOCSCTTY, 0)


def _sleeps(pid: int) -> bool:
    """Return whether a process waits in the kernel (proc(5), /proc/pid/stat)."""
    return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] == "S"


@pytest.fixture
def talk(torc_env: dict[str, str], work: Path, server: str) -> Talk:
    """Run torc at a terminal; answer each expected text; return exit code and everything shown."""

    def run(*arguments: str, answers: list[tuple[str, str]] | None = None) -> tuple[int, str]:
        master, slave = pty.openpty()
        environment = {**torc_env, "TORC_API_URL": server, "TERM": "xterm", "COLUMNS": "100"}
        process = subprocess.Popen(
            ["torc", *arguments],
            cwd=work,
            env=environment,
            stdin=slave,
            stdout=slave,
            stderr=slave,
            start_new_session=True,
            preexec_fn=_sit_down,  # noqa: PLW1509 - no threads here
        )
        os.close(slave)
        shown, left, end = "", list(answers or []), time.monotonic() + DEADLINE_S
        while True:
            ready, _, _ = select.select([master], [], [], max(0.0, end - time.monotonic()))
            assert ready, f"silent for too long after: {shown}"
            try:
                chunk = os.read(master, 65536)
            except OSError:  # raised by Linux once the other end is closed
                chunk = b""
            if not chunk:
                break
            shown += chunk.decode("utf-8", "replace")
            if left and left[0][0] in shown:
                # CPython acts on a signal that arrives between the prompt and the read only after the read.
                eventually(lambda: _sleeps(process.pid), "the program does not wait for an answer")
                os.write(master, left.pop(0)[1].encode())
        os.close(master)
        return process.wait(DEADLINE_S), shown

    return run


@pytest.fixture
def workflow(torc: Any, server: str) -> str:
    """Id of a new workflow of this test's user."""
    env = {"TORC_API_URL": server}
    made = torc("-f", "json", "workflows", "new", "--name", "mine", env=env)
    return str(json.loads(made.stdout)["id"])


def test_progress_is_one_line_that_redraws_itself(talk: Talk, work: Path) -> None:
    """With a bar, which stays, full, above the result table."""
    (work / "x.yaml").write_text("name: x\njobs: [{name: 'j{i}', command: sleep 0.3, parameters: {i: '1:4'}}]\n")
    code, shown = talk("run", "x.yaml")
    assert code == 0
    assert "━" in shown
    assert "/4 jobs done, " in shown
    after = shown.rpartition("\r\x1b[2K")[2]
    last, _, table = after.partition("\n")
    assert "] 4/4 jobs done" in last
    assert table.startswith("╭")


def test_deleting_asks_first(talk: Talk, workflow: str) -> None:
    """No leaves everything as it was, with exit code 2."""
    code, shown = talk("workflows", "delete", workflow, answers=[("[y/N]", "n\n")])
    assert (code, "nothing was changed" in shown) == (2, True)
    code, shown = talk("workflows", "delete", workflow, answers=[("[y/N]", "y\n")])
    assert (code, f"Deleted workflow {workflow}" in shown) == (0, True)


def test_a_missing_id_is_picked_from_a_list(talk: Talk, workflow: str) -> None:
    """What is not in the list is asked for again."""
    answers = [("Workflow ID", "999999\n"), ("is not in the list", f"{workflow}\n")]
    code, shown = talk("workflows", "status", answers=answers)
    assert code == 0
    assert "mine" in shown
    assert f"Workflow {workflow}:" in shown


@pytest.mark.parametrize(
    ("command", "told"),
    [
        (["reinitialize", "--dry-run"], "Dry run: 0 jobs"),
        (["export"], '"export_version": "1.0"'),
        (["sync-status"], "nothing is orphaned"),
        (["list-actions"], "No actions of workflow"),
        (["update", "--name", "yours"], "Name: yours"),
    ],
)
def test_every_command_on_workflows_lets_one_be_picked(
    talk: Talk, workflow: str, command: list[str], told: str
) -> None:
    code, shown = talk("workflows", *command, answers=[("Workflow ID", f"{workflow}\n")])
    assert (code, told in shown) == (0, True)


def test_archived_workflows_are_picked_to_be_taken_out_again(talk: Talk, workflow: str) -> None:
    """And are in no other list."""
    code, shown = talk("workflows", "archive", "true", answers=[("Workflow ID", f"{workflow}\n")])
    assert (code, f"Successfully archived workflow {workflow}" in shown) == (0, True)
    answers = [("Workflow ID", f"{workflow}\n"), ("is not in the list", "\x03")]
    code, shown = talk("workflows", "status", answers=answers)
    assert code in (2, 130)  # no other workflow may be there to choose from
    code, shown = talk("workflows", "archive", "false", answers=[("Workflow ID", f"{workflow}\n")])
    assert (code, f"Successfully unarchived workflow {workflow}" in shown) == (0, True)


def test_outputs_are_deleted_with_consent(talk: Talk, work: Path) -> None:
    """Initialize names them first; no keeps them, and begins nothing."""
    spec = "{name: w, files: [{name: o, path: out.txt}], jobs: [{name: j, command: 'date > ${files.output.o}'}]}"
    (work / "w.yaml").write_text(spec)
    code, shown = talk("run", "w.yaml")
    workflow = shown.partition("Created workflow ")[2].split()[0]
    code, shown = talk("workflows", "initialize", workflow, answers=[("[y/N]", "n\n")])
    assert (code, "1 output file(s) will be deleted: out.txt" in shown) == (2, True)
    assert (work / "out.txt").exists()
    code, shown = talk("workflows", "initialize", workflow, answers=[("[y/N]", "y\n")])
    assert (code, "run 2; 1 output file(s) were deleted" in shown) == (0, True)
    assert not (work / "out.txt").exists()


def test_a_question_can_be_left_by_ctrl_c(talk: Talk, workflow: str) -> None:
    """Exit code 130, quietly."""
    code, shown = talk("workflows", "status", answers=[("Workflow ID: ", "\x03")])
    assert code == 130
    assert "Traceback" not in shown
