"""Tests of the typed client against a real server."""

import threading
from typing import Any

import pytest
from sample_records import register

from torc_framework.client import TorcClient
from torc_framework.client.calls import paging
from torc_framework.errors import ApiError
from torc_framework.models.exchange import EndedReport, ExchangeRequest, StartedReport
from torc_framework.models.plan import Plan, PlannedJob
from torc_framework.models.plan_parts import SLICE_JOBS
from torc_framework.models.records import (
    EventRecord,
    FailureHandlerRecord,
    FileRecord,
    JobRecord,
    LocalSchedulerRecord,
    ResourceRequirementsRecord,
    ResultRecord,
    SlurmSchedulerRecord,
    UserDataRecord,
    WorkflowActionRecord,
    WorkflowRecord,
)


def stored(api: TorcClient, count: int, *, initialize: bool = False) -> int:
    """Store a workflow of independent jobs; return its id."""
    plan = Plan(WorkflowRecord(name="w", user="u"), [PlannedJob(f"j{n}", "true") for n in range(count)])
    return api.create_from_plan(plan, initialize=initialize).id


def test_every_kind_of_record_comes_back_as_it_was_stored(api: TorcClient, workflow: int) -> None:
    """Create, get, list and delete, with an id and the server's defaults."""
    records: list[Any] = [
        JobRecord(workflow_id=workflow, name="a", command="true"),
        FileRecord(workflow_id=workflow, name="f", path="p", st_mtime=1.5),
        UserDataRecord(workflow_id=workflow, name="d", data={"x": [1, None]}),
        ResourceRequirementsRecord(workflow_id=workflow, name="big", num_cpus=4, memory="2g"),
        FailureHandlerRecord(workflow_id=workflow, name="h", rules='[{"exit_codes": [1]}]'),
        SlurmSchedulerRecord(workflow_id=workflow, name="s", account="acc", nodes=1, walltime="01:00:00"),
        LocalSchedulerRecord(workflow_id=workflow, name="l", num_cpus=2),
        EventRecord(workflow_id=workflow, data={"event_type": "mine"}),
    ]
    for record in records:
        kind = type(record)
        created = api.create(record)
        assert created.id is not None
        assert api.get(kind, created.id) == created
        assert created.id in [item.id for item in api.find(kind, workflow_id=workflow)]
        assert api.delete(kind, created.id).id == created.id
        with pytest.raises(ApiError, match=f"not found with ID: {created.id}") as caught:
            api.get(kind, created.id)
        assert caught.value.status == 404


def test_actions_hang_on_their_workflow(api: TorcClient, workflow: int) -> None:
    """They are created and listed below it."""
    action = WorkflowActionRecord(
        workflow_id=workflow,
        trigger_type="on_workflow_start",
        action_type="run_commands",
        action_config={"commands": ["true"]},
    )
    created = api.create(action)
    assert [item.id for item in api.actions(workflow)] == [created.id]


def test_a_large_plan_is_sent_in_parts(api: TorcClient) -> None:
    """All jobs and dependencies arrive, in the order of the plan."""
    jobs = [PlannedJob(f"job_{n}", f"true {n}") for n in range(SLICE_JOBS + 5)]
    pairs = [(n, n - 1) for n in range(1, len(jobs))]
    plan = Plan(WorkflowRecord(name="large", user="u"), jobs, dependencies=pairs)
    receipt = api.create_from_plan(plan, initialize=True)
    assert (receipt.job_count, receipt.dependency_count, receipt.run_id) == (len(jobs), len(pairs), 1)
    found = api.find(JobRecord, workflow_id=receipt.id)
    assert [(job.name, job.command) for job in found] == [(job.name, job.command) for job in jobs]
    ids = [job.id for job in found]
    waits = [(pair.job_id, pair.depends_on_job_id) for pair in api.job_dependencies(receipt.id)]
    assert waits == [*zip(ids[1:], ids, strict=False)]


