"""Recoveries: failed jobs get larger requirements and run again, with the jobs downstream of them only."""

from typing import Any

import pytest
import sqlalchemy as sa

from torc_framework.models.plan import PlannedJob
from torc_framework.models.records import ResourceRequirementsRecord
from torc_framework.models.recovery import RecoveryOrder, RecoveryReceipt, Repair
from torc_framework.store.errors import NotFoundError, RuleError
from torc_framework.store.record_kinds.nodes import COMPUTE_NODES, SCHEDULED_COMPUTE_NODES
from torc_framework.store.record_kinds.requirements import RESOURCE_REQUIREMENTS
from torc_framework.store.records import crud
from torc_framework.store.records.kind import PageRequest
from torc_framework.store.recovery.recoveries import find_recoveries, recover
from torc_framework.store.runs import lifecycle
from torc_framework.store.runs.workflow_status import workflow_status
from torc_framework.store.tables import core as t

GIB = 1024**3
SMALL = ResourceRequirementsRecord(workflow_id=0, name="small", memory="1g", runtime="PT10M", num_cpus=2, num_gpus=1)


def plan(bench: Any, count: int, dependencies: Any = (), **parts: Any) -> None:
    """Store jobs with the requirements ``small``."""
    jobs = [PlannedJob(name=f"job{n}", command="run", resource_requirements=0) for n in range(count)]
    bench.plan(jobs, dependencies, resource_requirements=[SMALL], **parts)


def repair(bench: Any, job: int, **wanted: Any) -> Repair:
    """Return a repair of a job by its position."""
    return Repair(bench.job_id(job), wanted.pop("attempt_id", 1), wanted.pop("reason", "it lacked memory"), **wanted)


def run_recovery(bench: Any, *repairs: Repair, run_id: int | None = None, leave: bool = True) -> RecoveryReceipt:
    """Recover, after the runner has left; another one comes."""
    if leave:
        bench.leave()
        bench.nodes = [bench.node(is_active=None)]
    with bench.database.write() as tx:
        return recover(tx, bench.workflow_id, RecoveryOrder(run_id or bench_run(bench, tx), list(repairs)))


def bench_run(bench: Any, tx: Any) -> int:
    """Return the present run."""
    return workflow_status(tx, bench.workflow_id).run_id


def asked(bench: Any, job: int) -> dict[str, Any]:
    """Return the requirements of a job."""
    with bench.database.read() as tx:
        return crud.get(tx, RESOURCE_REQUIREMENTS, bench.column("resource_requirements_id")[job])


