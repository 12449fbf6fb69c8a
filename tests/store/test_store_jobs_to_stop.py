"""Pending and running jobs that are deleted, or taken from their runners by hand: the runners stop them."""

from typing import Any

import pytest
import sqlalchemy as sa

from torc_framework.models.exchange import ExchangeRequest
from torc_framework.models.plan import PlannedJob
from torc_framework.models.records import FileRecord
from torc_framework.store.errors import ConflictError
from torc_framework.store.exchange.exchange import has_something_for_runner
from torc_framework.store.exchange.status_changes import change_status
from torc_framework.store.job_state import jobs_to_stop
from torc_framework.store.record_kinds import jobs
from torc_framework.store.runs.lifecycle import reset_job_status
from torc_framework.store.tables import core as t
from torc_framework.store.tables.internal import JOB_TO_STOP


def delete(bench: Any, *positions: int, force: bool = True) -> None:
    with bench.database.write() as tx:
        jobs.delete_jobs(tx, bench.workflow_id, [bench.job_id(n) for n in positions], force=force)


def is_worth_asking(bench: Any, node: int) -> bool:
    with bench.database.read() as tx:
        return has_something_for_runner(tx, bench.workflow_id, ExchangeRequest(node, bench.run_id()))


@pytest.mark.parametrize("held", ["pending", "running"])
def test_without_force_a_job_in_hand_stays(bench: Any, held: str) -> None:
    """The refusal names the job and its status; no job is deleted."""
    bench.plan(3)
    bench.start(*([0] if held == "running" else []))
    with pytest.raises(ConflictError, match=rf"Job {bench.job_id(0)} \(job0\) is {held}.*nothing was deleted"):
        delete(bench, 0, 1, force=False)
    with bench.database.write() as tx, pytest.raises(ConflictError, match=r"and 2 more"):
        jobs_to_stop.check_workflow_deletable(tx, bench.workflow_id, force=False)
    assert len(bench.statuses()) == 3


def test_without_force_other_jobs_are_deleted(bench: Any) -> None:
    """Blocked, ready and ended jobs are deleted without force."""
    bench.plan(3, [(1, 0), (2, 1)])
    bench.finish(0)
    delete(bench, 0, 2, force=False)
    assert bench.statuses() == ["ready"]


def test_a_runner_is_told_once_of_each_deleted_job(bench: Any) -> None:
    """The runner's next exchange has the jobs, and a waiting one is answered; other runners do not get them."""
    bench.plan(3)
    bench.start(0, 1)
    other, gone = bench.node(), [bench.job_id(0), bench.job_id(1)]
    assert not is_worth_asking(bench, bench.nodes[0])
    delete(bench, 0, 1)
    assert is_worth_asking(bench, bench.nodes[0])
    assert not is_worth_asking(bench, other)
    assert bench.exchange(other).refused == []
    assert bench.exchange().refused == gone
    assert bench.exchange().refused == []


def test_a_lost_answer_is_told_again(bench: Any) -> None:
    """A runner that sends the jobs that it holds gets the deleted ones among them again."""
    bench.plan(2)
    bench.start(0, 1)
    delete(bench, 0)
    bench.exchange()
    assert bench.exchange(holding=[bench.job_id(0), bench.job_id(1)]).refused == [bench.job_id(0)]


def test_a_late_report_touches_nothing(bench: Any) -> None:
    """The end of a deleted job stores no result and no event, and changes no file and no other job."""
    job = PlannedJob(name="a", command="a", output_files=[0])
    bench.plan([job, PlannedJob(name="b", command="b")], files=[FileRecord(workflow_id=0, name="f", path="f")])
    bench.start(0)
    report = bench.ended(0, file_mtimes={1: 5.0})
    with bench.database.read() as tx:
        report.file_mtimes = {tx.connection.execute(sa.select(t.FILE.c.id)).scalar(): 5.0}
    delete(bench, 0)
    with bench.database.write() as tx:
        made = jobs.create_jobs(tx, [{"workflow_id": bench.workflow_id, "name": "new", "command": "x"}])[0]
    assert made["id"] > bench.job_id(1)
    before = bench.events()
    bench.exchange(ended=[report])
    with bench.database.read() as tx:
        assert tx.connection.execute(sa.select(t.FILE.c.st_mtime)).scalar() is None
        status = sa.select(t.JOB.c.status).where(t.JOB.c.id == made["id"])
        assert tx.connection.execute(status).scalar() == "uninitialized"
    assert bench.results() == []
    assert bench.events() == before


