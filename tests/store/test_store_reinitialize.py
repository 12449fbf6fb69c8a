"""Reinitialize: which jobs run again after a change, and with which cause."""

from typing import Any

import pytest
import sqlalchemy as sa
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from torc_framework.models.plan import PlannedJob
from torc_framework.models.records import FileRecord, UserDataRecord
from torc_framework.models.responses import Reinitialized
from torc_framework.models.statuses import JobStatus
from torc_framework.store.errors import NotFoundError, RuleError
from torc_framework.store.job_state.changed_inputs import remember_inputs
from torc_framework.store.record_kinds.files import USER_DATA
from torc_framework.store.record_kinds.jobs import JOBS
from torc_framework.store.records import crud
from torc_framework.store.records.kind import RecordKind
from torc_framework.store.runs import lifecycle
from torc_framework.store.runs.reinitialize import reinitialize
from torc_framework.store.runs.workflow_status import put_status, workflow_status
from torc_framework.store.tables import core as t


def file(name: str, mtime: float | None = None) -> FileRecord:
    return FileRecord(workflow_id=0, name=name, path=f"{name}.txt", st_mtime=mtime)


def chain(bench: Any) -> None:
    """Three jobs in a row, each with a file to read and one to write, and another job; all completed. The first reads
    ``knob``; the last writes ``score``.
    """
    bench.plan(
        [
            PlannedJob(name="a", command="a", input_files=[0], output_files=[1], input_user_data=[0]),
            PlannedJob(name="b", command="b", input_files=[1], output_files=[2]),
            PlannedJob(name="c", command="c", input_files=[2], output_files=[3], output_user_data=[1]),
            PlannedJob(name="aside", command="x"),
        ],
        [(1, 0), (2, 1)],
        files=[file("in", 10.0), file("f1", 11.0), file("f2", 12.0), file("f3", 13.0)],
        user_data=[
            UserDataRecord(workflow_id=0, name="knob", data=1),
            UserDataRecord(workflow_id=0, name="score", data=2),
        ],
    )
    bench.finish(0, 1, 2, 3)


def again(bench: Any, *mtimes: float | None, **options: Any) -> Reinitialized:
    """Reinitialize with these modification times of the chain's files; by default they are unchanged."""
    seen = {**dict(enumerate((10.0, 11.0, 12.0, 13.0))), **dict(enumerate(mtimes))}
    with bench.database.write() as tx:
        query = sa.select(t.FILE.c.id).where(t.FILE.c.workflow_id == bench.workflow_id).order_by(t.FILE.c.id)
        ids = list(tx.connection.execute(query).scalars())
        return reinitialize(tx, bench.workflow_id, {i: seen[n] for n, i in enumerate(ids) if n in seen}, **options)


def reasons(done: Reinitialized) -> dict[str, str]:
    return {job.name: job.reason for job in done.jobs}


def first(bench: Any, table: sa.Table) -> int:
    query = sa.select(sa.func.min(table.c.id)).where(table.c.workflow_id == bench.workflow_id)
    with bench.database.read() as tx:
        return int(tx.connection.execute(query).scalar_one())


def update(bench: Any, resource: RecordKind, record_id: int, **values: Any) -> None:
    with bench.database.write() as tx:
        crud.update(tx, resource, record_id, values)


FOLLOWERS = {"b": "it waits for 'a', which runs again", "c": "it waits for 'b', which runs again"}


def test_nothing_changed(bench: Any) -> None:
    """The run is counted and no job is reset; five milliseconds are no change."""
    chain(bench)
    done = again(bench, 10.005)
    assert (done.run_id, done.jobs, done.job_count) == (2, [], 0)
    assert bench.statuses() == ["completed"] * 4
    assert bench.events("workflow_reinitialized")[-1]["run_id"] == 2


@pytest.mark.parametrize(
    ("mtime", "word"), [(10.011, "is newer"), (9.0, "is older"), (None, "is missing")], ids=["newer", "older", "gone"]
)
def test_a_changed_input_file(bench: Any, mtime: float | None, word: str) -> None:
    """Its readers and the jobs downstream of them run again; the time is stored, so that they run again only once."""
    chain(bench)
    done = again(bench, mtime)
    assert reasons(done) == {"a": f"input file in.txt {word}", **FOLLOWERS}
    assert [job.cause for job in done.jobs] == ["input_file", "dependency", "dependency"]
    assert [job.depends_on_job_id for job in done.jobs] == [None, bench.job_id(0), bench.job_id(1)]
    assert bench.statuses() == ["ready", "blocked", "blocked", "completed"]
    bench.check_counters()
    bench.finish(0, 1, 2)
    assert again(bench, mtime).jobs == []


def test_a_new_file(bench: Any) -> None:
    """A file that did not exist when the run began has changed."""
    bench.plan([PlannedJob(name="a", command="a", input_files=[0])], files=[file("in")])
    bench.finish(0)
    assert reasons(again(bench, 10.0)) == {"a": "input file in.txt is new"}