def test_only_jobs_that_failed_grow(bench: Any) -> None:
    """Shared requirements get a new record; jobs that need more of the same amounts share it, with the largest
    amounts.
    """
    plan(bench, 5)
    bench.finish(0, 1)
    bench.finish(2, 3, 4, status="failed")
    receipt = run_recovery(
        bench,
        repair(bench, 2, memory_bytes=2 * GIB, causes=["oom"], decided_by="oom"),
        repair(bench, 3, memory_bytes=3 * GIB, causes=["oom"], decided_by="oom"),
        repair(bench, 4, runtime_s=900),
    )
    assert (receipt.run_id, receipt.reset_count) == (2, 3)
    small = asked(bench, 0)
    assert (small["name"], small["memory"], small["runtime"]) == ("small", "1g", "PT10M")
    assert asked(bench, 1) == small
    grown = asked(bench, 2)
    assert (grown["name"], grown["memory"], grown["runtime"]) == ("small_recovered_r2", "3g", "PT10M")
    assert (grown["num_cpus"], grown["num_gpus"]) == (2, 1)
    assert asked(bench, 3) == grown
    longer = asked(bench, 4)
    assert (longer["name"], longer["memory"], longer["runtime"]) == ("small_recovered_r2_2", "1g", "PT15M")
    assert bench.statuses() == ["completed", "completed", "ready", "ready", "ready"]
    claimed = bench.claim()
    assert [job.resources.memory_bytes // GIB for job in claimed] in ([3, 3, 1], [1, 3, 3])
    bench.check_counters()


def test_a_record_of_their_own_grows_in_place(bench: Any) -> None:
    """A record that only the recovered jobs have is changed itself, in each recovery."""
    plan(bench, 2)
    for size in (2, 4):
        bench.finish(0, 1, status="failed")
        run_recovery(bench, repair(bench, 0, memory_bytes=size * GIB), repair(bench, 1, memory_bytes=size * GIB))
        assert (asked(bench, 0)["name"], asked(bench, 0)["memory"]) == ("small", f"{size}g")
        bench.nodes = [bench.node()]
    with bench.database.read() as tx:
        entries, total = find_recoveries(tx, bench.workflow_id, PageRequest())
        assert find_recoveries(tx, bench.workflow_id, PageRequest(1, 1)) == (entries[1:2], 4)
        second = PageRequest(limit=1, after_id=entries[0].id)
        assert find_recoveries(tx, bench.workflow_id, second) == (entries[1:2], 3)
    assert total == 4
    assert [(entry.old_memory, entry.new_memory) for entry in entries] == [("1g", "2g")] * 2 + [("2g", "4g")] * 2
    assert [(entry.run_id, entry.new_run_id) for entry in entries] == [(1, 2)] * 2 + [(2, 3)] * 2
    assert {entry.old_runtime for entry in entries} == {"PT10M"} == {entry.new_runtime for entry in entries}


def test_default_requirements_are_never_changed(bench: Any) -> None:
    """Jobs with default requirements get new records, and later jobs the unchanged default."""
    bench.plan(1)
    before = asked(bench, 0)
    bench.finish(0, status="failed")
    run_recovery(bench, repair(bench, 0, memory_bytes=GIB))
    assert (asked(bench, 0)["name"], asked(bench, 0)["memory"]) == ("default_recovered_r2", "1g")
    with bench.database.read() as tx:
        assert crud.get(tx, RESOURCE_REQUIREMENTS, before["id"]) == before


def test_requests_never_shrink(bench: Any) -> None:
    """An amount below the present one keeps the present one."""
    plan(bench, 1)
    bench.finish(0, status="failed")
    receipt = run_recovery(bench, repair(bench, 0, memory_bytes=1, runtime_s=1, num_cpus=1))
    entry = receipt.entries[0]
    assert (entry.new_memory, entry.new_runtime, entry.new_num_cpus) == ("1g", "PT10M", 2)
    assert entry.new_requirements_id == entry.old_requirements_id


def test_exactly_the_repaired_jobs_and_what_hangs_on_them_run_again(bench: Any) -> None:
    """Other jobs that failed or were terminated keep their status, and so do their dependents."""
    plan(bench, 6, [(2, 0), (3, 1), (4, 0), (4, 1)])
    bench.finish(0, 1, status="failed")
    bench.finish(5, status="terminated", code=152)
    assert bench.statuses() == ["failed", "failed", "canceled", "canceled", "canceled", "terminated"]
    receipt = run_recovery(bench, repair(bench, 0))
    assert receipt.reset_count == 3
    assert bench.statuses() == ["ready", "failed", "blocked", "canceled", "blocked", "terminated"]
    bench.check_counters()
    bench.nodes = [bench.node()]
    bench.finish(0)
    assert bench.statuses() == ["completed", "failed", "ready", "canceled", "canceled", "terminated"]


def test_what_is_done_is_told(bench: Any) -> None:
    """There is an event for each job with old and new requirements, and one for the workflow."""
    plan(bench, 1)
    bench.finish(0, status="failed")
    run_recovery(bench, repair(bench, 0, memory_bytes=2 * GIB, decided_by="oom", evidence=["peak"], confidence=0.9))
    (told,) = bench.events("job_recovered")
    assert (told["job_name"], told["old_memory"], told["new_memory"], told["decided_by"]) == ("job0", "1g", "2g", "oom")
    assert [event["recovered_jobs"] for event in bench.events("workflow_recovered")] == [1]
    assert [event["run_id"] for event in bench.events("workflow_reinitialized")] == [2]


def test_a_pending_failure_can_be_recovered(bench: Any) -> None:
    """Jobs in ``pending_failed``, and the jobs downstream of them, do not prevent a recovery."""
    plan(bench, 2, [(1, 0)])
    bench.finish(0, status="pending_failed")
    run_recovery(bench, repair(bench, 0, memory_bytes=2 * GIB))
    assert bench.statuses() == ["ready", "blocked"]


def test_a_canceled_workflow_can_be_recovered(bench: Any) -> None:
    """Failed jobs run again, and jobs that never ran run; canceled jobs stay canceled."""
    plan(bench, 3, [(2, 0)])
    bench.finish(0, status="failed")
    bench.start(1)
    with bench.database.write() as tx:
        lifecycle.cancel_workflow(tx, bench.workflow_id)
    run_recovery(bench, repair(bench, 0))
    assert bench.statuses() == ["ready", "canceled", "blocked"]


def test_a_dry_run_changes_nothing(bench: Any) -> None:
    """It returns what would happen; without repairs, it checks whether a recovery is possible."""
    plan(bench, 2, [(1, 0)])
    bench.finish(0, status="failed")
    for repairs, count in (([repair(bench, 0, memory_bytes=2 * GIB)], 2), ([], 0)):
        with bench.database.write() as tx:
            for node in bench.nodes:
                crud.update(tx, COMPUTE_NODES, node, {"is_active": False})
        events = len(bench.events())
        with bench.database.write() as tx:
            receipt = recover(tx, bench.workflow_id, RecoveryOrder(1, repairs, dry_run=True))
            assert not tx.workflows_to_wake
        assert (receipt.reset_count, [entry.new_memory for entry in receipt.entries]) == (count, ["2g"][:count])
    assert (bench.statuses(), bench.run_id(), len(bench.events())) == (["failed", "canceled"], 1, events)
    assert asked(bench, 0)["memory"] == "1g"


REFUSALS: dict[str, tuple[dict[str, Any], str]] = {
    "another run": ({"run_id": 7}, "Run ID mismatch"),
    "an active runner": ({"leave": False}, "1 active compute node"),
}


@pytest.mark.parametrize("case", REFUSALS)
def test_a_recovery_is_refused(bench: Any, case: str) -> None:
    """A refused recovery changes nothing."""
    options, message = REFUSALS[case]
    plan(bench, 1)
    bench.finish(0, status="failed")
    with pytest.raises(RuleError, match=message):
        run_recovery(bench, repair(bench, 0), **options)
    assert (bench.statuses(), bench.run_id()) == (["failed"], 1)


def test_an_unfinished_workflow_is_refused(bench: Any) -> None:
    """Jobs that can still run have to run first; open allocations may still bring runners."""
    plan(bench, 2)
    bench.finish(0, status="failed")
    with pytest.raises(RuleError, match="not complete, 1 job"):
        run_recovery(bench, repair(bench, 0))
    bench.finish(1)
    node = {"scheduler_id": 1, "scheduler_config_id": 1, "scheduler_type": "slurm", "status": "pending"}
    with bench.database.write() as tx:
        crud.create(tx, SCHEDULED_COMPUTE_NODES, {"workflow_id": bench.workflow_id, **node})
    with pytest.raises(RuleError, match="1 pending or active scheduled compute node"):
        run_recovery(bench, repair(bench, 0))


def test_a_job_that_has_gone_on_is_refused(bench: Any) -> None:
    """A repair of another attempt, or of a job that has not failed, is refused."""
    plan(bench, 2)
    bench.finish(0)
    bench.finish(1, status="failed")
    with pytest.raises(RuleError, match=r"\(job0\) is completed"):
        run_recovery(bench, repair(bench, 0))
    with pytest.raises(RuleError, match="since attempt 2"):
        run_recovery(bench, repair(bench, 1, attempt_id=2))
    with pytest.raises(NotFoundError):
        run_recovery(bench, Repair(999_999, 1, ""))
    with pytest.raises(RuleError, match="at least one job"):
        run_recovery(bench)


def test_an_archived_workflow_is_refused(bench: Any) -> None:
    """An archived workflow cannot be recovered."""
    plan(bench, 1)
    bench.finish(0, status="failed")
    with bench.database.write() as tx:
        tx.connection.execute(sa.update(t.WORKFLOW_STATUS).values(is_archived=True))
    with pytest.raises(RuleError, match="archived"):
        run_recovery(bench, repair(bench, 0))
