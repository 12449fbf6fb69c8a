"""Tests of ``torc jobs list --filter``."""

import json
from pathlib import Path

import pytest
from programs import Torc

from torc_framework.client import TorcClient
from torc_framework.models.plan import Plan, PlannedJob
from torc_framework.models.records import WorkflowRecord


@pytest.fixture
def workflow_id(server: str) -> int:
    """A workflow of ready jobs and one that waits for them."""
    with TorcClient(server) as client:
        jobs = [PlannedJob(name, "true") for name in ("train_1", "train_2", "other", "last")]
        plan = Plan(WorkflowRecord(name="w", user="u"), jobs, [(3, 0), (3, 1)])
        return client.create_from_plan(plan, initialize=True).id


def names(torc: Torc, server: str, workflow_id: int, text: str) -> list[str]:
    """Return the names of the jobs that a filter finds."""
    found = torc("jobs", "list", workflow_id, "--filter", text, "-f", "json", "--url", server)
    assert found.returncode == 0, found.stderr
    return [job["name"] for job in json.loads(found.stdout)["jobs"]]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("status:ready", ["train_1", "train_2", "other"]),
        ("status:ready -group:train", ["other"]),
        ("stage>1", ["last"]),
        ("tr*2", ["train_2"]),
        ("exit:any", []),
    ],
)
def test_a_filter_finds_jobs(torc: Torc, server: str, workflow_id: int, text: str, expected: list[str]) -> None:
    assert names(torc, server, workflow_id, text) == expected


def test_a_filter_joins_the_other_options(torc: Torc, server: str, workflow_id: int) -> None:
    found = torc("jobs", "list", workflow_id, "-q", "train", "--name", "train_2", "--url", server)
    assert ("train_2" in found.stdout, "train_1" in found.stdout) == (True, False)


def test_a_list_says_of_how_many_jobs_it_shows_some(torc: Torc, server: str, workflow_id: int) -> None:
    assert "Showing 1 of 2" in torc("jobs", "list", workflow_id, "-q", "train", "--limit", 1, "--url", server).stdout


def test_a_wrong_filter_is_refused_with_the_position(torc: Torc, server: str, workflow_id: int) -> None:
    refused = torc("jobs", "list", workflow_id, "-q", "status:faild", "--url", server)
    message = "Error: filter, position 8: no status is called \"faild\"; did you mean 'failed'?\n"
    assert (refused.returncode, refused.stdout, refused.stderr) == (1, "", message)


def test_views_from_a_file_without_a_server_and_from_a_server_are_equal(
    torc: Torc, server: str, workflow_id: int, work: Path
) -> None:
    document = work / "w.json"
    torc("workflows", "export", workflow_id, "-o", document, "--url", server)
    assert torc("workflows", "import", document).returncode == 0
    found = torc("jobs", "list", 1, "-q", "stage:2 status:uninitialized,blocked", "-f", "json")
    assert [job["name"] for job in json.loads(found.stdout)["jobs"]] == ["last"]
