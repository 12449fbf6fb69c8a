"""Jobs that were lost with their allocation: its ending decides their class and whether they run again."""

from typing import Any

import pytest
from programs import project_plugin
from runner_bench import Bench, job
from sample_records import register

from torc_framework.models.records import ComputeNodeRecord, ScheduledComputeNodeRecord
from torc_framework.plugins.manager import PluginManager
from torc_framework.recovery.orphans import sync_status

ALLOCATOR = """
from pathlib import Path
from torc_framework.api import AllocationEnding, Allocator, Capabilities, hookimpl

class Paper(Allocator):
    name = "paper"
    description = "Knows of allocations what a file says"
    capabilities = Capabilities(can_allocate=True)

    def allocate(self, request):
        return []

    def find(self, names):
        return {}

    def alive(self, allocations):
        return {}

    def release(self, allocations):
        pass

    def endings(self, allocations):
        state = Path("state").read_text()
        return {each.id: AllocationEnding(state, None, ("n3",)) for each in allocations} if state else {}

@hookimpl
def torc_executors():
    return [Paper]
"""


def lost_job(bench: Bench, workflow_id: int, number: int = 77) -> None:
    """Let a runner in an allocation of ``paper`` hold the workflow's job."""
    allocation = bench.client.create(
        ScheduledComputeNodeRecord(
            workflow_id=workflow_id, scheduler_id=number, scheduler_config_id=1, scheduler_type="paper", status="active"
        )
    )
    runner = register(bench.client, workflow_id, hostname="n3")
    described = {"type": "paper", "scheduler_id": allocation.id}
    bench.client.update(ComputeNodeRecord, runner, {"scheduler": described})
    (claimed,) = bench.client.claim_next_jobs(workflow_id).jobs
    bench.client.start_job(claimed.id or 0, 1, runner)


@pytest.mark.parametrize(
    ("state", "exit_class", "runs_again"),
    [
        ("NODE_FAIL", "node_failure", True),
        ("PREEMPTED", "preempted", True),
        ("CANCELLED by 1001", "canceled", False),
        ("COMPLETED", "orphaned", False),
        ("WORN_OUT", "orphaned", False),
        ("", "orphaned", False),
    ],
)
@pytest.mark.parametrize("rerun", [False, True])
def test_endings(bench: Bench, state: str, exit_class: str, runs_again: bool, rerun: bool) -> None:
    """An interruption is named; its job runs again where that is wanted, and fails otherwise."""
    project_plugin(bench.folder, "paper", ALLOCATOR)
    (bench.folder / "state").write_text(state)
    plugins = PluginManager.load(bench.folder)
    workflow_id = bench.create(job("a", "true"))
    lost_job(bench, workflow_id)
    found = sync_status(bench.client, plugins, {}, workflow_id, rerun=rerun)
    again = runs_again and rerun
    assert [each.status for each in found.jobs] == ["ready" if again else "failed"]
    result = bench.results(workflow_id)["a"]
    assert (result.return_code, result.exit_class) == (-128, exit_class)
    seen: Any = result.observation
    assert ((seen or {}).get("scheduler_state") or "") == state
    assert bench.jobs(workflow_id)["a"].attempt_id == (2 if again else 1)


def test_interruptions_have_an_end(bench: Bench) -> None:
    """A job whose node fails again and again is left to a person."""
    project_plugin(bench.folder, "paper", ALLOCATOR)
    (bench.folder / "state").write_text("NODE_FAIL")
    plugins = PluginManager.load(bench.folder)
    workflow_id = bench.create(job("a", "true"))
    statuses = []
    for number in (1, 2, 3):
        lost_job(bench, workflow_id, number)
        sync_status(bench.client, plugins, {}, workflow_id, rerun=True)
        statuses.append(bench.statuses(workflow_id)["a"])
    assert statuses == ["ready", "ready", "failed"]