@pytest.mark.parametrize("attempt", [2, 9])
def test_a_report_of_another_attempt_writes_no_times(bench: Any, attempt: int) -> None:
    """A report of another attempt changes nothing, modification times of files included."""
    job = PlannedJob(name="a", command="a", output_files=[0])
    bench.plan([job], files=[FileRecord(workflow_id=0, name="f", path="f")])
    bench.start(0)
    with bench.database.read() as tx:
        file_id = tx.connection.execute(sa.select(t.FILE.c.id)).scalar()
    bench.exchange(ended=[bench.ended(0, attempt=attempt, file_mtimes={file_id: 5.0})])
    with bench.database.read() as tx:
        assert tx.connection.execute(sa.select(t.FILE.c.st_mtime)).scalar() is None
    bench.exchange(ended=[bench.ended(0, file_mtimes={file_id: 6.0})])
    bench.exchange(ended=[bench.ended(0, file_mtimes={file_id: 7.0})])
    with bench.database.read() as tx:
        assert tx.connection.execute(sa.select(t.FILE.c.st_mtime)).scalar() == 6.0


def test_nothing_is_kept_for_a_runner_that_is_gone(bench: Any) -> None:
    """There are no requests to a runner that has ended, and a deleted workflow leaves no rows."""
    bench.plan(2)
    bench.start(0, 1)
    delete(bench, 0)
    with bench.database.write() as tx:
        tx.connection.execute(sa.update(t.COMPUTE_NODE).values(is_active=False))
    delete(bench, 1)
    with bench.database.write() as tx:
        told = list(tx.connection.execute(sa.select(JOB_TO_STOP.c.job_id)).scalars())
        assert told == [bench.job_id(0)]
        tx.connection.execute(sa.delete(t.WORKFLOW))
        assert tx.connection.execute(sa.select(JOB_TO_STOP)).first() is None


def set_status(bench: Any, position: int, label: str) -> None:
    with bench.database.write() as tx:
        change_status(tx, bench.job_id(position), label, bench.run_id())


@pytest.mark.parametrize(
    ("held", "label"),
    [(held, label) for held in ("pending", "running") for label in ("pending_failed", "ready", "uninitialized")],
)
def test_a_runner_is_told_of_a_job_that_is_taken_from_it(bench: Any, held: str, label: str) -> None:
    """For each status that the job gets by hand: its runner hears of it once, and its late end changes nothing."""
    bench.plan(2)
    bench.start(*([0] if held == "running" else []))
    late = bench.ended(0)
    set_status(bench, 0, label)
    assert is_worth_asking(bench, bench.nodes[0])
    assert bench.exchange().refused == [bench.job_id(0)]
    assert bench.exchange().refused == []
    if (held, label) != ("pending", "ready"):  # there the attempt is still the one that is reported
        bench.exchange(ended=[late])
        assert bench.statuses()[0] == label
        assert bench.results() == []


def test_a_runner_is_not_told_of_its_own_steps(bench: Any) -> None:
    """A start by hand takes the job from no runner."""
    bench.plan(1)
    bench.claim()
    set_status(bench, 0, "running")
    assert not is_worth_asking(bench, bench.nodes[0])
    assert bench.exchange().refused == []


def test_a_job_is_taken_twice_before_its_runner_asks(bench: Any) -> None:
    """One request is kept; the exchange in which the runner claims the job again tells it to stop the old attempt."""
    bench.plan(1)
    for _ in range(2):
        bench.start(0)
        set_status(bench, 0, "pending_failed")
        set_status(bench, 0, "ready")
    reply = bench.exchange(slots=1)
    assert reply.refused == [bench.job_id(0)]
    assert [(job.id, job.attempt_id) for job in reply.jobs] == [(bench.job_id(0), 3)]


def test_a_reset_of_jobs_tells_their_runners(bench: Any) -> None:
    """A reset of all jobs takes from the runners what they hold."""
    bench.plan(3, [(2, 1)])
    bench.start(0, 1)
    with bench.database.write() as tx:
        reset_job_status(tx, bench.workflow_id)
    assert bench.exchange().refused == [bench.job_id(0), bench.job_id(1)]


def test_nothing_is_asked_of_a_runner_that_has_ended(bench: Any) -> None:
    """A job whose runner is gone is taken from it all the same."""
    bench.plan(1)
    bench.start(0)
    with bench.database.write() as tx:
        tx.connection.execute(sa.update(t.COMPUTE_NODE).values(is_active=False))
    set_status(bench, 0, "pending_failed")
    with bench.database.read() as tx:
        assert tx.connection.execute(sa.select(JOB_TO_STOP)).first() is None
