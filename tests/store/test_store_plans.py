"""A plan is stored completely or not at all."""

from typing import Any

import pytest
import sqlalchemy as sa

from torc_framework.client.calls.paging import after_last
from torc_framework.models import records as r
from torc_framework.models.barriers import Barrier
from torc_framework.models.plan import Plan, PlannedAction, PlannedJob
from torc_framework.models.plan_parts import JobColumns, PlanParts, PlanSlice, parts_of
from torc_framework.store.errors import RuleError
from torc_framework.store.record_kinds import workflow_queries
from torc_framework.store.record_kinds.actions import all_actions
from torc_framework.store.record_kinds.files import FILES, USER_DATA
from torc_framework.store.record_kinds.jobs import JOBS
from torc_framework.store.record_kinds.requirements import FAILURE_HANDLERS, RESOURCE_REQUIREMENTS
from torc_framework.store.record_kinds.workflow_queries import RelationPage
from torc_framework.store.record_kinds.workflows import WORKFLOWS
from torc_framework.store.records import crud
from torc_framework.store.records.kind import PageRequest, RecordKind
from torc_framework.store.tables import METADATA
from torc_framework.store.tables import core as t
from torc_framework.store.tables.internal import ID_COUNTER
from torc_framework.store.workflows.plans import create_plan

WORKFLOW = r.WorkflowRecord(name="w", user="u", description="d", metadata='{"a": 1}', use_pending_failed=True)


def a_plan() -> Plan:
    """Return a plan with a record of each kind."""
    return Plan(
        workflow=WORKFLOW,
        jobs=[
            PlannedJob("first", "make ${user_data.output.config}", output_files=[0], output_user_data=[0]),
            PlannedJob(
                "second",
                "use ${user_data.input.config} ${user_data.input.other}",
                invocation_script="with ${user_data.input.config}",
                resource_requirements=0,
                failure_handler=0,
                scheduler=0,
                executor="local",
                input_files=[0],
                input_user_data=[0, 1],
                supports_termination=True,
                cancel_on_blocking_job_failure=False,
            ),
            PlannedJob("third", "true"),
            PlannedJob("fourth", "true"),
        ],
        dependencies=[(1, 0)],
        barriers=[Barrier([0, 1], [2, 3])],
        files=[r.FileRecord(workflow_id=0, name="f", path="/f", st_mtime=1.5)],
        user_data=[
            r.UserDataRecord(workflow_id=0, name="config"),
            r.UserDataRecord(workflow_id=0, name="other", data={"x": [1, None]}, is_ephemeral=True),
        ],
        resource_requirements=[
            r.ResourceRequirementsRecord(workflow_id=0, name="big", num_cpus=4, memory="2g", runtime="PT2H")
        ],
        failure_handlers=[r.FailureHandlerRecord(workflow_id=0, name="h", rules="[]")],
        slurm_schedulers=[r.SlurmSchedulerRecord(workflow_id=0, account="a", nodes=1, walltime="01:00:00")],
        local_schedulers=[r.LocalSchedulerRecord(workflow_id=0)],
        actions=[
            PlannedAction("on_jobs_complete", "run_commands", {"commands": ["x"]}, jobs=[0, 2]),
            PlannedAction("on_workflow_start", "schedule_nodes", {"scheduler_type": "slurm"}, scheduler=0),
        ],
    )


def stored(database: Any, plan: Plan) -> int:
    """Store a plan; return the workflow's id."""
    with database.write() as tx:
        return create_plan(tx, plan).id


def find(database: Any, resource: RecordKind, workflow_id: int) -> list[dict[str, Any]]:
    """Return a workflow's records of one kind."""
    with database.read() as tx:
        mine = [resource.table.c.workflow_id == workflow_id]
        return crud.find(tx, resource, mine, PageRequest(limit=-1), relations=True)[0]


