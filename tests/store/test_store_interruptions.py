"""Interrupted jobs: they are terminated and count as unfinished, and become ready when a runner next asks for jobs."""

from typing import Any

import pytest
import sqlalchemy as sa

from torc_framework.models.exchange import ExchangeRequest, Offer
from torc_framework.models.exits import ExitClass
from torc_framework.models.plan import PlannedJob
from torc_framework.store.errors import RuleError
from torc_framework.store.exchange import single_claims, single_steps
from torc_framework.store.exchange.exchange import has_something_for_runner
from torc_framework.store.job_state import interruptions
from torc_framework.store.recovery.recoveries import check_recoverable
from torc_framework.store.runs import counts, lifecycle
from torc_framework.store.runs.reinitialize import reinitialize
from torc_framework.store.runs.workflow_status import workflow_completion
from torc_framework.store.tables import core as t


def interrupt(bench: Any, *jobs: int, code: int = 152, node: int | None = None, **fields: Any) -> Any:
    """Report that a runner that ends has interrupted these jobs."""
    reports = [bench.ended(job, "terminated", code, interrupted=True, exit_class="interrupted") for job in jobs]
    return bench.exchange(node, ended=reports, **fields)


def interrupted(bench: Any) -> list[bool]:
    """Return for all jobs whether they are interrupted."""
    return [bool(flag) for flag in bench.column("is_interrupted")]


@pytest.fixture
def half(bench: Any) -> Any:
    """Return a bench with a chain of three jobs and a fourth one; the first of the chain and the fourth are
    interrupted.
    """
    bench.plan(4, [(1, 0), (2, 1)])
    bench.start(0, 3)
    interrupt(bench, 0, 3)
    return bench


def test_dependents_wait_and_the_workflow_is_not_complete(half: Any) -> None:
    """Dependents wait for an interrupted job with any return code, also after the counters are computed again."""
    assert half.statuses() == ["terminated", "blocked", "blocked", "terminated"]
    assert interrupted(half) == [True, False, False, True]
    half.check_counters()
    with half.database.read() as tx:
        assert not workflow_completion(tx, half.workflow_id).is_complete
        assert interruptions.count_interrupted(tx, half.workflow_id) == 2
        assert has_something_for_runner(tx, half.workflow_id, ExchangeRequest(half.nodes[0], half.run_id()))
        assert counts.count_database(tx).workflows == {"waiting": 1}
    assert not half.events("workflow_completed")
    assert [result["exit_class"] for result in half.results()] == ["interrupted", "interrupted"]


def test_a_workflow_of_interrupted_jobs_only_is_not_complete(bench: Any) -> None:
    """A workflow is not complete while it has an interrupted job."""
    bench.plan(1)
    bench.start(0)
    assert not interrupt(bench, 0, code=0).is_complete
    with bench.database.read() as tx:
        assert counts.count_database(tx).workflows == {"waiting": 1}


def test_the_next_runner_goes_on(half: Any) -> None:
    """The exchange in which a runner asks for jobs claims the next attempt; the earlier result is kept."""
    reply = half.exchange(half.node(), slots=9)
    assert (reply.resumed, [(job.name, job.attempt_id) for job in reply.jobs]) == (2, [("job0", 2), ("job3", 2)])
    assert interrupted(half) == [False] * 4
    assert half.column("result_id") == [None] * 4
    (event,) = half.events("jobs_resumed")
    assert event["job_ids"] == [half.job_id(0), half.job_id(3)]
    half.exchange(half.nodes[0], ended=[half.ended(0), half.ended(3)])
    assert half.statuses() == ["completed", "ready", "blocked", "completed"]
    assert len(half.results()) == 4
    half.finish(1, 2)
    assert len(half.events("workflow_completed")) == 1


def test_a_runner_that_asks_for_nothing_resumes_nothing(half: Any) -> None:
    """A runner that ends, or that has no free slot, makes no interrupted job ready."""
    assert half.exchange().resumed == 0
    assert interrupted(half)[0]


