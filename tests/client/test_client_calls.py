"""Tests of the client's methods for single kinds of records, against a real server."""

import io
import json
from pathlib import Path
from typing import Any

import pytest
from programs import running_server
from sample_records import register

from torc_framework.client import TorcClient
from torc_framework.client.calls import jobs as job_calls
from torc_framework.client.calls import paging
from torc_framework.client.calls import workflows as workflow_calls
from torc_framework.client.calls.jobs import NodeResources
from torc_framework.client.http.transport import Transport
from torc_framework.errors import ApiError
from torc_framework.models.barriers import Barrier
from torc_framework.models.plan import Plan, PlannedJob
from torc_framework.models.records import (
    EventRecord,
    FileRecord,
    JobRecord,
    ResultRecord,
    UserDataRecord,
    WorkflowActionRecord,
    WorkflowRecord,
)
from torc_framework.models.responses import JobDependency

NOW = "2026-01-01T00:00:00Z"


@pytest.fixture
def workflow(api: TorcClient) -> int:
    """A workflow: ``a`` writes a file and user data, ``b`` reads both."""
    plan = Plan(
        WorkflowRecord(name="w", user="ann"),
        [
            PlannedJob("a", "true", output_files=[0], output_user_data=[0]),
            PlannedJob("b", "true", input_files=[0], input_user_data=[0]),
        ],
        dependencies=[(1, 0)],
        files=[FileRecord(workflow_id=0, name="f", path="f.txt")],
        user_data=[UserDataRecord(workflow_id=0, name="d")],
    )
    return api.create_from_plan(plan, initialize=True).id


def result_of(job_id: int, workflow: int, node: int, code: int, attempt: int = 1) -> ResultRecord:
    return ResultRecord(
        job_id=job_id,
        workflow_id=workflow,
        run_id=1,
        attempt_id=attempt,
        compute_node_id=node,
        return_code=code,
        exec_time_minutes=0.5,
        completion_time=NOW,
        status="failed" if code else "completed",
    )


def test_an_attempt_step_by_step(api: TorcClient, workflow: int) -> None:
    """Claimed, started, failed, tried again, completed; then the next one is there."""
    node = register(api, workflow)
    ready = api.ready_job_requirements(workflow)
    assert (ready.num_jobs, ready.num_cpus, ready.max_runtime) == (1, 1, "PT1M")
    assert api.claim_jobs(workflow, NodeResources(num_cpus=0, memory_gb=1.0), 5).jobs == []
    (job,) = api.claim_jobs(workflow, NodeResources(num_cpus=4, memory_gb=8.0), 5, sort_method="none").jobs
    assert (job.name, job.status) == ("a", "pending")
    assert job.id is not None
    assert api.start_job(job.id, 1, node).status == "running"
    assert api.complete_job(job.id, "failed", 1, result_of(job.id, workflow, node, 3)).status == "failed"
    again = api.retry_job(job.id, 1, max_retries=3)
    assert (again.status, again.attempt_id) == ("ready", 2)
    (job,) = api.claim_next_jobs(workflow, limit=1).jobs
    assert job.id is not None
    api.start_job(job.id, 1, node)
    assert api.complete_job(job.id, "completed", 1, result_of(job.id, workflow, node, 0, 2)).status == "completed"
    (second,) = api.claim_next_jobs(workflow).jobs
    assert second.name == "b"
    assert second.id is not None
    assert api.change_job_status(second.id, "ready", 1).status == "ready"
    with pytest.raises(ApiError, match="Run ID mismatch"):
        api.start_job(second.id, 7, node)