def test_everything_of_a_plan_is_there(database: Any) -> None:
    """Positions are ids, and names of user data in the commands are ids."""
    stored(database, a_plan())
    workflow_id = stored(database, a_plan())
    with database.read() as tx:
        workflow = crud.get(tx, WORKFLOWS, workflow_id)
    assert (workflow["name"], workflow["metadata"], workflow["use_pending_failed"]) == ("w", '{"a": 1}', True)
    first, second, third, _ = find(database, JOBS, workflow_id)
    config, other = find(database, USER_DATA, workflow_id)
    (file,) = find(database, FILES, workflow_id)
    default, big = find(database, RESOURCE_REQUIREMENTS, workflow_id)
    (handler,) = find(database, FAILURE_HANDLERS, workflow_id)
    assert first["command"] == f"make {config['id']}"
    assert second["command"] == f"use {config['id']} {other['id']}"
    assert second["invocation_script"] == f"with {config['id']}"
    assert (default["name"], default["memory"], default["runtime"]) == ("default", "1m", "P0DT1M")
    assert first["resource_requirements_id"] == default["id"]
    assert second["resource_requirements_id"] == big["id"]
    assert second["failure_handler_id"] == handler["id"]
    assert second["executor"] == "local"
    assert (second["supports_termination"], second["cancel_on_blocking_job_failure"]) == (True, False)
    assert first["output_file_ids"] == second["input_file_ids"] == [file["id"]]
    assert second["input_user_data_ids"] == [config["id"], other["id"]]
    assert second["depends_on_job_ids"] == [first["id"]]
    assert third["depends_on_job_ids"] == [first["id"], second["id"]]
    assert "data" not in config
    assert other["data"] == {"x": [1, None]}
    assert file["st_mtime"] == 1.5


def test_actions_know_their_jobs_and_scheduler(database: Any) -> None:
    """An action with a trigger on jobs waits for all of them; schedule_nodes has its scheduler's id."""
    workflow_id = stored(database, a_plan())
    with database.read() as tx:
        complete, start = all_actions(tx, workflow_id)
        scheduler = tx.connection.execute(sa.select(t.SLURM_SCHEDULER.c.id)).scalar()
    assert (complete["required_triggers"], len(complete["job_ids"])) == (2, 2)
    assert (start["required_triggers"], start["action_config"]["scheduler_id"]) == (1, scheduler)


def test_a_barrier_costs_as_many_rows_as_jobs(database: Any) -> None:
    """A thousand jobs that wait for a thousand have two thousand rows, and a million pairs in the list."""
    names = [PlannedJob(f"j{n}", "true") for n in range(2000)]
    workflow_id = stored(
        database, Plan(WORKFLOW, names, barriers=[Barrier(list(range(1000)), list(range(1000, 2000)))])
    )
    with database.read() as tx:
        rows = [
            tx.connection.execute(sa.select(sa.func.count()).select_from(table)).scalar()
            for table in (t.JOB_DEPENDENCY, t.GROUP_MEMBER, t.GROUP_WAITER)
        ]
        pairs, total = workflow_queries.job_dependencies(tx, workflow_id, RelationPage(0, 5))
    assert rows == [0, 1000, 1000]
    assert (len(pairs), total) == (5, 1_000_000)


@pytest.mark.parametrize("size", [1, 2, 3, 5, 100])
def test_pages_of_dependencies_are_the_whole(database: Any, size: int) -> None:
    """With any page size, each pair is listed in its place; pairs of other workflows are not listed."""
    jobs = [PlannedJob(f"j{n}", "true") for n in range(7)]
    barriers = [Barrier([0, 1, 2], [4, 5]), Barrier([2, 3], [5, 6])]
    plan = Plan(WORKFLOW, jobs, dependencies=[(6, 5), (3, 0)], barriers=barriers)
    stored(database, plan)
    workflow_id = stored(database, plan)
    waits_for = {3: [0], 4: [0, 1, 2], 5: [0, 1, 2, 2, 3], 6: [2, 3, 5]}
    wanted = [(f"j{job}", f"j{other}") for job, others in waits_for.items() for other in others]
    found = []
    with database.read() as tx:
        for offset in range(0, len(wanted) + size, size):
            page, total = workflow_queries.job_dependencies(tx, workflow_id, RelationPage(offset, size))
            assert total == len(wanted)
            found += [(pair["job_name"], pair["depends_on_job_name"]) for pair in page]
    assert found == wanted


