"""Tests of ``torc jobs retry``, ``cancel`` and ``terminate``."""

import json

import pytest
from programs import Torc

from torc_framework.client import TorcClient
from torc_framework.models.plan import Plan, PlannedJob
from torc_framework.models.records import JobRecord, WorkflowRecord


@pytest.fixture
def failed(torc: Torc, server: str) -> int:
    """A workflow of which two jobs failed, and one was canceled because of them."""
    with TorcClient(server) as client:
        commands = {"bad_1": "exit 1", "bad_2": "exit 2", "good": "true", "after": "true"}
        jobs = [PlannedJob(name, command) for name, command in commands.items()]
        plan = Plan(WorkflowRecord(name="w", user="u"), jobs, [(3, 0), (3, 1)])
        workflow_id = client.create_from_plan(plan, initialize=True).id
    assert torc("run", workflow_id, "--url", server).returncode == 1
    return workflow_id


def statuses(server: str, workflow_id: int) -> dict[str, str | None]:
    """Return the statuses of the jobs by name."""
    with TorcClient(server) as client:
        return {job.name: job.status for job in client.iterate(JobRecord, workflow_id=workflow_id)}


def ids(server: str, workflow_id: int) -> dict[str, int]:
    """Return the ids of the jobs by name."""
    with TorcClient(server) as client:
        return {job.name: job.id or 0 for job in client.iterate(JobRecord, workflow_id=workflow_id)}


def test_a_preview_changes_nothing(torc: Torc, server: str, failed: int) -> None:
    """It names the jobs, and counts what runs again with them."""
    before = statuses(server, failed)
    done = torc("jobs", "retry", failed, "--dry-run", "--url", server)
    assert done.stdout == "Would retry 2 jobs: bad_1, bad_2; with what follows them 3 jobs run again.\n"
    assert statuses(server, failed) == before


def test_the_jobs_of_a_filter(torc: Torc, server: str, failed: int) -> None:
    """Only they and what follows them run again."""
    done = torc("-f", "json", "jobs", "retry", failed, "-q", "exit:2", "--url", server)
    found = ids(server, failed)
    assert json.loads(done.stdout) == {
        "workflow_id": failed,
        "dry_run": False,
        "retried_job_ids": [found["bad_2"]],
        "reset_jobs": 2,
    }
    now = statuses(server, failed)
    assert (now["bad_1"], now["bad_2"], now["good"]) == ("failed", "ready", "completed")


def test_named_jobs(torc: Torc, server: str, failed: int) -> None:
    """A job that did not fail is refused, and then none is retried; a wrong filter names the position."""
    found = ids(server, failed)
    refused = torc("jobs", "retry", failed, found["bad_1"], found["good"], "--url", server)
    assert (refused.returncode, refused.stderr) == (
        2,
        f"Error: not among the failed jobs of workflow {failed}: {found['good']}\n",
    )
    assert statuses(server, failed)["bad_1"] == "failed"
    assert "position" in torc("jobs", "retry", failed, "-q", "exit:x", "--url", server).stderr
    nothing = torc("jobs", "retry", failed, "-q", "exit:77", "--url", server)
    assert (nothing.returncode, nothing.stdout) == (
        0,
        f"No failed job of workflow {failed} is meant: nothing to retry.\n",
    )
    assert torc("jobs", "retry", failed, found["bad_1"], "--url", server).returncode == 0
    assert statuses(server, failed)["bad_1"] == "ready"


def test_cancel_and_terminate(torc: Torc, server: str) -> None:
    """Each is for jobs in some statuses only; several are checked before the first is changed."""
    with TorcClient(server) as client:
        plan = Plan(WorkflowRecord(name="w", user="u"), [PlannedJob("a", "true"), PlannedJob("b", "true")])
        workflow_id = client.create_from_plan(plan, initialize=True).id
        first, second = ids(server, workflow_id).values()
        client.change_job_status(second, "running", client.workflow_status(workflow_id).run_id)
    refused = torc("jobs", "cancel", first, second, "--url", server)
    assert (
        refused.stderr == f"Error: job {second} is running: cancel is for jobs that are uninitialized, blocked, ready\n"
    )
    assert statuses(server, workflow_id) == {"a": "ready", "b": "running"}
    preview = torc("jobs", "cancel", first, "--dry-run", "--url", server)
    assert preview.stdout == f"Job {first} (a), which is ready, would be excluded from the workflow.\n"
    assert torc("jobs", "cancel", first, "--url", server).returncode == 0
    assert torc("jobs", "terminate", second, "--url", server).returncode == 0
    assert statuses(server, workflow_id) == {"a": "disabled", "b": "pending_failed"}
    assert torc("jobs", "terminate", 99_999, "--url", server).returncode != 0


def test_an_excluded_job_is_taken_in_again(torc: Torc, server: str) -> None:
    """The undo is for excluded jobs only; the job then runs after a reinitialize."""
    with TorcClient(server) as client:
        plan = Plan(WorkflowRecord(name="w", user="u"), [PlannedJob("a", "true"), PlannedJob("b", "true")])
        workflow_id = client.create_from_plan(plan, initialize=True).id
        first, second = ids(server, workflow_id).values()
    assert torc("jobs", "cancel", first, "--url", server).returncode == 0
    refused = torc("jobs", "cancel", second, "--undo", "--url", server)
    assert refused.stderr == f"Error: job {second} is ready: cancel --undo is for jobs that are disabled\n"
    done = torc("jobs", "cancel", first, "--undo", "--url", server)
    assert done.stdout == f"Job {first} (a), which was disabled, is a part of the workflow again.\n"
    assert statuses(server, workflow_id) == {"a": "uninitialized", "b": "ready"}
    assert torc("workflows", "reinitialize", workflow_id, "--url", server).returncode == 0
    assert torc("run", workflow_id, "--url", server).returncode == 0
    assert statuses(server, workflow_id) == {"a": "completed", "b": "completed"}
