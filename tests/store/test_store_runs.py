"""The runs of a workflow: begin, initialize, reset, cancel, completion."""

from typing import Any

import pytest
import sqlalchemy as sa

from torc_framework.models.plan import PlannedJob
from torc_framework.models.records import FileRecord, UserDataRecord, WorkflowRecord, WorkflowStatusRecord
from torc_framework.models.statuses import JobStatus
from torc_framework.store.errors import NotFoundError, RuleError
from torc_framework.store.record_kinds import workflow_queries
from torc_framework.store.record_kinds.files import FILES, USER_DATA
from torc_framework.store.record_kinds.jobs import JOBS, create_jobs
from torc_framework.store.record_kinds.nodes import SCHEDULED_COMPUTE_NODES
from torc_framework.store.records import crud
from torc_framework.store.records.kind import PageRequest
from torc_framework.store.runs import lifecycle
from torc_framework.store.runs.workflow_status import (
    WorkflowCompletion,
    is_uninitialized,
    put_status,
    workflow_completion,
)
from torc_framework.store.tables import core as t
from torc_framework.store.workflows.plans import create_workflow

DIAMOND = [(1, 0), (2, 0), (3, 1), (3, 2)]


# --- runs ------------------------------------------------------------------------------------------


def test_a_run_makes_jobs_ready_or_blocked(bench: Any) -> None:
    """The first run is number 1; jobs without blockers are ready."""
    bench.plan(4, DIAMOND, begin=False)
    assert (bench.run_id(), set(bench.statuses())) == (0, {"uninitialized"})
    assert bench.do(is_uninitialized)
    assert bench.begin() == 1
    assert bench.statuses() == ["ready", "blocked", "blocked", "blocked"]
    assert not bench.do(is_uninitialized)


def test_a_run_starts_over(bench: Any) -> None:
    """All jobs run again from attempt 1; results of earlier runs are kept."""
    bench.plan(4, DIAMOND)
    bench.start(0)
    bench.retry(0, 3)
    bench.finish(0, status="failed")
    assert bench.statuses() == ["failed", "canceled", "canceled", "canceled"]
    assert bench.begin() == 2
    assert bench.statuses() == ["ready", "blocked", "blocked", "blocked"]
    assert bench.column("attempt_id") == [1] * 4
    assert bench.column("result_id") == [None] * 4
    assert len(bench.results()) == 2
    bench.check_counters()
    bench.finish(0, 1, 2, 3)
    assert set(bench.statuses()) == {"completed"}
    assert [result["run_id"] for result in bench.results()] == [1, 1, 2, 2, 2, 2]


def test_a_run_clears_the_cancel(bench: Any) -> None:
    """A canceled workflow can be run again."""
    bench.plan(1)
    bench.do(lifecycle.cancel_workflow)
    bench.begin()
    assert len(bench.claim()) == 1


def test_an_archived_workflow_does_not_run(bench: Any) -> None:
    """Its archived flag has to be cleared first."""
    bench.plan(1, begin=False)
    bench.do(
        lambda tx, wf: put_status(tx, WorkflowStatusRecord(id=wf, run_id=3, is_canceled=False, is_archived=True)),
    )
    with pytest.raises(RuleError, match="archived"):
        bench.begin()
    assert bench.run_id() == 3


def test_a_run_does_not_take_jobs_from_active_runners(bench: Any) -> None:
    """Unless ``force`` is given; it takes jobs of runners that have ended."""
    bench.plan(1)
    bench.start(0)
    with pytest.raises(RuleError, match=r"1 job\(s\) are held by active compute nodes"):
        bench.begin()
    assert (bench.run_id(), bench.statuses()) == (1, ["running"])
    assert bench.begin(force=True) == 2
    bench.claim()
    with bench.database.write() as tx:
        tx.connection.execute(sa.update(t.COMPUTE_NODE).values(is_active=False))
    assert (bench.begin(), bench.statuses()) == (3, ["ready"])


def test_file_times_are_stored_with_the_run(bench: Any) -> None:
    """By file id, as the client sends them; files of other workflows do not change."""
    bench.plan(1, files=[FileRecord(workflow_id=0, name="f", path="/f")])
    with bench.database.read() as tx:
        (file,) = tx.connection.execute(sa.select(t.FILE.c.id)).scalars()
    bench.begin(file_mtimes={file: 7.5})
    bench.plan(1, begin=False)
    bench.begin(file_mtimes={file: 9.5})
    with bench.database.read() as tx:
        assert crud.get(tx, FILES, file)["st_mtime"] == 7.5