def test_a_runner_that_stays_goes_on_with_what_another_leaves(bench: Any) -> None:
    """When one runner interrupts a job, another one that waits is woken and claims it."""
    bench.plan(2)
    bench.start(0, 1)
    other = bench.node()
    interrupt(bench, 0)
    assert bench.claim(5, node=other)[0].attempt_id == 2


def test_one_exchange_may_interrupt_and_resume(bench: Any) -> None:
    """A job that saves its state at its own limit is claimed again by the same runner."""
    bench.plan(1)
    bench.start(0)
    reply = interrupt(bench, 0, code=0, slots=1)
    assert [job.attempt_id for job in reply.jobs] == [2]


@pytest.mark.parametrize("claim", ["claim_by_resources", "claim_next"])
def test_single_claims_resume_too(half: Any, claim: str) -> None:
    """Single claims make interrupted jobs ready, too."""
    with half.database.write() as tx:
        wanted: Any = Offer(slots=9) if claim == "claim_by_resources" else 9
        claimed = getattr(single_claims, claim)(tx, half.workflow_id, wanted)
    assert [job.attempt_id for job in claimed.jobs] == [2, 2]


def test_interruptions_cost_no_retry(bench: Any) -> None:
    """Interruptions do not count towards the budget of a rule."""
    bench.plan(1)
    for attempt in range(1, 5):
        bench.start(0)
        assert bench.attempt(0) == attempt
        interrupt(bench, 0)
    bench.start(0)
    bench.retry(0, 3)
    bench.start(0)
    interrupt(bench, 0)
    bench.start(0)
    bench.retry(0, 3)
    assert (bench.statuses(), bench.attempt(0)) == (["ready"], 8)
    bench.start(0)
    bench.retry(0, 3)
    assert (bench.statuses(), bench.attempt(0)) == (["failed"], 8)


def test_a_canceled_allocation_costs_no_retry(bench: Any) -> None:
    """Attempts that ended with their allocation do not count either."""
    bench.plan(1)
    bench.start(0)
    bench.end(0, "terminated", 143, interrupted=True, exit_class="canceled")
    bench.start(0)
    bench.retry(0, 2)
    assert (bench.statuses(), bench.attempt(0)) == (["ready"], 3)


def test_an_interrupted_job_may_be_retried_by_call(half: Any) -> None:
    """The number of attempts in the call does not limit this retry."""
    with half.database.write() as tx:
        single_steps.retry_job(tx, half.job_id(0), half.run_id(), 1)
    assert (half.statuses()[0], half.attempt(0), interrupted(half)[0]) == ("ready", 2, False)
    half.check_counters()


def test_a_client_s_own_terminated_is_an_end(bench: Any) -> None:
    """A job that is terminated otherwise is over: dependents are canceled, or become ready after return code 0."""
    bench.plan(2, [(1, 0)])
    bench.start(0)
    result = {
        "job_id": bench.job_id(0),
        "workflow_id": bench.workflow_id,
        "run_id": bench.run_id(),
        "attempt_id": 1,
        "compute_node_id": bench.nodes[0],
        "return_code": 143,
        "exec_time_minutes": 1.0,
        "completion_time": "2030-01-01T00:00:00Z",
        "status": "terminated",
        "exit_class": str(ExitClass.INTERRUPTED),
    }
    with bench.database.write() as tx:
        single_steps.complete_job(tx, bench.job_id(0), "terminated", bench.run_id(), result)
    assert (bench.statuses(), interrupted(bench)) == (["terminated", "canceled"], [False, False])
    assert bench.events("workflow_completed")


def test_an_interruption_is_said_of_a_terminated_attempt_only(bench: Any) -> None:
    """In a report of another status, ``interrupted`` is ignored."""
    bench.plan(1)
    bench.start(0)
    bench.end(0, "failed", 1, interrupted=True)
    assert (bench.statuses(), interrupted(bench)) == (["failed"], [False])


