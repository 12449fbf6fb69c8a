"""Rescheduling: jobs of a stored workflow that are still to run get schedulers by their present requirements."""

from collections.abc import Iterator

import pytest
from sample_records import register

from torc_framework.client import TorcClient
from torc_framework.errors import ApiError, UserError
from torc_framework.hpc.rescheduling import Rescheduler
from torc_framework.hpc.scheduler_planning import PlanOptions
from torc_framework.models.hpc_profiles import HpcProfile, Partition
from torc_framework.models.plan import Plan, PlannedAction, PlannedJob
from torc_framework.models.records import (
    JobRecord,
    ResourceRequirementsRecord,
    ResultRecord,
    SlurmSchedulerRecord,
    WorkflowRecord,
)

CLUSTER = HpcProfile(
    "cluster", partitions=(Partition("day", 4, 4000, 86_400), Partition("big", 8, 64_000, 2 * 86_400, shared=True))
)
OPTIONS = PlanOptions("new", "batch")


@pytest.fixture
def api(server: str) -> Iterator[TorcClient]:
    with TorcClient(server) as client:
        yield client


def stored(api: TorcClient, *, initialize: bool = True, **scheduler: object) -> int:
    """``a`` first, then ``b`` and ``c`` of the same kind, then ``d``; all were to run on one scheduler."""
    values = {"name": "old", "account": "old", "nodes": 1, "walltime": "01:00:00", "partition": "day", **scheduler}
    kinds = [
        ResourceRequirementsRecord(workflow_id=0, name="small", memory="1g", runtime="PT1H"),
        ResourceRequirementsRecord(workflow_id=0, name="other", memory="2g", runtime="PT1H"),
    ]
    plan = Plan(
        WorkflowRecord(name="w", user="ann"),
        [PlannedJob(name, "true", resource_requirements=int(name == "d"), scheduler=0) for name in "abcd"],
        dependencies=[(1, 0), (2, 0), (3, 1), (3, 2)],
        resource_requirements=kinds,
        slurm_schedulers=[SlurmSchedulerRecord(workflow_id=0, **values)],  # type: ignore[arg-type]  # values of several types
        actions=[PlannedAction("on_workflow_start", "schedule_nodes", {"scheduler_type": "batch"}, None, 0)],
    )
    return api.create_from_plan(plan, initialize=initialize).id


def complete(api: TorcClient, workflow_id: int, name: str) -> None:
    (job,) = [each for each in api.find(JobRecord, workflow_id=workflow_id) if each.name == name]
    node = register(api, workflow_id)
    result = ResultRecord(
        job_id=job.id or 0,
        workflow_id=workflow_id,
        run_id=1,
        compute_node_id=node,
        return_code=0,
        exec_time_minutes=0.1,
        completion_time="2026-01-01T00:00:00Z",
        status="completed",
    )
    api.complete_job(job.id or 0, "completed", 1, result)


def schedulers(api: TorcClient, workflow_id: int) -> dict[str, str | None]:
    names = {each.id: each.name for each in api.find(SlurmSchedulerRecord, workflow_id=workflow_id)}
    return {job.name: names[job.scheduler_id] for job in api.find(JobRecord, workflow_id=workflow_id)}


def test_remaining_jobs_are_staged_again(api: TorcClient) -> None:
    workflow_id = stored(api)
    complete(api, workflow_id, "a")
    rescheduler = Rescheduler(api, workflow_id)
    done = rescheduler.carry_out(rescheduler.plan(CLUSTER, OPTIONS))
    assert schedulers(api, workflow_id) == {
        "a": "old",
        "b": "small_scheduler_r1",
        "c": "small_scheduler_r1",
        "d": "other_deferred_scheduler_r1",
    }
    assert [(each.name, each.scheduler_id, each.allocations, each.job_count) for each in done.at_once] == [
        ("small_scheduler_r1", done.scheduler_ids[0], 1, 2)
    ]
    actions = api.actions(workflow_id)
    assert [(each.trigger_type, each.executed, each.is_recovery) for each in actions] == [
        ("on_workflow_start", True, False),
        ("on_jobs_ready", False, True),
    ]
    assert done.retired_action_ids == [actions[0].id]