@pytest.mark.parametrize("size", [1, 2, 3, 5, 100])
@pytest.mark.parametrize("span", [1, 2, 10_000])
def test_pages_after_a_pair_are_the_whole(database: Any, monkeypatch: pytest.MonkeyPatch, size: int, span: int) -> None:
    """Also where two groups have the same pair, and where jobs without pairs are in between."""
    monkeypatch.setattr(workflow_queries, "JOBS_AT_ONCE", span)
    jobs = [PlannedJob(f"j{n}", "true") for n in range(10)]
    barriers = [Barrier([0, 1, 2], [4, 5]), Barrier([2, 3], [5, 9])]
    plan = Plan(WORKFLOW, jobs, dependencies=[(9, 5), (3, 0)], barriers=barriers)
    workflow_id = stored(database, plan)
    stored(database, plan)
    names, found = ("job_id", "depends_on_job_id"), list[tuple[int, ...]]()
    after: tuple[int, ...] = (0, 0, 0)
    with database.read() as tx:
        whole, total = workflow_queries.job_dependencies(tx, workflow_id, RelationPage(0, 100))
        while True:
            page, left = workflow_queries.job_dependencies(tx, workflow_id, RelationPage(0, size, after))
            assert left in (len(page), len(page) + 1)
            keys = [tuple(pair[name] for name in names) for pair in page]
            found += keys
            if left == len(page):
                break
            after = after_last(keys, after)
    assert found == [tuple(pair[name] for name in names) for pair in whole]
    assert len(found) == total


def test_every_number_of_jobs_is_stored(database: Any) -> None:
    """Rows are inserted in blocks; none is missing at their ends."""
    for count in (0, 1, 49, 50, 51, 100, 149):
        plan = Plan(WORKFLOW, [PlannedJob(f"j{n}", "true") for n in range(count)])
        plan.dependencies = [(n, n - 1) for n in range(1, count)]
        workflow_id = stored(database, plan)
        assert [job["name"] for job in find(database, JOBS, workflow_id)] == [job.name for job in plan.jobs]


@pytest.mark.parametrize("size", [1, 2, 3])
def test_slices_of_any_length_store_the_same_plan(database: Any, size: int) -> None:
    """Relations, blockers and written texts of jobs in later slices are those of a plan in one slice."""
    plan = a_plan()
    flat = [number for pair in plan.dependencies for number in pair]
    slices = [PlanSlice(dependencies=flat[start : start + 2]) for start in range(0, len(flat), 2)]
    slices += [
        PlanSlice(jobs=JobColumns.of(plan.jobs[start : start + size])) for start in range(0, len(plan.jobs), size)
    ]
    whole = stored(database, plan)
    with database.write() as tx:
        counts = create_plan(tx, PlanParts(parts_of(plan).head, iter(slices))).counts
    assert (counts["job_count"], counts["dependency_count"], counts["file_count"]) == (4, 1, 1)
    one, other = find(database, JOBS, whole), find(database, JOBS, whole + 1)
    first = one[0]["id"], other[0]["id"]
    for mine, theirs in zip(one, other, strict=True):
        for name in ("depends_on_job_ids", "input_file_ids", "output_file_ids", "input_user_data_ids"):
            assert len(mine.pop(name, None) or ()) == len(theirs.pop(name, None) or ())
        assert mine.pop("id") - first[0] == theirs.pop("id") - first[1]
        for name in ("name", "status", "invocation_script", "executor", "supports_termination"):
            assert bool(mine.get(name)) == bool(theirs.get(name))


