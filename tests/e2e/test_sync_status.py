"""Jobs that are running on the server's books and nowhere else."""

import json
import subprocess
from pathlib import Path
from typing import Any

import pytest
from programs import BIN
from sample_records import register
from waiting import eventually

from torc_framework.client import TorcClient
from torc_framework.models.records import ComputeNodeRecord, JobRecord, ScheduledComputeNodeRecord

pytestmark = pytest.mark.e2e

PATIENCE_S = 60.0
WAITING = """
name: waiting
jobs:
  - {name: long, command: 'touch begun; while [ ! -e go ]; do sleep 0.05; done'}
  - {name: next, command: 'true', depends_on: [long]}
"""


@pytest.fixture
def call(torc: Any, server: str) -> Any:
    """Run torc against the server; returns the JSON answer."""

    def run(*arguments: object) -> Any:
        done = torc("-f", "json", *arguments, env={"TORC_API_URL": server})
        assert done.returncode == 0, done.stdout + done.stderr
        return json.loads(done.stdout)

    return run


def started(client: TorcClient, call: Any, work: Path, *, is_active: bool = True) -> tuple[int, int]:
    """Return a workflow whose first job a runner somewhere else has started, and that runner."""
    (work / "spec.yaml").write_text(WAITING)
    workflow_id = call("workflows", "create", "spec.yaml")["id"]
    client.begin_run(workflow_id)
    runner = register(client, workflow_id, hostname="somewhere-else", is_active=is_active)
    (job,) = client.claim_next_jobs(workflow_id).jobs
    client.start_job(job.id or 0, 1, runner)
    return workflow_id, runner


def test_a_runner_that_ended(call: Any, server: str, work: Path) -> None:
    """Its job fails as an orphan, the dependents are canceled; a dry run only reports; live runners keep their jobs."""
    with TorcClient(server) as client:
        wid, _ = started(client, call, work)
        assert call("workflows", "sync-status", wid)["jobs"] == []
        wid, _ = started(client, call, work, is_active=False)
        found = call("workflows", "sync-status", wid, "--dry-run")
        assert [(job["job_name"], job["status"]) for job in found["jobs"]] == [("long", "running")]
        assert call("workflows", "status", wid)["job_counts"] == {"running": 1, "blocked": 1}
        found = call("workflows", "sync-status", wid)
        assert (found["jobs"][0]["status"], found["jobs_failed"]) == ("failed", 1)
        assert call("workflows", "status", wid)["job_counts"] == {"failed": 1, "canceled": 1}
        (result,) = call("results", "list", wid)["results"]
        assert (result["return_code"], result["exit_class"]) == (-128, "orphaned")
        assert "has ended" in result["reason"]
        assert call("workflows", "sync-status", wid)["jobs"] == []


def test_a_job_that_was_not_begun_is_given_back(call: Any, server: str, work: Path) -> None:
    """It is ready again: no work was lost."""
    with TorcClient(server) as client:
        wid, runner = started(client, call, work)
        client.reset_job_status(wid)
        client.initialize_jobs(wid)
        client.claim_next_jobs(wid)
        client.update(ComputeNodeRecord, runner, {"is_active": False})
        found = call("workflows", "sync-status", wid)
        assert [(job["job_name"], job["status"], job["reason"]) for job in found["jobs"]] == [
            ("long", "ready", "no runner is active")
        ]


def test_a_dead_runner_of_this_machine(call: Any, server: str, torc: Any, torc_env: Any, work: Path) -> None:
    """What it left running is left to the next runner here, which sees it to its end."""
    (work / "spec.yaml").write_text(WAITING)
    wid = call("workflows", "create", "spec.yaml")["id"]
    runner = subprocess.Popen(
        [BIN / "torc", "run", str(wid)],
        cwd=work,
        env={**torc_env, "TORC_API_URL": server},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
    )
    eventually((work / "begun").exists)
    eventually(lambda: call("jobs", "list", wid, "--status", "running")["jobs"])
    assert call("workflows", "sync-status", wid)["jobs"] == []
    runner.kill()
    runner.wait()
    try:
        found = call("workflows", "sync-status", wid, "--dry-run")
        assert f"process {runner.pid} of this machine) is dead" in found["jobs"][0]["reason"]
        assert len(found["compute_node_ids"]) == 1
        assert call("workflows", "sync-status", wid)["jobs"][0]["status"] == "running"
    finally:
        (work / "go").touch()
    assert call("run", wid)["counts"] == {"completed": 2}


ALLOCATOR = '''
from pathlib import Path
from torc_framework.api import Allocator, Capabilities, hookimpl

class Shelf(Allocator):
    """Its allocations are files."""
    name = "shelf"
    capabilities = Capabilities(can_allocate=True)
    def allocate(self, request):
        return []
    def find(self, names):
        return {}
    def alive(self, allocations):
        return {a.id: Path(a.id).exists() for a in allocations}
    def release(self, allocations):
        for a in allocations:
            Path(a.id).unlink(missing_ok=True)

@hookimpl
def torc_executors():
    return [Shelf]
'''


def test_allocations_are_asked_of_their_executor(call: Any, server: str, work: Path) -> None:
    """One that has ended takes its runner and the runner's job along; of an executor that is not here it is said so."""
    (work / "torc_plugins").mkdir()
    (work / "torc_plugins" / "shelf.py").write_text(ALLOCATOR)
    call("plugins", "trust")
    (work / "11").touch()
    with TorcClient(server) as client:
        wid, _ = started(client, call, work, is_active=False)

        def allocation(name: int, executor: str) -> int:
            record = ScheduledComputeNodeRecord(
                workflow_id=wid, scheduler_id=name, scheduler_config_id=0, scheduler_type=executor, status="active"
            )
            return client.create(record).id or 0

        there, ended, _unknown = allocation(11, "shelf"), allocation(12, "shelf"), allocation(13, "no-such")
        runner = register(client, wid, hostname="somewhere-else", scheduler={"type": "shelf", "scheduler_id": ended})
        alive = register(client, wid, hostname="somewhere-else", scheduler={"type": "shelf", "scheduler_id": there})
        client.reset_job_status(wid)
        client.initialize_jobs(wid)
        (job,) = client.claim_next_jobs(wid).jobs
        client.start_job(job.id or 0, 1, runner)
        found = call("workflows", "sync-status", wid)
        assert found["jobs"][0]["reason"] == "Allocation terminated (Shelf job 12)"
        assert (found["compute_node_ids"], found["allocation_ids"]) == ([runner], [ended])
        assert "1 allocation(s) of 'no-such' were not asked about" in found["notes"][0]
        assert client.get(JobRecord, job.id or 0).status == "failed"
        assert client.get(ScheduledComputeNodeRecord, ended).status == "complete"
        assert client.get(ComputeNodeRecord, alive).is_active
        canceled = call("workflows", "cancel", wid)
        assert canceled["released_allocations"] == canceled["canceled_slurm_jobs"] == [11]
        assert (canceled["status"], canceled["errors"]) == ("partial_success", canceled["notes"])
        assert not (work / "11").exists()