def test_nothing_is_resumed_in_a_canceled_workflow(half: Any) -> None:
    """Interrupted jobs of a canceled workflow do not become ready; after a reset, all jobs can run."""
    with half.database.write() as tx:
        lifecycle.cancel_workflow(tx, half.workflow_id)
        assert lifecycle.resume_workflow(tx, half.workflow_id) == []
        assert workflow_completion(tx, half.workflow_id).is_complete
    assert half.claim(9, node=half.node()) == []
    with half.database.write() as tx:
        lifecycle.reset_status(tx, half.workflow_id)
        lifecycle.reset_job_status(tx, half.workflow_id, failed_only=True)
        lifecycle.initialize_jobs(tx, half.workflow_id, only_uninitialized=True)
    assert half.statuses() == ["ready", "blocked", "blocked", "ready"]
    assert interrupted(half) == [False] * 4
    half.check_counters()


def test_a_person_may_resume(half: Any) -> None:
    """A call of a user makes interrupted jobs ready; a second call changes nothing."""
    with half.database.write() as tx:
        assert lifecycle.resume_workflow(tx, half.workflow_id) == [half.job_id(0), half.job_id(3)]
        assert lifecycle.resume_workflow(tx, half.workflow_id) == []
    assert half.statuses() == ["ready", "blocked", "blocked", "ready"]


def test_initialize_jobs_overwrites_no_attempt(half: Any) -> None:
    """Within the same run, a job that runs again has its next attempt."""
    with half.database.write() as tx:
        lifecycle.initialize_jobs(tx, half.workflow_id, only_uninitialized=True)
    assert (half.statuses()[0], half.attempt(0), interrupted(half)[0]) == ("ready", 2, False)
    half.check_counters()


def test_reinitialize_says_why(half: Any) -> None:
    """The reason is that they were interrupted, not that they were terminated."""
    with half.database.write() as tx:
        found = reinitialize(tx, half.workflow_id, {}, dry_run=True)
        assert {job.reason for job in found.jobs} == {"it was interrupted: its runner had to end"}
        reinitialize(tx, half.workflow_id, {})
    assert half.statuses() == ["ready", "blocked", "blocked", "ready"]
    assert interrupted(half) == [False] * 4


def test_a_recovery_waits(half: Any) -> None:
    """A workflow with interrupted jobs is refused, because these can still run."""
    with half.database.write() as tx:
        tx.connection.execute(sa.update(t.COMPUTE_NODE).values(is_active=False))
        with pytest.raises(RuleError, match=r"2 job\(s\) can still run"):
            check_recoverable(tx, half.workflow_id)


def test_a_deleted_interruption_blocks_nobody(half: Any) -> None:
    """The dependents of a deleted interrupted job become ready."""
    from torc_framework.store.record_kinds.jobs import delete_job

    with half.database.write() as tx:
        delete_job(tx, half.job_id(0))
    assert half.statuses() == ["ready", "blocked", "terminated"]
    half.check_counters()


def test_the_index_serves_the_question(half: Any) -> None:
    """The query of each exchange for interrupted jobs uses the index, not the table."""
    if half.database.is_local:
        query = "EXPLAIN QUERY PLAN SELECT id FROM job WHERE workflow_id = 1 AND is_interrupted != 0"
        with half.database.read() as tx:
            (row,) = tx.connection.exec_driver_sql(query).all()
        assert "ix_job_by_interruption" in row[3]


def test_what_a_clean_exit_means_is_handed_out(bench: Any) -> None:
    """A claimed job has its ``clean_exit_after_stop``."""
    bench.plan([PlannedJob("a", "x", clean_exit_after_stop="completed"), PlannedJob("b", "x")])
    assert [job.clean_exit_after_stop for job in bench.claim()] == ["completed", "auto"]
