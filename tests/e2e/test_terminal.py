"""The program at a terminal: progress, questions, lists to pick from."""

import json
from pathlib import Path
from typing import Any

import pytest
from terminal_talk import Talk, plain

pytestmark = pytest.mark.e2e


@pytest.fixture
def workflow(torc: Any, server: str) -> str:
    """Id of a new workflow of this test's user."""
    env = {"TORC_API_URL": server}
    made = torc("-f", "json", "workflows", "new", "--name", "mine", env=env)
    return str(json.loads(made.stdout)["id"])


def test_progress_is_one_line_that_redraws_itself(talk: Talk, work: Path) -> None:
    """With a bar; the report takes its place."""
    (work / "x.yaml").write_text("name: x\njobs: [{name: 'j{i}', command: sleep 1, parameters: {i: '1:4'}}]\n")
    code, shown = talk("run", "x.yaml")
    assert code == 0
    assert "━" in shown
    assert " of 4 jobs done" in shown
    after = shown.rpartition("\r\x1b[2K")[2]
    assert plain(after).startswith("✓ x (workflow ")
    assert " completed: 4 jobs in " in plain(after)


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
        (["export"], '"export_version":"1.0"'),
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