def test_a_missing_output(bench: Any) -> None:
    """Its writers run again, and its readers with them."""
    chain(bench)
    assert reasons(again(bench, 10.0, 11.0, None)) == {"b": "output file f2.txt is missing", "c": FOLLOWERS["c"]}
    assert bench.statuses() == ["completed", "ready", "blocked", "completed"]


def test_an_edited_output_is_kept(bench: Any) -> None:
    """A file that a user changed after a job wrote it makes its readers run again, and not its writer."""
    chain(bench)
    assert reasons(again(bench, 10.0, 99.0)) == {"b": "input file f1.txt is newer", "c": FOLLOWERS["c"]}


def test_files_that_were_not_looked_at_have_not_changed(bench: Any) -> None:
    chain(bench)
    with bench.database.write() as tx:
        assert reinitialize(tx, bench.workflow_id, {}).jobs == []


def test_another_command(bench: Any) -> None:
    """The command of a job that is over can be changed."""
    chain(bench)
    update(bench, JOBS, bench.job_id(1), command="better")
    assert reasons(again(bench)) == {"b": "command changed", "c": FOLLOWERS["c"]}


def test_another_value(bench: Any) -> None:
    """User data that a job reads has changed, or has no value any more."""
    chain(bench)
    knob = first(bench, t.USER_DATA)
    update(bench, USER_DATA, knob, data={"rate": 2})
    assert reasons(again(bench)) == {"a": "input user data 'knob' changed", **FOLLOWERS}
    bench.finish(0, 1, 2)
    with bench.database.write() as tx:
        tx.connection.execute(sa.update(t.USER_DATA).where(t.USER_DATA.c.id == knob + 1).values(data=None))
    assert reasons(again(bench)) == {"c": "output user data 'score' has no value"}


def test_one_cause_is_told(bench: Any) -> None:
    """The order of causes is command, user data, file."""
    chain(bench)
    update(bench, USER_DATA, first(bench, t.USER_DATA), data=5)
    assert reasons(again(bench, 99.0, dry_run=True))["a"] == "input user data 'knob' changed"
    update(bench, JOBS, bench.job_id(0), command="better")
    assert reasons(again(bench, 99.0, dry_run=True))["a"] == "command changed"


def test_a_dry_run_changes_nothing(bench: Any) -> None:
    """It changes no row; the real run then does what it returned."""
    chain(bench)
    update(bench, JOBS, bench.job_id(1), command="better")
    before = snapshot(bench)
    told = again(bench, 99.0, dry_run=True)
    assert (told.dry_run, told.run_id) == (True, 1)
    assert snapshot(bench) == before
    done = again(bench, 99.0)
    assert done.jobs == told.jobs


def snapshot(bench: Any) -> list[Any]:
    with bench.database.read() as tx:
        return [
            [tuple(row) for row in tx.connection.execute(sa.select(table).order_by(*table.primary_key.columns))]
            for table in (t.JOB, t.FILE, t.USER_DATA, t.JOB_DEPENDENCY, t.WORKFLOW_STATUS, t.EVENT)
        ]


def test_a_dry_run_sees_dependencies_to_come(bench: Any) -> None:
    """A new job that writes a file that another has read is found, and its dependency is not stored."""
    chain(bench)
    with bench.database.write() as tx:
        sent = {"workflow_id": bench.workflow_id, "name": "new", "command": "n"}
        crud.create(tx, JOBS, {**sent, "output_file_ids": [first(bench, t.FILE)]})
    before = snapshot(bench)
    assert reasons(again(bench, dry_run=True)) == {"a": "it waits for 'new', which runs again", **FOLLOWERS}
    assert snapshot(bench) == before
    again(bench)
    assert bench.statuses() == ["blocked", "blocked", "blocked", "completed", "ready"]


def test_after_a_cancellation(bench: Any) -> None:
    """Jobs that runners held run again; completed jobs stay completed."""
    bench.plan(3, [(1, 0), (2, 1)])
    bench.finish(0)
    bench.start(1)
    with bench.database.write() as tx:
        lifecycle.cancel_workflow(tx, bench.workflow_id)
    assert bench.statuses()[:2] == ["completed", "canceled"]
    assert again(bench).jobs[0].reason == "it was canceled"
    assert bench.statuses() == ["completed", "ready", "blocked"]
    bench.check_counters()


def test_failed_jobs_stay_failed(bench: Any) -> None:
    """So do the jobs that were canceled because of them, with any change of their inputs; a failed job with a changed
    command runs again.
    """
    bench.plan(4, [(1, 0), (2, 1)])
    bench.finish(3)
    bench.finish(0, status="failed")
    assert bench.statuses() == ["failed", "canceled", "canceled", "completed"]
    assert again(bench).jobs == []
    assert bench.statuses() == ["failed", "canceled", "canceled", "completed"]
    update(bench, JOBS, bench.job_id(2), command="better")
    assert again(bench).jobs == []
    update(bench, JOBS, bench.job_id(0), command="better")
    assert [job.cause for job in again(bench).jobs] == ["command", "status", "status"]
    assert bench.statuses() == ["ready", "blocked", "blocked", "completed"]