def test_order_in_the_plan_does_not_matter(database: Any) -> None:
    """A job may wait for a later one in the plan."""
    plan = Plan(WORKFLOW, [PlannedJob("a", "true"), PlannedJob("b", "true")], dependencies=[(0, 1)])
    first, second = find(database, JOBS, stored(database, plan))
    assert first["depends_on_job_ids"] == [second["id"]]


def _broken(**changes: Any) -> Plan:
    plan = a_plan()
    for name, value in changes.items():
        setattr(plan, name, value)
    return plan


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"workflow": r.WorkflowRecord(name="", user="u")}, "workflow has no name"),
        (
            {"jobs": [PlannedJob("a", "x"), PlannedJob("a", "y")], "actions": [], "barriers": []},
            "1 job name.s. occur more than once",
        ),
        ({"jobs": [PlannedJob("", "x")], "actions": [], "barriers": [], "dependencies": []}, "a job has no name"),
        ({"dependencies": [(1, 9)]}, "dependencies: position 9 is not among the 4"),
        ({"dependencies": [(-1, 0)]}, "dependencies: position -1"),
        ({"dependencies": [(1, 0), (1, 0)]}, "a pair occurs twice"),
        ({"dependencies": [(0, 0)]}, "cycle"),
        ({"dependencies": [(0, 1), (1, 0)]}, "cycle; among its jobs or waiting for it: first, second"),
        ({"barriers": [Barrier([0], [1]), Barrier([1], [0])], "dependencies": []}, "cycle"),
        ({"barriers": [Barrier([0, 0], [1, 2])]}, "lists a job twice"),
        ({"barriers": [Barrier([], [1, 2])]}, "no jobs on one side"),
        ({"barriers": [Barrier([0], [7])]}, "barriers: position 7"),
        ({"files": []}, "input_files: position 0 is not among the 0|output_files: position 0"),
        ({"slurm_schedulers": []}, "scheduler|actions"),
        ({"failure_handlers": []}, "failure_handler: position 0"),
        ({"user_data": [r.UserDataRecord(workflow_id=0, name="other")]}, "user_data: position|names user data"),
        (
            {"resource_requirements": [r.ResourceRequirementsRecord(workflow_id=0, name="x", memory="2 GB")]},
            "'2 GB' is not a memory size",
        ),
        (
            {"resource_requirements": [r.ResourceRequirementsRecord(workflow_id=0, name="x", runtime="2h")]},
            "'2h' is not an ISO 8601 duration",
        ),
        (
            {"resource_requirements": [r.ResourceRequirementsRecord(workflow_id=0, name="x", num_cpus=-1)]},
            "must not be negative",
        ),
        ({"resource_requirements": [r.ResourceRequirementsRecord(workflow_id=0, name="default")]}, "'default'"),
        (
            {"actions": [PlannedAction("on_jobs_ready", "run_commands", {}, jobs=[17])]},
            "actions: position 17",
        ),
    ],
)
def test_a_broken_plan_leaves_nothing_behind(database: Any, changes: dict[str, Any], reason: str) -> None:
    """The message names the error, and no row is left."""
    with pytest.raises(RuleError, match=reason):
        stored(database, _broken(**changes))
    with database.read() as tx:
        for table in set(METADATA.sorted_tables) - {ID_COUNTER}:
            assert tx.connection.execute(sa.select(sa.func.count()).select_from(table)).scalar() == 0


def test_unknown_user_data_in_a_command_is_an_error(database: Any) -> None:
    """A command that names unknown user data is refused."""
    plan = Plan(WORKFLOW, [PlannedJob("a", "cat ${user_data.input.nowhere}")])
    with pytest.raises(RuleError, match="nowhere"):
        stored(database, plan)