def test_ephemeral_user_data_is_cleared(bench: Any) -> None:
    """At each run; other user data keeps its values."""
    data = [UserDataRecord(workflow_id=0, name=name, data=1, is_ephemeral=name == "e") for name in ("e", "k")]
    bench.plan(1, user_data=data)
    with bench.database.read() as tx:
        rows = crud.find(tx, USER_DATA, [], PageRequest())[0]
    assert [row.get("data") for row in rows] == [None, 1]


def test_unknown_workflows_do_not_run(bench: Any) -> None:
    """Every function refuses an unknown workflow."""
    bench.workflow_id = 12
    for function in (
        lifecycle.begin_run,
        lifecycle.cancel_workflow,
        lifecycle.initialize_jobs,
        lifecycle.reset_status,
        lifecycle.reset_job_status,
    ):
        with pytest.raises(NotFoundError, match="Workflow not found with ID: 12"):
            bench.do(function)


# --- initialize ------------------------------------------------------------------------------------


def test_initialize_blocks_what_follows_a_job_that_has_to_run(bench: Any) -> None:
    """Without ``only_uninitialized``, also completed jobs become blocked."""
    bench.plan(4, [(1, 0), (2, 1)])
    bench.finish(0, 1, 2, 3)
    bench.set_status(1, JobStatus.UNINITIALIZED)
    bench.do(lifecycle.initialize_jobs)
    assert bench.statuses() == ["completed", "ready", "blocked", "completed"]
    bench.check_counters()


def test_initialize_of_uninitialized_jobs_resets_what_follows(bench: Any) -> None:
    """With ``only_uninitialized``, jobs downstream of uninitialized ones run again; others keep their status."""
    bench.plan(4, [(1, 0), (2, 1)])
    bench.finish(0, 1, 2, 3)
    bench.set_status(1, JobStatus.UNINITIALIZED)
    assert bench.begin(only_uninitialized=True) == 2
    assert bench.statuses() == ["completed", "ready", "blocked", "completed"]
    bench.finish(1, 2)
    assert set(bench.statuses()) == {"completed"}


def test_initialize_runs_stopped_jobs_again(bench: Any) -> None:
    """Terminated jobs and those in ``pending_failed`` are ready, their dependents blocked."""
    bench.plan(4, [(2, 0), (3, 1)])
    bench.finish(0, status="terminated", code=0)
    bench.finish(2)
    bench.finish(1, status="pending_failed")
    bench.do(lifecycle.initialize_jobs)
    assert bench.statuses() == ["ready", "ready", "blocked", "blocked"]
    bench.check_counters()


def test_initialize_leaves_running_jobs_alone(bench: Any) -> None:
    """A job that a runner holds becomes neither ready nor blocked."""
    bench.plan(3, [(2, 0), (2, 1)])
    bench.start(0)
    for only_uninitialized in (False, True):
        bench.do(lifecycle.initialize_jobs, only_uninitialized=only_uninitialized)
        assert bench.statuses() == ["running", "pending", "blocked"]


def test_a_failed_dependency_counts_as_over_at_initialize(bench: Any) -> None:
    """A job that was reset behind a failed one becomes ready."""
    bench.plan(2, [(1, 0)])
    bench.finish(0, status="failed")
    bench.set_status(1, JobStatus.UNINITIALIZED)
    bench.do(lifecycle.initialize_jobs, only_uninitialized=True)
    assert bench.statuses() == ["failed", "ready"]


def test_disabled_jobs_stay_out(bench: Any) -> None:
    """They count as finished for the workflow, and keep their dependents blocked."""
    bench.plan(3, [(1, 0)], begin=False)
    with bench.database.write() as tx:
        crud.update(tx, JOBS, bench.job_id(0), {"status": "disabled"})
    bench.begin()
    assert bench.statuses() == ["disabled", "blocked", "ready"]