def test_relations_are_walked_page_by_page(api: TorcClient, workflow: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(paging, "PAGE_SIZE", 1)
    first, second = api.job_ids(workflow)
    (pair,) = api.job_dependencies(workflow)
    assert (pair.job_id, pair.depends_on_job_id, pair.job_name) == (second, first, "b")
    (file,) = api.job_file_relationships(workflow)
    assert (file.file_path, file.producer_job_id, file.consumer_job_name) == ("f.txt", first, "b")
    (data,) = api.job_user_data_relationships(workflow)
    assert (data.user_data_name, data.producer_job_name, data.consumer_job_id) == ("d", "a", second)


@pytest.mark.parametrize("size", [2, 3, 100])
@pytest.mark.parametrize("is_older", [False, True])
def test_relations_of_many_pages(api: TorcClient, monkeypatch: pytest.MonkeyPatch, size: int, is_older: bool) -> None:
    """Once each, also pairs that two groups have, and from a server that does not know the parameter ``after``."""
    jobs = [PlannedJob(f"j{n}", "true", input_files=[0, 1], output_files=[2] if n < 2 else None) for n in range(6)]
    plan = Plan(WorkflowRecord(name="w", user="u"), jobs, barriers=[Barrier([0, 1], [3, 4]), Barrier([1, 2], [4, 5])])
    plan.files = [FileRecord(workflow_id=0, name=name, path=f"/{name}") for name in "abc"]
    workflow = api.create_from_plan(plan).id
    whole = [*api.job_dependencies(workflow)], [*api.job_file_relationships(workflow)]
    assert (len(whole[0]), len(whole[1])) == (8, 14)
    monkeypatch.setattr(paging, "PAGE_SIZE", size)
    if is_older:
        ask = api._page
        monkeypatch.setattr(
            api, "_page", lambda kind, path, query: ask(kind, path, {k: v for k, v in query.items() if k != "after"})
        )
    assert ([*api.job_dependencies(workflow)], [*api.job_file_relationships(workflow)]) == whole


@pytest.mark.parametrize("after", ["", "1", "1,2", "a,b,c", "1,2,-3", "1,2,3,4", "1,2,99999999999999999999"])
def test_a_wrong_place_in_relations_is_refused(api: TorcClient, workflow: int, after: str) -> None:
    with pytest.raises(ApiError, match="query 'after'") as refused:
        api._page(JobDependency, f"/workflows/{workflow}/job_dependencies", {"after": after})
    assert refused.value.status == 400


def test_a_deleted_record_moves_no_page(api: TorcClient, workflow: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """What follows it is not passed over, in any list that goes by id."""
    monkeypatch.setattr(paging, "PAGE_SIZE", 2)
    names = [f"f{n}" for n in range(7)]
    for name in names:
        api.create(FileRecord(workflow_id=workflow, name=name, path=name))
    found = []
    for file in api.iterate(FileRecord, workflow_id=workflow):
        found.append(file.name)
        api.delete(FileRecord, file.id or 0)
    assert found == ["f", *names]


class WithoutAfterId(Transport):
    """Sends requests as to a server that does not know ``after_id``, which ignores it."""

    def request(self, method: str, path: str, *, query: dict[str, Any] | None = None, **more: Any) -> bytes:
        """Send a request without the parameter."""
        known = {name: value for name, value in (query or {}).items() if name != "after_id"}
        return super().request(method, path, query=known, **more)


@pytest.mark.parametrize("sort_by", [None, "path"])
@pytest.mark.parametrize("offset", [0, 3])
def test_lists_of_an_older_server_are_read_once(
    server: str, workflow: int, monkeypatch: pytest.MonkeyPatch, sort_by: str | None, offset: int
) -> None:
    """It returns its first page again, which ends neither in an endless list nor in a doubled one."""
    monkeypatch.setattr(paging, "PAGE_SIZE", 2)
    monkeypatch.setattr(workflow_calls, "PAGE_SIZE", 2)
    with TorcClient.over(WithoutAfterId(server, timeout=60.0)) as old:
        for n in range(6):
            old.create(FileRecord(workflow_id=workflow, name=f"f{n}", path=f"{9 - n}"))
        whole = old.page(FileRecord, workflow_id=workflow, sort_by=sort_by).items
        assert len(whole) == 7
        assert old.find(FileRecord, workflow_id=workflow, sort_by=sort_by, offset=offset) == whole[offset:]
        assert old.find(FileRecord, workflow_id=workflow, sort_by=sort_by, offset=offset, limit=3) == whole[offset:][:3]
        groups = [old.create_access_group(f"g{n}_{sort_by}_{offset}").id for n in range(5)]
        assert [group.id for group in old.access_groups() if group.id in groups] == groups
        mine = [old.create(WorkflowRecord(name=f"w{n}", user=f"{sort_by}{offset}")).id for n in range(5)]
        found, total = old.overviews({"user": f"{sort_by}{offset}"}, offset=offset)
        assert ([each.id for each in found], total) == (mine[offset:], 5)


def test_the_graph_holds_groups_as_they_are_kept(api: TorcClient) -> None:
    jobs = [PlannedJob(f"j{n}", "true") for n in range(4)]
    plan = Plan(WorkflowRecord(name="w", user="ann"), jobs, barriers=[Barrier([0, 1], [2, 3])])
    workflow = api.create_from_plan(plan).id
    ids = api.job_ids(workflow)
    graph = api.dependency_graph(workflow)
    assert (graph.dependencies, graph.groups) == ([], [Barrier(ids[:2], ids[2:])])


def test_what_a_run_needs_and_what_has_changed(api: TorcClient, workflow: int) -> None:
    assert (api.required_existing_files(workflow), api.missing_user_data(workflow)) == ([], [])
    (file,) = api.find(FileRecord, workflow_id=workflow)
    (data,) = api.find(UserDataRecord, workflow_id=workflow)
    reader = api.create(
        JobRecord(
            workflow_id=workflow,
            name="c",
            command="true",
            input_file_ids=[file.id or 0],
            input_user_data_ids=[data.id or 0],
        )
    )
    assert reader.id is not None
    loose = api.create(UserDataRecord(workflow_id=workflow, name="loose"))
    read = api.create_user_data(UserDataRecord(workflow_id=workflow, name="read"), consumer_job_id=reader.id)
    assert api.missing_user_data(workflow) == [read.id]
    assert loose.id not in api.missing_user_data(workflow)
    assert api.process_changed_job_inputs(workflow, dry_run=True) == []


def test_an_export_is_saved_as_the_server_sends_it(api: TorcClient, workflow: int) -> None:
    """With the lengths of its lists."""
    file = io.BytesIO()
    counts = api.save_export(workflow, file.write, include_events=True)
    saved, whole = json.loads(file.getvalue()), api.export_workflow(workflow, include_events=True)
    assert {**saved, "exported_at": None} == {**whole, "exported_at": None}
    assert counts == {name: len(part) for name, part in whole.items() if isinstance(part, list)}
    assert (counts["jobs"], counts["files"], counts["local_schedulers"]) == (2, 1, 0)


def test_times_of_events(api: TorcClient, workflow: int) -> None:
    event = api.create(EventRecord(workflow_id=workflow, data={"event_type": "mine"}))
    assert api.latest_event_timestamp(workflow) == event.timestamp
    empty = api.create(WorkflowRecord(name="e", user="ann"))
    assert empty.id is not None
    assert api.latest_event_timestamp(empty.id) is None


def test_actions_are_claimed_once(api: TorcClient, workflow: int) -> None:
    config = {"commands": ["true"]}
    action = api.create(
        WorkflowActionRecord(
            workflow_id=workflow, trigger_type="on_workflow_start", action_type="run_commands", action_config=config
        )
    )
    api.initialize_jobs(workflow)
    assert [due.id for due in api.pending_actions(workflow, ["on_workflow_start"])] == [action.id]
    assert action.id is not None
    node = register(api, workflow)
    assert [api.claim_action(workflow, action.id, node) for _ in range(2)] == [True, False]


def test_remote_workers_come_and_go(api: TorcClient, workflow: int) -> None:
    """An address may hold anything that has a meaning in a path."""
    names = ["ann@host:22", "other"]
    assert [worker.worker for worker in api.create_remote_workers(workflow, [*names, "other"])] == names
    assert api.delete_remote_worker(workflow, "ann@host:22").worker == "ann@host:22"
    assert [worker.worker for worker in api.remote_workers(workflow)] == ["other"]


def test_many_jobs_are_created_in_order(api: TorcClient, workflow: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """In more than one request, when there are too many for one."""
    monkeypatch.setattr(job_calls, "BATCH", 2)
    jobs = [JobRecord(workflow_id=workflow, name=f"n{number}", command="true") for number in range(5)]
    created = api.create_jobs(iter(jobs))
    assert [job.name for job in created] == [f"n{number}" for number in range(5)]
    assert [job.id for job in created] == api.job_ids(workflow)[2:]


def test_workflows_are_shared_with_groups(tmp_path: Path) -> None:
    with running_server(tmp_path) as url, TorcClient(url) as api:
        workflow = api.create(WorkflowRecord(name="w", user="ann")).id
        assert workflow is not None
        group = api.create_access_group("team", "People")
        assert group.id is not None
        assert api.access_group(group.id) == group
        assert group.name in [listed.name for listed in api.access_groups()]
        assert api.add_member(group.id, "bob@site.example", "admin").role == "admin"
        assert [member.user_name for member in api.members(group.id)] == ["bob@site.example"]
        assert [listed.id for listed in api.groups_of_user("bob@site.example")] == [group.id]
        assert not api.has_access(workflow, "bob@site.example")
        assert api.share_workflow(workflow, group.id).group_id == group.id
        assert [listed.id for listed in api.groups_of_workflow(workflow)] == [group.id]
        assert api.has_access(workflow, "bob@site.example")
        api.unshare_workflow(workflow, group.id)
        api.remove_member(group.id, "bob@site.example")
        assert [*api.members(group.id), *api.groups_of_workflow(workflow)] == []
        assert api.delete_access_group(group.id).id == group.id
