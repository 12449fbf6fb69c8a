"""``torc workflows list`` and ``torc jobs list``: state first, 80 columns, no empty column."""

import json
from pathlib import Path
from typing import Any

import pytest

from torc_framework.client import TorcClient
from torc_framework.models.plan import Plan, PlannedJob
from torc_framework.models.records import WorkflowRecord
from torc_framework.text.widths import text_width

pytestmark = [pytest.mark.e2e, pytest.mark.usefixtures("own_server")]

SPEC = """
name: sweep
jobs:
  - {name: prep, command: 'true'}
  - {name: bad, command: 'exit 3'}
  - {name: report, command: 'true', depends_on: [bad]}
"""


def test_the_list_of_workflows(torc: Any, work: Path) -> None:
    """A line for each with its state and progress; JSON has the records, and the state beside them."""
    assert torc("workflows", "list").stdout == "No workflows found.\n"
    (work / "spec.yaml").write_text(SPEC)
    torc("run", "spec.yaml")
    torc("workflows", "create", "spec.yaml")
    head, *rows = torc("workflows", "list").stdout.splitlines()
    assert head.split() == ["ID", "NAME", "STATE", "DONE", "UPDATED"]
    assert [row.split()[:5] for row in rows] == [
        ["✗", "1", "sweep", "failed", "1/3"],
        ["○", "2", "sweep", "not", "started"],
    ]
    one, two = json.loads(torc("workflows", "list", "-f", "json").stdout)
    assert (one["name"], one["status"], one["job_counts"]["failed"]) == ("sweep", "failed", 1)
    assert (two["id"], two["status"], two["updated_at"][-1]) == (2, "uninitialized", "Z")
    assert torc("workflows", "list", "--limit", 1).stdout.splitlines()[-1] == "Showing 1 of 2; --limit 0 shows all"
    assert len(torc("workflows", "list", "--limit", 0).stdout.splitlines()) == 3


def test_users_are_shown_if_there_are_several(torc: Any, own_server: str) -> None:
    with TorcClient(own_server) as client:
        for user in ("maria", "jo"):
            client.create(WorkflowRecord(name="w", user=user))
    assert "USER" not in torc("workflows", "list", "--user", "jo").stdout
    assert torc("workflows", "list", "--all-users").stdout.splitlines()[0].endswith("USER")


def test_the_list_of_jobs(torc: Any, work: Path) -> None:
    """How each ended; a column that no job has is left out."""
    (work / "spec.yaml").write_text(SPEC)
    torc("run", "spec.yaml")
    head, *rows = torc("jobs", "list", 1).stdout.splitlines()
    assert head.split()[:3] == ["ID", "NAME", "STATE"]
    assert "ATTEMPT" not in head
    assert [row.split()[:4] for row in rows] == [
        ["✓", "1", "prep", "completed"],
        ["✗", "2", "bad", "failed"],
        ["⊘", "3", "report", "canceled"],
    ]
    assert rows[1].endswith("  code 3")
    assert torc("jobs", "list", 1, "--limit", 2).stdout.splitlines()[-1] == "Showing 2 of 3; --limit 0 shows all"
    assert "Showing" not in torc("jobs", "list", 1, "--limit", 2, "--offset", 1).stdout
    assert "command" in json.loads(torc("jobs", "list", 1, "-f", "json").stdout)["jobs"][0]


def test_long_names_fit_80_columns(torc: Any, own_server: str) -> None:
    """Names keep both ends; control characters are escaped, wide characters take two columns."""
    names = ["train_" + "x" * 120 + f"_seed={n}" for n in range(3)] + ["海洋" * 60, "a\x1b[31mb" * 30]
    with TorcClient(own_server) as client:
        plan = Plan(
            workflow=WorkflowRecord(name="w" * 150, user="root"), jobs=[PlannedJob(name, "true") for name in names]
        )
        client.create_from_plan(plan)
    for command in (("jobs", "list", 1), ("workflows", "list", "--user", "root"), ("status", "--user", "root")):
        shown = torc(*command, env={"COLUMNS": "80"}).stdout
        assert max(map(text_width, shown.splitlines())) <= 80, command
        assert "\x1b" not in shown
    assert "_seed=2" in torc("jobs", "list", 1, env={"COLUMNS": "80"}).stdout


def test_lists_need_no_request_for_each_row(torc: Any, own_server: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """2,000 workflows are one request, 30,000 jobs few."""
    with TorcClient(own_server) as client:
        jobs = [PlannedJob(f"job_{n}", "true") for n in range(30_000)]
        client.create_from_plan(Plan(workflow=WorkflowRecord(name="many", user="root"), jobs=jobs), initialize=True)
        for n in range(200):
            client.create(WorkflowRecord(name=f"w{n}", user="root"))
        asked: list[str] = []
        call = client._call

        def counted(*arguments: Any, **options: Any) -> Any:
            asked.append(arguments[2])
            return call(*arguments, **options)

        monkeypatch.setattr(client, "_call", counted)
        assert len(client.overviews({"user": "root"})[0]) == 201
    assert asked == ["/workflow_overviews"]
    assert len(torc("jobs", "list", 1, "--limit", 0).stdout.splitlines()) == 30_001