def api_jobs(bench: Any, *jobs: dict[str, Any]) -> list[int]:
    """Create jobs one by one, in a workflow with two files and one user data record."""
    with bench.database.write() as tx:
        bench.workflow_id = create_workflow(tx, WorkflowRecord(name="w", user="u"))
        for name in ("f", "g"):
            crud.create(tx, FILES, {"workflow_id": bench.workflow_id, "name": name, "path": name})
        crud.create(tx, USER_DATA, {"workflow_id": bench.workflow_id, "name": "u"})
        sent = [
            {"workflow_id": bench.workflow_id, "name": f"j{n}", "command": "x", **job} for n, job in enumerate(jobs)
        ]
        made = [job["id"] for job in create_jobs(tx, sent)]
    bench.first_job = made[0]
    bench.nodes = [bench.node()]
    return made


def test_files_and_user_data_imply_dependencies(bench: Any) -> None:
    """A consumer waits for each producer, in any order of creation; an explicit dependency is not stored twice."""
    first, *_ = api_jobs(
        bench,
        {"output_file_ids": [1]},
        {"input_file_ids": [1], "output_user_data_ids": [1]},
        {"input_user_data_ids": [1], "input_file_ids": [1, 2]},
        {"output_file_ids": [2]},
        {"input_file_ids": [1, 2], "output_file_ids": [2]},
    )
    assert set(bench.statuses()) == {"uninitialized"}
    bench.begin()
    assert bench.statuses() == ["ready", "blocked", "blocked", "ready", "blocked"]
    with bench.database.read() as tx:
        jobs = [crud.get(tx, JOBS, first + n) for n in range(5)]
    waits = [[other - first for other in job.get("depends_on_job_ids", [])] for job in jobs]
    assert waits == [[], [0], [0, 1, 3, 4], [], [0, 3]]
    bench.begin()
    bench.check_counters()


def test_a_job_that_joins_a_plan_finds_its_producers(bench: Any) -> None:
    """A job that is created later, with files of a stored plan, gets dependencies in both directions."""
    files = [FileRecord(workflow_id=0, name=name, path=name) for name in ("in", "out")]
    bench.plan([PlannedJob("a", "x", output_files=[0]), PlannedJob("c", "x", input_files=[1])], files=files)
    with bench.database.write() as tx:
        job = {"workflow_id": bench.workflow_id, "name": "b", "command": "x"}
        create_jobs(tx, [{**job, "input_file_ids": [1], "output_file_ids": [2]}])
    bench.begin()
    assert bench.statuses() == ["ready", "blocked", "blocked"]
    bench.finish(0, 2, 1)
    assert set(bench.statuses()) == {"completed"}


def test_a_plans_groups_are_not_said_again(bench: Any) -> None:
    """The files of a plan add no pairs for dependencies that a group has."""
    files = [FileRecord(workflow_id=0, name=f"f{n}", path="x") for n in range(3)]
    jobs = [PlannedJob(f"p{n}", "x", output_files=[n]) for n in range(3)]
    jobs += [PlannedJob(f"c{n}", "x", input_files=[0, 1, 2]) for n in range(3)]
    bench.plan(jobs, barriers=[([0, 1, 2], [3, 4, 5])], files=files)
    with bench.database.read() as tx:
        assert tx.connection.execute(sa.select(sa.func.count()).select_from(t.JOB_DEPENDENCY)).scalar() == 0


def test_a_cycle_by_files_is_refused(bench: Any) -> None:
    """Initialize refuses two jobs that wait for each other, and changes nothing."""
    api_jobs(bench, {"input_file_ids": [1], "output_file_ids": [2]}, {"input_file_ids": [2], "output_file_ids": [1]})
    with pytest.raises(RuleError, match="cycle; among its jobs or waiting for it: j0, j1"):
        bench.begin()
    assert (bench.run_id(), set(bench.statuses())) == (0, {"uninitialized"})


# --- reset and cancel ------------------------------------------------------------------------------


def test_reset_of_failed_jobs_takes_what_follows(bench: Any) -> None:
    """All jobs downstream are reset in any status; other completed jobs are not."""
    bench.plan(5, [(1, 0), (2, 1), (3, 1)])
    bench.finish(4)
    bench.finish(0, status="failed")
    assert bench.do(lifecycle.reset_job_status, failed_only=True) == 4
    assert bench.statuses() == ["uninitialized"] * 4 + ["completed"]
    bench.check_counters()
    (event,) = bench.events("user_action")
    assert event["action"] == "reset_job_status"


