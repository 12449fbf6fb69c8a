"""What ``torc tui`` shows first: the workflow that is asked for, the log that says most, tabs in narrow terminals."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from programs import Torc
from tui_bench import Terminal

from torc_framework.client import TorcClient
from torc_framework.models.records import WorkflowRecord

Create = Callable[[dict[str, Any]], int]


@pytest.fixture
def environment(torc_env: dict[str, str], own_server: str) -> dict[str, str]:
    """The variables of a person at a terminal; the server is that of the test."""
    return {**torc_env, "LANG": "C.UTF-8", "TERM": "xterm-256color"}


def test_the_workflow_of_the_command_line(
    own_server: str, environment: dict[str, str], terminal: Terminal, work: Path
) -> None:
    """It is selected on whichever page of the list it is, also if it is another user's."""
    with TorcClient(own_server) as client:
        user = environment["USER"]
        first = client.create(WorkflowRecord(name="the_first", user=user)).id
        other = client.create(WorkflowRecord(name="of_eve", user="eve")).id
        for place in range(404):
            client.create(WorkflowRecord(name=f"flow_{place}", user=user))
    terminal.shell((80, 24), environment, work)
    for wanted, name in ((first, "the_first"), (other, "of_eve"), (406, "flow_403")):
        terminal.until("$")
        terminal.keys(f"torc tui {wanted}", "Enter")
        terminal.until(f"{name} (workflow {wanted}) not started")
        assert f" {wanted} {name} " in terminal.screen()
        assert ("all users" in terminal.screen()) is (wanted == other)
        terminal.keys("d")
        terminal.until(f"Workflow {wanted}, {name}:")
        terminal.keys("n", "q")


def test_a_workflow_that_cannot_be_shown(
    create: Create, torc: Torc, environment: dict[str, str], terminal: Terminal, work: Path
) -> None:
    """The program ends with a message that says why."""
    create({"name": "old", "jobs": [{"name": "a", "command": "true"}]})
    assert torc("workflows", "archive", "true", 1).returncode == 0
    terminal.shell((80, 24), environment, work)
    for wanted, text, code in ((99, "Workflow not found with ID: 99", 1), (1, "torc workflows archive false 1", 2)):
        terminal.until("$")
        terminal.keys(f"torc tui {wanted}; echo ended with $?", "Enter")
        shown = terminal.until(f"ended with {code}")
        assert text in shown
        assert "Traceback" not in shown


def test_the_log_of_a_failed_job_begins_with_standard_error(
    create: Create, torc: Torc, environment: dict[str, str], terminal: Terminal, work: Path
) -> None:
    """If that has content, and the screen says so; else, and for other jobs, with standard output."""
    jobs = [
        {"name": "a_loud", "command": "echo said; echo boom >&2; exit 3"},
        {"name": "b_quiet", "command": "echo said; exit 3"},
        {"name": "c_fine", "command": "echo said; echo warned >&2"},
    ]
    torc("run", create({"name": "logs", "jobs": jobs}))
    terminal.start((80, 24), environment, work)
    terminal.until("Failures by cause")
    terminal.keys("2")
    terminal.until("c_fine")
    terminal.keys("Right", "l")
    terminal.until("failed: stderr first  stdout  [stderr]")
    terminal.until("boom")
    terminal.keys("Tab")
    terminal.until("said")
    assert "stderr first" not in terminal.screen()
    for place in ("2 of 3", "3 of 3"):
        terminal.keys("q", "Down")
        terminal.until(place)
        terminal.keys("l")
        terminal.until("[stdout]  stderr")
        terminal.until("said")


def test_tabs_and_lines_of_keys_fit(
    create: Create, torc: Torc, environment: dict[str, str], terminal: Terminal, work: Path
) -> None:
    """At 60 columns all tabs are named, at 45 the present one with its place; the lines break anew at a resize."""
    torc("run", create({"name": "sweep", "jobs": [{"name": "a", "command": "exit 3"}]}))
    terminal.start((60, 20), environment, work)
    terminal.until("Failures by cause")
    terminal.until("Overview Jobs Files Events Results Nodes Runners DAG")
    terminal.keys("2")
    terminal.until("1 of 1")
    terminal.resize(45, 15)
    terminal.until(" 2 of 8: Jobs")
    terminal.resize(200, 50)
    terminal.until("6 Scheduled Nodes   7 Runners   8 DAG")
    terminal.until("sweep (workflow 1) failed: 0 of 1 job done, 1 failed")
    terminal.resize(80, 24)
    terminal.until(" Sched. Nodes   Runners   DAG")
    terminal.keys("?")
    terminal.until("Shift-Tab")
    assert all(len(line) <= 80 for line in terminal.screen().splitlines())
    terminal.keys("q", "Right", "l")
    terminal.until("q close")
    terminal.keys("q", "v")
    terminal.until("1 attempt on 1 runner")
    terminal.until("q close")
    terminal.keys("q", "p")
    terminal.until("No job waits for a verdict.")
    terminal.until("q close")


