"""The commands on records, against a server of one's own: what the manual's how-to's type."""

import json
from pathlib import Path
from typing import Any

import pytest

pytestmark = pytest.mark.e2e

DIAMOND = """
name: diamond
description: four jobs
files:
  - {name: start, path: start.txt}
  - {name: left, path: left.txt}
  - {name: right, path: right.txt}
jobs:
  - {name: top, command: 'echo x > ${files.output.start}'}
  - {name: l, command: 'cp ${files.input.start} ${files.output.left}'}
  - {name: r, command: 'cp ${files.input.start} ${files.output.right}'}
  - {name: bottom, command: 'cat ${files.input.left} ${files.input.right}'}
"""


@pytest.fixture
def call(torc: Any, server: str) -> Any:
    """Run torc against the server; returns the JSON answer."""

    def run(*arguments: object, code: int = 0) -> Any:
        done = torc("-f", "json", *arguments, env={"TORC_API_URL": server})
        assert done.returncode == code, done.stdout + done.stderr
        return json.loads(done.stdout if code == 0 else done.stderr)

    return run


@pytest.fixture
def text(torc: Any, server: str) -> Any:
    """Run torc against the server; returns what a person sees."""

    def run(*arguments: object) -> str:
        done = torc(*arguments, env={"TORC_API_URL": server})
        assert done.returncode == 0, done.stdout + done.stderr
        return str(done.stdout)

    return run


@pytest.fixture
def diamond(call: Any, work: Path) -> int:
    """Id of a new diamond workflow."""
    (work / "diamond.yaml").write_text(DIAMOND)
    return int(call("workflows", "create", "diamond.yaml")["id"])


def test_step_by_step(call: Any, text: Any) -> None:
    """A workflow from pieces: new, resource requirements, file, jobs, initialize, run."""
    workflow = call("workflows", "new", "--name", "mine", "--description", "by hand")
    wid = workflow["id"]
    assert (workflow["name"], workflow["user"]) == ("mine", "tester")
    small = call(
        "resource-requirements",
        "create",
        "--name",
        "small",
        "--num-cpus",
        1,
        "--memory",
        "1g",
        "--runtime",
        "PT10M",
        wid,
    )
    file = call("files", "create", "--name", "out", "--path", "out.txt", wid)
    first = call(
        "jobs", "create", "--name", "first", "--command", "echo 1 > out.txt", "-r", small["id"], "-o", file["id"], wid
    )
    second = call("jobs", "create", "--name", "second", "--command", "cat out.txt", "-i", file["id"], wid)
    third = call("jobs", "create", "-n", "third", "-c", "true", "-b", f"{first['id']},{second['id']}", wid)
    assert third["status"] == "uninitialized"
    assert call("workflows", "initialize-jobs", wid)["run_id"] == 1
    jobs = {job["name"]: job["status"] for job in call("jobs", "list", wid)["jobs"]}
    assert jobs == {"first": "ready", "second": "blocked", "third": "blocked"}
    assert call("workflows", "is-complete", wid)["is_complete"] is False
    assert call("run", wid)["status"] == "completed"
    assert call("workflows", "is-complete", wid)["is_complete"] is True
    assert "Is Complete: true" in text("workflows", "is-complete", wid)
    assert len(call("results", "list", wid)["results"]) == 3


def test_workflows(call: Any, text: Any, diamond: int) -> None:
    """Listed bare, shown, changed, deleted."""
    listed = call("workflows", "list")
    assert isinstance(listed, list)
    assert diamond in [workflow["id"] for workflow in listed]
    assert call("workflows", "get", diamond)["name"] == "diamond"
    assert "Name: diamond" in text("workflows", "get", diamond)
    assert call("workflows", "update", diamond, "--description", "new")["description"] == "new"
    status = call("workflows", "status", diamond)
    assert (status["status"], status["run_id"], status["job_counts"]) == ("uninitialized", 0, {"uninitialized": 4})
    assert "uninitialized: 4" in text("workflows", "status", diamond)
    assert "  diamond  " in text("workflows", "list")
    assert "Deleted workflow" in text("workflows", "delete", diamond, "--no-prompts")
    assert call("workflows", "get", diamond, code=1)["error"]["message"] == f"Workflow not found with ID: {diamond}"


def test_a_month_is_no_run_time(call: Any) -> None:
    """On the command line too."""
    wid = call("workflows", "new", "--name", "mine")["id"]
    answer = call("resource-requirements", "create", "--name", "small", "--runtime", "P1M", wid, code=2)
    assert "'PT1M' for a minute" in answer["error"]["message"]
    made = call("resource-requirements", "create", "--name", "small", "--runtime", "2 h 05 min", wid)
    assert made["runtime"] == "PT2H5M"


def test_somebody_elses_workflow_is_not_deleted_by_accident(call: Any) -> None:
    """Only with --force."""
    wid = call("workflows", "new", "--name", "hers", "--user", "ann")["id"]
    assert wid not in [workflow["id"] for workflow in call("workflows", "list")]
    assert wid in [workflow["id"] for workflow in call("workflows", "list", "--all-users")]
    assert "belongs to ann" in call("workflows", "delete", wid, code=2)["error"]["message"]
    assert call("workflows", "delete", wid, "--force")["id"] == wid


