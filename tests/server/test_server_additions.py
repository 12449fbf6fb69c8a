"""Tests of additions: user data and jobs are added to a stored workflow, all of them or none."""

from typing import Any

import pytest

from torc_framework.client import TorcClient
from torc_framework.errors import ApiError
from torc_framework.models.plan import AddedJob, Addition, Plan, PlannedJob
from torc_framework.models.records import JobRecord, UserDataRecord, WorkflowRecord


@pytest.fixture
def api(server: str) -> Any:
    with TorcClient(server) as client:
        yield client


def stored(api: TorcClient, *names: str) -> int:
    plan = Plan(WorkflowRecord(name="w", user="u"), [PlannedJob(name, "true") for name in names])
    return api.create_from_plan(plan).id


def data(*names: str) -> list[UserDataRecord]:
    return [UserDataRecord(workflow_id=0, name=name, data={"of": name}) for name in names]


def test_jobs_join_with_their_data_and_wait(api: TorcClient) -> None:
    """They read and write what was added with them, and wait for jobs that were there before."""
    workflow = stored(api, "a", "b")
    before = api.job_ids(workflow)
    jobs = [AddedJob(f"j{n}", "true", input_user_data=[n], output_user_data=[2]) for n in range(2)]
    added = api.add(workflow, Addition(jobs, data("x", "y", "z"), before))
    found = api.find(JobRecord, workflow_id=workflow, include_relationships=True)[2:]
    assert [job.id for job in found] == added.job_ids
    assert [job.depends_on_job_ids for job in found] == [before, before]
    assert [job.input_user_data_ids for job in found] == [[record] for record in added.user_data_ids[:2]]
    assert [job.output_user_data_ids for job in found] == [added.user_data_ids[2:]] * 2
    assert [record.data for record in api.find(UserDataRecord, workflow_id=workflow)] == [
        {"of": name} for name in "xyz"
    ]
    assert api.job_counts(workflow).counts == {"uninitialized": 4}
    api.initialize_jobs(workflow)
    assert api.job_counts(workflow).counts == {"ready": 2, "blocked": 2}


@pytest.mark.parametrize(
    ("addition", "status", "reason"),
    [
        (Addition([AddedJob("j", "true", input_user_data=[1])], data("x")), 422, "user data number 1"),
        (Addition([AddedJob("j", "true", output_user_data=[-1])], data("x")), 422, "user data number -1"),
        (Addition([], data("x", "x")), 422, "each name may be used once"),
        (Addition([AddedJob("j", "true")], data("x", "taken")), 409, "exists already"),
        (Addition([AddedJob("j", "true")], data("x"), [10**9]), 422, "depends_on_job_ids"),
        (Addition([AddedJob("j", "true", resource_requirements_id=10**9)], data("x")), 422, "resource_requirements_id"),
    ],
)
def test_a_wrong_addition_changes_nothing(api: TorcClient, addition: Addition, status: int, reason: str) -> None:
    workflow = stored(api, "a")
    api.create(UserDataRecord(workflow_id=workflow, name="taken"))
    with pytest.raises(ApiError, match=reason) as caught:
        api.add(workflow, addition)
    assert caught.value.status == status
    assert [job.name for job in api.find(JobRecord, workflow_id=workflow)] == ["a"]
    assert [record.name for record in api.find(UserDataRecord, workflow_id=workflow)] == ["taken"]


def test_an_unknown_workflow_is_said(api: TorcClient) -> None:
    with pytest.raises(ApiError, match="Workflow not found") as caught:
        api.add(10**9, Addition([AddedJob("j", "true")]))
    assert caught.value.status == 404


def test_more_jobs_than_one_batch_join_at_once(api: TorcClient) -> None:
    workflow = stored(api, "a")
    added = api.add(workflow, Addition([AddedJob(f"j{n}", "true") for n in range(10_001)], [], api.job_ids(workflow)))
    assert len(added.job_ids) == 10_001
    assert api.job_counts(workflow).total == 10_002