def test_nodes_for_jobs_that_can_start_may_be_left_to_an_action(api: TorcClient) -> None:
    workflow_id = stored(api)
    rescheduler = Rescheduler(api, workflow_id)
    rescheduler.carry_out(rescheduler.plan(CLUSTER, OPTIONS), at_once=True)
    (due,) = api.pending_actions(workflow_id)
    assert (due.trigger_type, due.is_recovery) == ("on_workflow_start", True)


def test_a_plan_changes_nothing(api: TorcClient) -> None:
    workflow_id = stored(api)
    before = api.actions(workflow_id)
    planned = Rescheduler(api, workflow_id).plan(CLUSTER, OPTIONS)
    assert [each.name for each in planned.planned.schedulers] == [
        "small_scheduler_r1",
        "small_deferred_scheduler_r1",
        "other_deferred_scheduler_r1",
    ]
    assert api.actions(workflow_id) == before
    assert set(schedulers(api, workflow_id).values()) == {"old"}


def test_names_are_new_each_time(api: TorcClient) -> None:
    workflow_id = stored(api)
    for suffix in ("_r1", "_r1_2", "_r1_3"):
        rescheduler = Rescheduler(api, workflow_id)
        rescheduler.carry_out(rescheduler.plan(CLUSTER, OPTIONS))
        assert schedulers(api, workflow_id)["a"] == f"small_scheduler{suffix}"


def test_fields_of_the_schedulers_are_kept(api: TorcClient) -> None:
    """Except for the planned fields."""
    workflow_id = stored(api, qos="high", extra="--constraint=fast --cpus-per-task=9", partition="big")
    rescheduler = Rescheduler(api, workflow_id)
    assert rescheduler.account() == "old"
    (first, *_) = rescheduler.plan(CLUSTER, OPTIONS).planned.schedulers
    assert (first.qos, first.partition, first.account) == ("high", "big", "new")
    assert first.extra == "--constraint=fast --cpus-per-task=1"


def test_a_workflow_without_schedulers_may_name_an_account(api: TorcClient) -> None:
    plan = Plan(WorkflowRecord(name="w", user="ann", slurm_defaults='{"account": "house"}'), [PlannedJob("a", "true")])
    assert Rescheduler(api, api.create_from_plan(plan).id).account() == "house"
    plan.workflow.slurm_defaults = None
    assert Rescheduler(api, api.create_from_plan(plan).id).account() is None


def test_jobs_that_have_grown_leave_their_partition(api: TorcClient) -> None:
    workflow_id = stored(api)
    small = next(r for r in api.find(ResourceRequirementsRecord, workflow_id=workflow_id) if r.name == "small")
    api.update(ResourceRequirementsRecord, small.id or 0, {"memory": "6g"})
    planned = Rescheduler(api, workflow_id).plan(CLUSTER, OPTIONS).planned
    assert [each.partition for each in planned.schedulers] == ["big", "big", "day"]


def test_jobs_that_are_over_are_planned_for_on_demand(api: TorcClient) -> None:
    workflow_id = stored(api)
    for name in "abcd":
        complete(api, workflow_id, name)
    rescheduler = Rescheduler(api, workflow_id)
    assert not rescheduler.has_waiting
    (job, *_) = api.find(JobRecord, workflow_id=workflow_id)
    again = Rescheduler(api, workflow_id, {job.id or 0})
    assert again.has_waiting
    assert len(again.plan(CLUSTER, OPTIONS).planned.schedulers) == 1
    with pytest.raises(UserError, match="has no job 987654"):
        Rescheduler(api, workflow_id, {987654})


def test_a_run_that_began_meanwhile_is_noticed(api: TorcClient) -> None:
    workflow_id = stored(api)
    rescheduler = Rescheduler(api, workflow_id)
    planned = rescheduler.plan(CLUSTER, OPTIONS)
    api.begin_run(workflow_id)
    with pytest.raises(ApiError, match="is in run 2"):
        rescheduler.carry_out(planned)
    assert set(schedulers(api, workflow_id).values()) == {"old"}


def test_an_uninitialized_workflow_is_recognised(api: TorcClient) -> None:
    assert Rescheduler(api, stored(api, initialize=False)).has_uninitialized