def test_lists_are_read_page_by_page(api: TorcClient, monkeypatch: pytest.MonkeyPatch) -> None:
    """In order, once each, as many as wanted."""
    monkeypatch.setattr(paging, "PAGE_SIZE", 3)
    workflow = stored(api, 10)
    names = [f"j{number}" for number in range(10)]
    assert [job.name for job in api.iterate(JobRecord, workflow_id=workflow)] == names
    assert [job.name for job in api.find(JobRecord, workflow_id=workflow, limit=4, offset=5)] == names[5:9]
    assert api.find(JobRecord, workflow_id=workflow, limit=0) == []
    page = api.page(JobRecord, workflow_id=workflow, limit=3)
    assert (page.count, page.total_count, page.has_more) == (3, 10, True)
    assert api.job_ids(workflow) == [job.id for job in api.iterate(JobRecord, workflow_id=workflow)]


def test_an_update_changes_only_what_is_named(api: TorcClient, workflow: int) -> None:
    """Everything else stays."""
    changed = api.update(WorkflowRecord, workflow, {"description": "new"})
    assert (changed.name, changed.description) == ("w", "new")


def test_an_attempt_from_claim_to_result(api: TorcClient) -> None:
    """The calls of a runner: claim, start, end, check for completion."""
    workflow = stored(api, 1, initialize=True)
    node = register(api, workflow)
    reply = api.exchange(workflow, ExchangeRequest(node, run_id=1, seq=1, slots=5))
    (job,) = reply.jobs
    assert (job.name, job.command, job.attempt_id) == ("j0", "true", 1)
    ended = EndedReport(job.id, 1, "completed", return_code=0, exec_time_s=6.0, ended_at=2.0, exit_code=0)
    report = ExchangeRequest(node, 1, 2, started=[StartedReport(job.id, 1, 1.0)], ended=[ended], want_counts=True)
    reply = api.exchange(workflow, report)
    assert reply.is_complete
    assert reply.counts == {"completed": 1}
    assert api.is_complete(workflow).is_complete
    (result,) = api.find(ResultRecord, workflow_id=workflow)
    assert (result.status, result.return_code, result.exec_time_minutes) == ("completed", 0, 0.1)


def test_runs_are_begun_reset_and_canceled(api: TorcClient) -> None:
    """The states of a workflow as a whole."""
    workflow = stored(api, 2)
    assert api.is_uninitialized(workflow)
    assert api.begin_run(workflow).run_id == 1
    assert api.job_counts(workflow).counts == {"ready": 2}
    api.cancel(workflow)
    assert api.workflow_status(workflow).is_canceled
    api.reset_status(workflow)
    assert not api.workflow_status(workflow).is_canceled
    assert api.reset_job_status(workflow) == 2
    assert api.is_uninitialized(workflow)


def test_a_refusal_carries_status_and_reason(api: TorcClient) -> None:
    """And nothing of it is swallowed."""
    with pytest.raises(ApiError) as caught:
        api.create(JobRecord(workflow_id=999_999, name="a", command="true"))
    assert caught.value.status == 404
    assert "999999" in str(caught.value)
    assert isinstance(caught.value.body, dict)


def test_a_client_may_be_shared_by_threads(api: TorcClient, workflow: int) -> None:
    """Each thread gets the response to its own request."""
    names: list[str] = []

    def work(number: int) -> None:
        for _ in range(5):
            record = api.create(FileRecord(workflow_id=workflow, name=f"{number}-{_}", path=f"{number}"))
            assert record.path == str(number)
            names.append(record.name)

    threads = [threading.Thread(target=work, args=(number,)) for number in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert len(set(names)) == 40
    assert {file.name for file in api.find(FileRecord, workflow_id=workflow)} == set(names)


def test_the_server_says_who_it_is(api: TorcClient) -> None:
    """A version that other clients can parse."""
    assert api.ping()["status"] == "ok"
    assert api.version()[0].isdigit()