def test_an_event_shows_its_job_and_all_its_data(
    create: Create, torc: Torc, environment: dict[str, str], terminal: Terminal, work: Path
) -> None:
    """The list names the job and the reason; Enter shows the job, or what an event without one says."""
    torc("run", create({"name": "sweep", "jobs": [{"name": "a_job_with_a_name", "command": "exit 3"}]}))
    terminal.start((80, 24), environment, work)
    terminal.until("Failures by cause")
    terminal.keys("4")
    shown = terminal.until("job_failed")
    line = next(line for line in shown.splitlines() if "job_failed" in line)
    assert "a_job_with_a_name" in line
    assert "exit code 3" in line
    terminal.keys("Right", "Enter")
    terminal.until("event_type: compute_node_stopped")
    terminal.until("hostname: ")


def test_a_runner_is_drained_and_takes_jobs_again(
    create: Create, torc: Torc, environment: dict[str, str], terminal: Terminal, work: Path
) -> None:
    """By one key, with the command and what it does; drained, it ends after its job, and says so of an ended one."""
    hold = {"name": "hold_{i}", "command": "while [ ! -e go ]; do sleep 0.1; done", "parameters": {"i": "1:50"}}
    create({"name": "long", "jobs": [hold]})
    terminal.start((100, 24), environment, work)
    terminal.until("not started")
    terminal.keys("x")
    terminal.until("y do it")
    terminal.keys("y")
    terminal.until("under way for")
    terminal.keys("q")
    terminal.until("▶ running")
    terminal.keys("7")
    terminal.until("works")
    terminal.until("D drain")
    for title, command, state in (
        ("Drain runner 1?", "torc compute-nodes drain 1", "drains"),
        ("Let it take jobs again: runner 1?", "torc compute-nodes drain 1 --undo", "works"),
        ("Drain runner 1?", "torc compute-nodes drain 1", "drains"),
    ):
        terminal.keys("Right", "D")
        terminal.until(title)
        assert command in terminal.screen()
        terminal.keys("y")
        terminal.until("✓ done")
        terminal.keys("q")
        terminal.until(state)
    (work / "go").touch()
    terminal.until("ended")
    terminal.keys("D")
    terminal.until("runner 1 has ended: there is nothing to drain")
    assert "ready" in torc("jobs", "list", 1).stdout
    terminal.keys("1", "D")
    terminal.until("select a runner in the tab Runners first")


def test_the_cursor_stays_on_its_workflow_after_a_command(
    create: Create, environment: dict[str, str], terminal: Terminal, work: Path
) -> None:
    """It moves only to a workflow that the command created, and from one that it deleted to the next one."""
    for name in ("oldest", "middle", "newest"):
        create({"name": name, "jobs": [{"name": "a", "command": "true"}]})
    terminal.start((80, 24), environment, work, "2")
    terminal.until("middle (workflow 2) not started")
    terminal.keys("x")
    terminal.until("y do it")
    terminal.keys("y")
    terminal.until("✓ done")
    terminal.keys("q")
    terminal.until("middle (workflow 2) completed")
    terminal.keys("d")
    terminal.until("Workflow 2, middle:")
    terminal.keys("y")
    terminal.until("✓ done")
    terminal.keys("q")
    shown = terminal.until("oldest (workflow 1) not started")
    assert "not found" not in shown
    terminal.keys("n")
    terminal.until("Spec file")
    terminal.keys("spec.json", "Enter")
    terminal.until("y do it")
    terminal.keys("y")
    terminal.until("✓ done")
    terminal.keys("q")
    terminal.until("newest (workflow 4) not started")