def test_run_and_results(call: Any, text: Any, diamond: int) -> None:
    """What the manual's tables show."""
    assert call("workflows", "run", diamond)["counts"] == {"completed": 4}
    table = text("results", "list", diamond)
    assert table.startswith(f"Results for workflow ID {diamond}:\n╭")
    assert "│ Return Code │ Exec Time │ Peak Mem │ Peak CPU % │" in table
    assert "Total: 4" in table
    results = call("results", "list", diamond)["results"]
    assert {result["return_code"] for result in results} == {0}
    assert call("results", "get", results[0]["id"])["observation"]["executor"] == "local"
    assert call("results", "list", diamond, "--failed")["results"] == []
    assert call("jobs", "list", diamond, "--status", "completed", "--limit", 3)["jobs"][2]["status"] == "completed"
    (node,) = call("compute-nodes", "list", diamond)["compute_nodes"]
    assert node["is_active"] is False
    assert call("compute-nodes", "get", node["id"])["hostname"] == node["hostname"]
    assert call("events", "list", diamond)["events"]
    assert call("events", "create", "--data", "null", diamond)["data"] is None
    assert call("workflows", "status", diamond)["status"] == "completed"


def test_a_second_initialize_runs_everything_again(call: Any, diamond: int) -> None:
    """Run 2, with results of run 1 kept."""
    call("run", diamond)
    assert call("workflows", "initialize", diamond, "--no-prompts")["run_id"] == 2
    assert call("workflows", "status", diamond)["job_counts"] == {"ready": 1, "blocked": 3}
    assert call("run", diamond)["counts"] == {"completed": 4}
    assert len(call("results", "list", diamond, "--all-runs")["results"]) == 8
    assert len(call("results", "list", diamond)["results"]) == 4


def test_cancel(call: Any, diamond: int) -> None:
    """A canceled workflow gives no jobs to runners, and commands report it."""
    call("workflows", "initialize", diamond)
    assert call("workflows", "cancel", diamond)["is_canceled"] is True
    assert call("workflows", "status", diamond)["status"] == "canceled"


def test_files(call: Any, text: Any, diamond: int) -> None:
    """Listed, shown, changed, deleted."""
    files = {file["name"]: file for file in call("files", "list", diamond)["files"]}
    assert set(files) == {"start", "left", "right"}
    left = files["left"]["id"]
    assert call("files", "get", left)["path"] == "left.txt"
    assert call("files", "update", left, "--path", "other.txt")["path"] == "other.txt"
    assert call("files", "delete", left)["id"] == left
    assert "│ start │" in text("files", "list", diamond)
    assert call("files", "list-required-existing", diamond) == {"files": [], "records": []}


def test_user_data(call: Any, text: Any, diamond: int) -> None:
    """Any JSON value, read back as it was written; get is JSON for both formats."""
    record = call("user-data", "create", "--name", "config", "--data", '{"rate": 0.5}', diamond)
    assert record["data"] == {"rate": 0.5}
    assert json.loads(text("user-data", "get", record["id"]))["data"] == {"rate": 0.5}
    assert call("user-data", "update", record["id"], "--data", "[1, null]")["data"] == [1, None]
    assert call("user-data", "update", record["id"], "--data", "{broken", code=2)["error"]["kind"] == "UserError"
    table = text("user-data", "list", diamond)
    assert "│ ID │ Name   │ Data      │ Workflow ID │" in table
    assert [item["name"] for item in call("user-data", "list", diamond)["user_data"]] == ["config"]
    assert call("user-data", "delete", record["id"])["id"] == record["id"]


def test_resource_requirements(call: Any, diamond: int) -> None:
    """Every workflow has the default; more can be added and changed."""
    listed = call("resource-requirements", "list", diamond)["resource_requirements"]
    assert [item["name"] for item in listed] == ["default"]
    more = call("resource-requirements", "create", "--name", "big", "--num-cpus", 8, diamond)
    assert call("resource-requirements", "update", more["id"], "--memory", "2g")["memory"] == "2g"
    assert call("resource-requirements", "delete", more["id"])["name"] == "big"


def test_execution_plan(call: Any, text: Any, diamond: int) -> None:
    """Of a file and of a workflow: the same stages."""
    of_file, of_workflow = (
        call("workflows", "execution-plan", "diamond.yaml"),
        call("workflows", "execution-plan", diamond),
    )
    assert (of_file["source"], of_workflow["source"]) == ("spec_file", "database")
    assert of_file["total_events"] == of_workflow["total_events"] == 3
    assert [e["jobs_becoming_ready"] for e in of_file["events"]] == [
        e["jobs_becoming_ready"] for e in of_workflow["events"]
    ]
    shown = text("workflows", "execution-plan", "diamond.yaml")
    assert "Workflow: diamond" in shown
    assert "▶ Stage 1: Workflow Start" in shown
    assert "→ Stage 2: When job 'top' completes" in shown
    assert "Total Stages: 3" in shown


def test_execution_plan_is_made_without_the_checks_of_schedulers(call: Any, work: Path) -> None:
    """They concern requests for nodes, and a plan requests none; creation still checks."""
    spec = work / "wide.yaml"
    spec.write_text(WIDE)
    plan = call("workflows", "execution-plan", str(spec))
    (event,) = plan["events"]
    assert event["scheduler_allocations"] == [
        {"scheduler": "wide", "scheduler_type": "slurm", "num_allocations": 1, "job_names": []}
    ]


WIDE = """
name: wide
jobs: [{name: a, command: c}]
slurm_schedulers: [{name: wide, account: x, nodes: 10, walltime: "04:00:00"}]
actions:
- {trigger_type: on_workflow_start, action_type: schedule_nodes, scheduler: wide, scheduler_type: slurm}
"""


def test_unknown_ids_are_the_servers_word(call: Any) -> None:
    """Exit code 1 and what was not found."""
    for group, kind in (("jobs", "Job"), ("files", "File"), ("results", "Result"), ("user-data", "User data")):
        assert call(group, "get", 999_999, code=1)["error"]["message"] == f"{kind} not found with ID: 999999"


def test_ping(call: Any, text: Any, server: str) -> None:
    assert call("ping") == {"status": "ok", "url": server}
    assert text("ping") == f"{server}: ok\n"
