"""``torc remote`` without a connection: the server keeps the machines of a workflow."""

import json
from pathlib import Path
from typing import Any

import pytest
from terminal_talk import Talk

pytestmark = pytest.mark.e2e

SPEC = """
name: hello
jobs:
  - {name: hello, command: 'true'}
"""
FILE = """
# machines of the group

h1
alice@h2   # with a GPU
[2001:db8::1]:2222
"""


@pytest.fixture(autouse=True)
def workflow(torc: Any, work: Path, own_server: str) -> None:
    """A workflow with id 1."""
    assert own_server
    (work / "spec.yaml").write_text(SPEC)
    torc("workflows", "create", "spec.yaml")


def workers(torc: Any) -> list[str]:
    found = json.loads(torc("remote", "list-workers", 1, "-f", "json").stdout)
    assert found["workflow_id"] == 1
    return [each["worker"] for each in found["remote_workers"]]


def test_workers_are_added_once_and_removed(torc: Any, work: Path) -> None:
    assert torc("remote", "list-workers", 1).stdout == "No workers configured for workflow 1.\n"
    assert (
        "Added 2 worker(s) to workflow 1\n  h1\n  bob@h3:22\n"
        in torc("remote", "add-workers", 1, "h1", "bob@h3:22").stdout
    )
    (work / "workers.txt").write_text(FILE)
    added = torc("remote", "add-workers-from-file", "workers.txt", 1).stdout
    assert "Added 2 worker(s)" in added
    assert "1 worker(s) were there already" in added
    assert workers(torc) == ["[2001:db8::1]:2222", "alice@h2", "bob@h3:22", "h1"]
    shown = torc("remote", "list-workers", 1).stdout
    assert shown.startswith("Remote workers of workflow 1:\n")
    assert shown.endswith("Total: 4\n")
    assert torc("remote", "remove-worker", "h1", 1).stdout == "Removed worker h1 from workflow 1\n"
    assert json.loads(torc("remote", "add-workers", 1, "h1", "alice@h2", "-f", "json").stdout)["added"] == ["h1"]


@pytest.mark.parametrize(
    ("lines", "message"),
    [
        ("h1\nalice@h1\n", "workers.txt: line 2: host 'h1' again (first: line 1); each host can only appear once"),
        ("h1\n\nh2:70000\n", "workers.txt: line 3: 'h2:70000' is no address of a host: port '70000'"),
        ("# none\n", "contains no hosts"),
    ],
)
def test_a_wrong_file_changes_nothing(torc: Any, work: Path, lines: str, message: str) -> None:
    (work / "workers.txt").write_text(lines)
    refused = torc("remote", "add-workers-from-file", "workers.txt", 1)
    assert refused.returncode == 2
    assert message in refused.stderr
    assert workers(torc) == []


def test_a_host_is_listed_under_one_address(torc: Any) -> None:
    torc("remote", "add-workers", 1, "h1", "h2")
    refused = torc("remote", "add-workers", 1, "h3", "alice@h1").stderr
    assert "workflow 1 has this host as h1, and each host can only appear once" in refused
    assert workers(torc) == ["h1", "h2"]


def test_a_worker_that_is_not_there_is_not_removed(torc: Any) -> None:
    torc("remote", "add-workers", 1, "h1", "h2")
    refused = torc("remote", "remove-worker", "h9", 1).stderr
    assert "h9 is not among the remote workers of workflow 1; its workers: h1, h2" in refused


def test_a_workflow_is_chosen_at_the_terminal(torc: Any, talk: Talk, server: str) -> None:
    """Without a terminal the command says what is missing."""
    assert "which workflow? give its id as WORKFLOW_ID" in torc("remote", "list-workers").stderr
    env = {"TORC_API_URL": server}
    chosen = json.loads(torc("workflows", "create", "spec.yaml", "-f", "json", env=env).stdout)["workflow_id"]
    torc("remote", "add-workers", chosen, "h1", env=env)
    code, shown = talk("remote", "list-workers", answers=[("Workflow ID", f"{chosen}\n")])
    assert code == 0
    assert "Total: 1" in shown
