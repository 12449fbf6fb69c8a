"""A watcher decides on what is true when it decides, however long a batch system took to answer."""

from collections.abc import Callable, Collection, Sequence
from pathlib import Path
from typing import Any, ClassVar

import pytest
from runner_bench import Bench, job
from sample_records import register

from torc_framework.allocations.resubmission import NodeResubmitter
from torc_framework.errors import AllocationError, UserError
from torc_framework.executors import Allocation, AllocationRequest, Allocator, Capabilities
from torc_framework.models.records import ComputeNodeRecord, ResultRecord, ScheduledComputeNodeRecord
from torc_framework.recovery.watch import Watcher, WatchOptions


class Slow(Allocator):
    """A batch system in whose answering time a test lets things happen; it has no nodes."""

    name: ClassVar[str] = "slow"
    capabilities = Capabilities(can_allocate=True)
    meanwhile: ClassVar[Callable[[str], None]]

    def allocate(self, request: AllocationRequest) -> list[Allocation]:
        type(self).meanwhile("allocate")
        raise AllocationError("no nodes")

    def find(self, names: Collection[str]) -> dict[str, list[Allocation]]:
        return {}

    def alive(self, allocations: Sequence[Allocation]) -> dict[str, bool]:
        type(self).meanwhile("alive")
        return {}

    def release(self, allocations: Sequence[Allocation]) -> None:
        return


class Plugins:
    """Knows the slow batch system."""

    def executor(self, name: str) -> type[Allocator]:
        assert name == "slow"
        return Slow

    def action_types(self) -> dict[str, Any]:
        return {}


class WorkflowRecoverer:
    """Notes that a recovery is wanted, and does none."""

    asked = 0

    def recover(self) -> Any:
        self.asked += 1
        raise UserError("nothing to recover")


@pytest.mark.parametrize(("during", "status"), [("alive", "failed"), ("alive", "completed"), ("allocate", "failed")])
def test_a_workflow_that_ends_during_a_question(bench: Bench, during: str, status: str) -> None:
    """A workflow that is over by then is recovered or reported complete, and not given up for lack of nodes."""
    client, workflow_id = bench.client, bench.create(job("a", "true"))
    client.create(
        ScheduledComputeNodeRecord(
            workflow_id=workflow_id,
            scheduler_id=7,
            scheduler_config_id=1,
            scheduler_type="slow",
            status="active" if during == "alive" else "complete",
        )
    )
    runner = register(client, workflow_id, hostname="elsewhere")

    held: list[int] = []

    def begin_the_job() -> None:
        (claimed,) = client.claim_next_jobs(workflow_id).jobs
        client.start_job(claimed.id or 0, 1, runner)
        held.append(claimed.id or 0)

    def end_the_job(question: str) -> None:
        if question != during:
            return
        if not held:
            begin_the_job()
        result = ResultRecord(
            job_id=held[0],
            workflow_id=workflow_id,
            run_id=1,
            compute_node_id=runner,
            return_code=int(status == "failed"),
            exec_time_minutes=0.0,
            completion_time="2026-01-01T00:00:00.000Z",
            status=status,
        )
        client.complete_job(held[0], status, 1, result)
        client.update(ComputeNodeRecord, runner, {"is_active": False})

    if during == "alive":
        begin_the_job()
    else:
        client.update(ComputeNodeRecord, runner, {"is_active": False})
    Slow.meanwhile = end_the_job
    said: list[str] = []
    plugins: Any = Plugins()
    recoverer: Any = WorkflowRecoverer()
    submitter = NodeResubmitter(client, plugins, workflow_id, {}, Path("output"), said.append)
    options = WatchOptions(poll_interval_s=0.2, recover=True)
    outcome = Watcher(
        client, plugins, workflow_id, options, said.append, recoverer=recoverer, submitter=submitter
    ).watch()
    assert outcome.status == status
    assert recoverer.asked == int(status == "failed")
    assert "No nodes were obtained for the jobs that are left." not in said