def test_reset_of_all_jobs_counts_attempts_anew(bench: Any) -> None:
    """Used retries are available again; results are kept."""
    bench.plan(2)
    bench.start(0)
    bench.retry(0, 5)
    assert bench.do(lifecycle.reset_job_status) == 2
    assert (bench.statuses(), bench.column("attempt_id")) == (["uninitialized"] * 2, [1, 1])
    assert len(bench.results()) == 1


def test_a_reset_within_a_run_replaces_the_result(bench: Any) -> None:
    """The attempt runs again with its number, and its new result replaces the old one."""
    bench.plan(1)
    bench.finish(0, status="failed")
    bench.do(lifecycle.reset_job_status)
    bench.do(lifecycle.initialize_jobs)
    bench.finish(0)
    assert bench.statuses() == ["completed"]
    assert [result["status"] for result in bench.results()] == ["completed"]


def test_reset_of_the_status_needs_rest(bench: Any) -> None:
    """It is refused while jobs or allocations are under way, unless ``force`` is given."""
    bench.plan(1)
    bench.claim()
    with pytest.raises(RuleError, match=r"1 job\(s\) are pending or running"):
        bench.do(lifecycle.reset_status)
    bench.do(lifecycle.cancel_workflow)
    with bench.database.write() as tx:
        node = {"scheduler_id": 1, "scheduler_config_id": 1, "scheduler_type": "slurm", "status": "pending"}
        crud.create(tx, SCHEDULED_COMPUTE_NODES, {"workflow_id": bench.workflow_id, **node})
    with pytest.raises(RuleError, match=r"1 scheduled compute node\(s\)"):
        bench.do(lifecycle.reset_status)
    bench.do(lifecycle.reset_status, force=True)
    assert not bench.do(workflow_completion).is_canceled


def test_cancel_ends_what_runners_hold(bench: Any) -> None:
    """Pending and running jobs are canceled, ready and blocked ones keep their status; all can run again."""
    bench.plan(4, [(3, 0)])
    bench.claim(2)
    bench.exchange(started=[bench.started(0)])
    bench.do(lifecycle.cancel_workflow)
    assert bench.statuses() == ["canceled", "canceled", "ready", "blocked"]
    assert bench.do(workflow_completion) == WorkflowCompletion(True, True, False)
    assert bench.events("workflow_canceled")
    bench.check_counters()
    bench.begin()
    bench.finish(0, 1, 2, 3)
    assert set(bench.statuses()) == {"completed"}


@pytest.mark.parametrize("unfinished", sorted(set(JobStatus) - {s for s in JobStatus if s in (5, 6, 7, 8, 9)}))
def test_an_unfinished_job_keeps_the_workflow_open(bench: Any, unfinished: JobStatus) -> None:
    """A workflow is complete when no job is unfinished."""
    bench.plan(2, begin=False)
    bench.set_status(0, JobStatus.COMPLETED)
    bench.set_status(1, unfinished)
    assert not bench.do(workflow_completion).is_complete
    bench.set_status(1, JobStatus.TERMINATED)
    assert bench.do(workflow_completion).is_complete


def test_an_empty_workflow_is_complete(bench: Any) -> None:
    """A workflow without jobs is complete."""
    bench.plan(0)
    assert bench.do(workflow_completion).is_complete
    assert bench.exchange(slots=1).is_complete


# --- what is needed --------------------------------------------------------------------------------


def test_inputs_that_nobody_makes_must_exist(bench: Any) -> None:
    """So must the outputs of completed jobs."""
    files = [FileRecord(workflow_id=0, name=f"f{n}", path="x") for n in range(4)]
    data = [UserDataRecord(workflow_id=0, name=f"u{n}", data=1 if n == 3 else None) for n in range(4)]
    jobs = [
        PlannedJob("a", "x", input_files=[0], output_files=[1], input_user_data=[0, 3], output_user_data=[1]),
        PlannedJob("b", "x", input_files=[1], output_files=[2], input_user_data=[1], output_user_data=[2]),
    ]
    bench.plan(jobs, [(1, 0)], files=files, user_data=data)
    assert bench.do(workflow_queries.required_existing_files) == [1]
    assert bench.do(workflow_queries.missing_user_data) == [1]
    bench.finish(0)
    assert bench.do(workflow_queries.required_existing_files) == [1, 2]
    assert bench.do(workflow_queries.missing_user_data) == [1, 2]