def test_terminated_and_undecided_jobs_run_again(bench: Any) -> None:
    bench.plan(2)
    bench.finish(0, status="terminated")
    bench.finish(1, status="pending_failed")
    assert [job.reason for job in again(bench).jobs] == ["it was terminated", "its failure waited for a verdict"]
    assert bench.statuses() == ["ready", "ready"]
    assert bench.column("attempt_id") == [1, 1]


def test_jobs_in_the_hands_of_runners(bench: Any) -> None:
    """Active runners keep their jobs without ``force``."""
    bench.plan(2)
    bench.start(0)
    with pytest.raises(RuleError, match=r"2 job\(s\) are held by active compute nodes"):
        again(bench)
    with pytest.raises(RuleError):
        again(bench, dry_run=True)
    done = again(bench, force=True)
    assert {job.status for job in done.jobs} == {"running", "pending"}
    assert bench.statuses() == ["ready", "ready"]


def test_archived_and_unknown_workflows(bench: Any) -> None:
    chain(bench)
    with bench.database.write() as tx:
        status = workflow_status(tx, bench.workflow_id)
        status.is_archived = True
        put_status(tx, status)
    with pytest.raises(RuleError, match="Unarchive it first"):
        again(bench)
    with bench.database.write() as tx, pytest.raises(NotFoundError):
        reinitialize(tx, 999_999, {})


def test_ephemeral_user_data_of_finished_jobs_stays(bench: Any) -> None:
    """Ephemeral user data of jobs that run again is cleared; that of others would not be written again."""
    bench.plan(
        [
            PlannedJob(name="a", command="a", output_user_data=[0]),
            PlannedJob(name="b", command="b", output_user_data=[1]),
        ],
        user_data=[UserDataRecord(workflow_id=0, name=name, is_ephemeral=True) for name in "xy"],
    )
    bench.finish(0, 1)
    x = first(bench, t.USER_DATA)
    update(bench, USER_DATA, x, data=1)
    update(bench, USER_DATA, x + 1, data=2)
    update(bench, JOBS, bench.job_id(1), command="better")
    assert reasons(again(bench)) == {"b": "command changed"}
    with bench.database.read() as tx:
        assert crud.get(tx, USER_DATA, x)["data"] == 1
        assert "data" not in crud.get(tx, USER_DATA, x + 1)


STATUSES = (JobStatus.COMPLETED, JobStatus.FAILED, JobStatus.CANCELED, JobStatus.TERMINATED, JobStatus.UNINITIALIZED)


@st.composite
def workflows(draw: Any) -> Any:
    """Jobs in some order, each with a status, whether its command changed, and earlier jobs that it waits for."""
    count = draw(st.integers(1, 7))
    jobs = [(draw(st.sampled_from(STATUSES)), draw(st.booleans())) for _ in range(count)]
    pairs = [(j, on) for j in range(count) for on in range(j) if draw(st.booleans())]
    grouped = draw(st.booleans()) and count >= 4
    return jobs, [] if grouped else pairs, [([0, 1], [2, 3])] if grouped else []


def model(jobs: list[Any], pairs: list[tuple[int, int]]) -> set[int]:
    """Return the jobs that have run and run again, computed in a simpler way."""
    waits = {job: [on for j, on in pairs if j == job] for job in range(len(jobs))}
    again_: set[int] = set()
    given_up: set[int] = set()
    for job, (status, changed) in enumerate(jobs):  # everything waits for what stands before it
        behind = any(on in again_ for on in waits[job])
        beaten = any((jobs[on][0] is JobStatus.FAILED and on not in again_) or on in given_up for on in waits[job])
        own = status in (JobStatus.TERMINATED, JobStatus.UNINITIALIZED) or (
            changed and status in (JobStatus.COMPLETED, JobStatus.FAILED)
        )
        if status is JobStatus.CANCELED:
            own = not beaten
        if own or behind:
            again_.add(job)
        elif status is JobStatus.CANCELED:
            given_up.add(job)
    return {job for job in again_ if jobs[job][0] is not JobStatus.UNINITIALIZED}


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(workflows())
def test_propagation(sqlite: Any, bench_on: Any, drawn: Any) -> None:
    """The jobs that run again are those of the model, and the counters are right."""
    jobs, pairs, barriers = drawn
    bench = bench_on(sqlite)
    bench.plan(len(jobs), pairs, barriers)
    for job, (status, _) in enumerate(jobs):
        bad = status in (JobStatus.FAILED, JobStatus.CANCELED)
        bench.set_status(job, status, ended_badly=bad)
    for job, (_, changed) in enumerate(jobs):
        if changed:
            with bench.database.write() as tx:
                remember_inputs(tx, [bench.job_id(job)])
                tx.connection.execute(sa.update(t.JOB).where(t.JOB.c.id == bench.job_id(job)).values(command="better"))
    all_pairs = pairs + [(j, on) for upstream, downstream in barriers for j in downstream for on in upstream]
    done = again(bench)
    assert {job.id - bench.first_job for job in done.jobs} == model(jobs, all_pairs)
    bench.check_counters()
