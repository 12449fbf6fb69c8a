"""Tests with Torc's own Python client, unmodified, against a real server: every operation, and whole workflows."""

import inspect
import sys
from collections.abc import Iterator
from typing import Any

import pytest
from sample_records import NODE

if sys.version_info >= (3, 14):
    pytest.skip("torc-client does not install on Python 3.14", allow_module_level=True)

import torc.openapi_client as official
from torc.api import iter_documents, make_api
from torc.openapi_client.exceptions import ApiException

Model = Any


class Recorder:
    """The official client; it remembers which operations were called."""

    def __init__(self, url: str) -> None:
        self._api = make_api(url)
        self.called: set[str] = set()

    def __getattr__(self, name: str) -> Any:
        self.called.add(name)
        return getattr(self._api, name)


@pytest.fixture
def client(server: str) -> Recorder:
    """The official client of a real server."""
    return Recorder(server)


def operations() -> Iterator[str]:
    """Yield the names of the client's operations."""
    for name, function in inspect.getmembers(official.DefaultApi, inspect.isfunction):
        plain = not name.endswith(("_with_http_info", "_without_preload_content"))
        if plain and not name.startswith("_"):
            assert "_request_timeout" in inspect.signature(function).parameters
            yield name


def workflow(client: Any, **fields: Any) -> int:
    return int(client.create_workflow(official.WorkflowModel(name="w", user="u", **fields)).id)


def jobs(client: Any, workflow_id: int, count: int, **fields: Any) -> list[Model]:
    batch = [
        official.JobModel(workflow_id=workflow_id, name=f"j{n}", command=f"run {n}", **fields) for n in range(count)
    ]
    return list(client.create_jobs(official.JobsModel(jobs=batch)).jobs)


def begin(client: Any, workflow_id: int) -> int:
    """Start a run as Torc's own programs do: read the status, count up, write it back, initialize."""
    status = client.get_workflow_status(workflow_id)
    status.run_id += 1
    client.update_workflow_status(workflow_id, status)
    client.initialize_jobs(workflow_id)
    return int(status.run_id)


def node(client: Any, workflow_id: int) -> int:
    model = official.ComputeNodeModel(
        **{**NODE, "workflow_id": workflow_id, "num_cpus": 8, "memory_gb": 16.0, "num_gpus": 1},
        scheduler={"type": "slurm", "scheduler_id": 5},
    )
    return int(client.create_compute_node(model).id)


def result(job: Model, run_id: int, node_id: int, code: int = 0, **fields: Any) -> Model:
    return official.ResultModel(
        job_id=job.id,
        workflow_id=job.workflow_id,
        run_id=run_id,
        compute_node_id=node_id,
        return_code=code,
        exec_time_minutes=0.5,
        completion_time="2026-01-01T00:00:00.000Z",
        status="failed" if code else "completed",
        **fields,
    )


def offer(**fields: Any) -> Model:
    values = {"num_cpus": 8, "memory_gb": 16.0, "num_gpus": 1, "num_nodes": 1, **fields}
    return official.ComputeNodesResources(**values)


def run(client: Any, workflow_id: int, run_id: int, node_id: int, codes: dict[str, int] | None = None) -> list[str]:
    """Be a runner until nothing is handed out; return the names of the jobs in the order in which they ran."""
    ran = []
    while claimed := client.claim_jobs_based_on_resources(workflow_id, 2, offer()).jobs:
        for job in claimed:
            assert job.status == "pending"
            client.start_job(job.id, run_id, node_id)
            code = (codes or {}).get(job.name, 0)
            label = official.JobStatus("failed" if code else "completed")
            done = client.complete_job(job.id, label, run_id, result(job, run_id, node_id, code))
            assert done.status == label.value
            ran.append(job.name)
    return ran


def refusal(call: Any, *arguments: Any, **named: Any) -> tuple[int, str]:
    """Return the status and reason with which a call is refused."""
    with pytest.raises(ApiException) as refused:
        call(*arguments, **named)
    body = official.DefaultErrorResponse.from_json(refused.value.body or "")
    assert body is not None
    return int(refused.value.status), str(body.error["message"])


def test_a_workflow_from_start_to_end(client: Recorder) -> None:
    """Created in bulk, initialized, claimed by resources, started, completed, restarted for what failed."""
    workflow_id = workflow(client, use_pending_failed=False, project="p", metadata="{}")
    assert client.is_workflow_uninitialized(workflow_id).is_uninitialized is True
    needs = client.create_resource_requirements(
        official.ResourceRequirementsModel(workflow_id=workflow_id, name="big", num_cpus=4, memory="8g", runtime="PT1H")
    )
    first = jobs(client, workflow_id, 3, resource_requirements_id=needs.id)
    last = client.create_job(
        official.JobModel(
            workflow_id=workflow_id, name="last", command="x", depends_on_job_ids=[job.id for job in first]
        )
    )
    assert [job.id for job in first] == client.list_job_ids(workflow_id).job_ids[:3]
    run_id = begin(client, workflow_id)
    asked = client.get_ready_job_requirements(workflow_id)
    assert (asked.num_jobs, asked.num_cpus, asked.memory_gb, asked.max_runtime) == (3, 12, 24.0, "PT1H")
    node_id = node(client, workflow_id)
    assert run(client, workflow_id, run_id, node_id, {"j1": 3}) == ["j0", "j1", "j2"]
    assert client.get_job(last.id).status == "canceled"
    assert client.is_workflow_complete(workflow_id).is_complete is True
    assert client.reset_job_status(workflow_id, failed_only=True).updated_count == 2
    client.reset_workflow_status(workflow_id)
    status = client.get_workflow_status(workflow_id)
    status.run_id += 1
    client.update_workflow_status(workflow_id, status)
    client.initialize_jobs(workflow_id, only_uninitialized=True)
    assert run(client, workflow_id, run_id + 1, node_id) == ["j1", "last"]
    current = client.list_results(workflow_id)
    assert {(r.job_id, r.run_id, r.return_code) for r in current.items} == {
        (first[0].id, 1, 0),
        (first[1].id, 2, 0),
        (first[2].id, 1, 0),
        (last.id, 2, 0),
    }
    assert client.list_results(workflow_id, all_runs=True).total_count == 5
    types = [event.data["event_type"] for event in iter_documents(client.list_events, workflow_id)]
    assert types.count("job_completed") == 4
    assert types.count("workflow_completed") == 2


def test_a_reset_of_failed_jobs_takes_all_that_follow_them(client: Recorder) -> None:
    """Also those whose results were reported after the failure; another chain keeps its results."""
    workflow_id = workflow(client)
    first, other = jobs(client, workflow_id, 2)
    chain = [first, other]
    for before in (first, other):
        model = official.JobModel(workflow_id=workflow_id, name=f"after {before.name}", command="x")
        model.depends_on_job_ids = [before.id]
        chain.append(client.create_job(model))
    run_id, node_id = begin(client, workflow_id), node(client, workflow_id)
    for job in chain:
        code = int(job is first)
        label = official.JobStatus("failed" if code else "completed")
        assert client.complete_job(job.id, label, run_id, result(job, run_id, node_id, code)).status == label.value
    assert client.reset_job_status(workflow_id, failed_only=True).updated_count == 2
    statuses = [client.get_job(job.id).status for job in chain]
    assert statuses == ["uninitialized", "completed", "uninitialized", "completed"]


def test_cancel_and_reset_answer_the_status(client: Recorder) -> None:
    workflow_id = workflow(client)
    run_id = begin(client, workflow_id)
    flags = {"is_archived": False, "has_detected_need_to_run_completion_script": False}
    expected = {"id": workflow_id, "run_id": run_id, **flags}
    canceled, reset = client.cancel_workflow(workflow_id), client.reset_workflow_status(workflow_id)
    assert canceled == {"message": f"Workflow {workflow_id} canceled", "is_canceled": True, **expected}
    assert reset == {"message": f"Reset status of workflow {workflow_id}", "is_canceled": False, **expected}


def test_claims_as_a_queue(client: Recorder) -> None:
    """Jobs come in order, independent of what they request; none after a cancellation, with the reason."""
    workflow_id = workflow(client)
    big = client.create_resource_requirements(
        official.ResourceRequirementsModel(
            workflow_id=workflow_id, name="big", num_cpus=4000, memory="800g", runtime="P1D"
        )
    )
    made = jobs(client, workflow_id, 3) + jobs(client, workflow_id, 2, resource_requirements_id=big.id)
    begin(client, workflow_id)
    claimed = [job.id for limit in (1, 3, 10) for job in client.claim_next_jobs(workflow_id, limit=limit).jobs]
    assert claimed == [job.id for job in made]
    assert client.claim_next_jobs(workflow_id).jobs == []
    client.cancel_workflow(workflow_id)
    answer = client.claim_jobs_based_on_resources(workflow_id, 1, offer())
    assert (answer.jobs, answer.reason) == ([], "Workflow is canceled")
    assert {job.status for job in client.list_jobs(workflow_id).items} == {"canceled"}


def test_a_failed_attempt_is_retried(client: Recorder) -> None:
    """The failure handler's rule limits the attempts; each leaves a result."""
    workflow_id = workflow(client)
    handler = client.create_failure_handler(
        official.FailureHandlerModel(workflow_id=workflow_id, name="h", rules='[{"exit_codes": [3], "max_retries": 3}]')
    )
    (job,) = jobs(client, workflow_id, 1, failure_handler_id=handler.id)
    run_id, node_id = begin(client, workflow_id), node(client, workflow_id)
    for attempt in (1, 2, 3):
        (claimed,) = client.claim_jobs_based_on_resources(workflow_id, 1, offer()).jobs
        assert (claimed.attempt_id, claimed.failure_handler_id) == (attempt, handler.id)
        client.start_job(job.id, run_id, node_id)
        if attempt < 3:
            again = client.retry_job(job.id, run_id)
            assert (again.status, again.attempt_id) == ("ready", attempt + 1)
    status, reason = refusal(client.retry_job, job.id, run_id)
    assert status == 422
    assert "at most 3" in reason
    client.complete_job(job.id, official.JobStatus.FAILED, run_id, result(job, run_id, node_id, 3, attempt_id=3))
    rows = client.list_results(workflow_id, all_runs=True).items
    assert [(row.attempt_id, row.status) for row in rows] == [(1, "failed"), (2, "failed"), (3, "failed")]
    assert [row.attempt_id for row in client.list_results(workflow_id).items] == [3]


def test_the_client_understands_refusals(client: Recorder) -> None:
    """Each wrong step has its status and reason."""
    workflow_id = workflow(client)
    (job,) = jobs(client, workflow_id, 1)
    run_id, node_id = begin(client, workflow_id), node(client, workflow_id)
    assert refusal(client.get_job, 999_999) == (404, "Job not found with ID: 999999")
    assert refusal(client.start_job, job.id, run_id, node_id) == (
        422,
        f"Job {job.id} cannot be started: status is ready, expected pending",
    )
    mismatch = (422, f"Run ID mismatch: provided {run_id + 5} but workflow status has {run_id}")
    done = official.JobStatus.COMPLETED
    late = result(job, run_id + 5, node_id)
    assert refusal(client.start_job, job.id, run_id + 5, node_id) == mismatch
    assert refusal(client.retry_job, job.id, run_id + 5) == mismatch
    assert refusal(client.complete_job, job.id, done, run_id + 5, late) == mismatch
    assert refusal(client.manage_status_change, job.id, official.JobStatus.PENDING, run_id + 5) == mismatch
    assert refusal(client.manage_status_change, job.id, done, run_id) == (
        422,
        "Cannot set completion status 'completed' via manage_status_change. Use complete_job API instead.",
    )
    assert refusal(client.retry_job, job.id, run_id) == (422, "Job cannot be retried: status is ready")
    client.complete_job(job.id, done, run_id, result(job, run_id, node_id))
    assert refusal(client.complete_job, job.id, done, run_id, result(job, run_id, node_id)) == (
        422,
        f"Job {job.id} is already complete with status completed",
    )


def test_both_kinds_of_runners_share_a_workflow(client: Recorder, api: Any, report_end: Any) -> None:
    """What one kind completes, the other goes on with."""
    workflow_id = api.planned(4, [[1, 0], [2, 1], [3, 2]])
    ours, theirs = api.node(workflow_id), node(client, workflow_id)
    for turn in range(2):
        (mine,) = api.exchange(workflow_id, ours, slots=5)["jobs"]
        assert client.claim_next_jobs(workflow_id, limit=5).jobs == []
        api.exchange(workflow_id, ours, ended=[report_end(mine["id"])])
        (job,) = client.claim_jobs_based_on_resources(workflow_id, 5, offer()).jobs
        assert (mine["name"], job.name) == (f"j{2 * turn}", f"j{2 * turn + 1}")
        assert api.exchange(workflow_id, ours, slots=5)["jobs"] == []
        client.start_job(job.id, 1, theirs)
        client.complete_job(job.id, official.JobStatus.COMPLETED, 1, result(job, 1, theirs))
    assert api.exchange(workflow_id, ours, slots=5)["is_complete"] is True


def test_files_and_user_data_tie_jobs(client: Recorder) -> None:
    """Relations imply dependencies; a changed value makes its reader run again."""
    workflow_id = workflow(client)
    made = client.create_file(official.FileModel(workflow_id=workflow_id, name="f", path="/f"))
    knob = client.create_user_data(
        official.UserDataModel(workflow_id=workflow_id, name="knob", is_ephemeral=False, data={"x": 1})
    )
    (writer,) = jobs(client, workflow_id, 1, output_file_ids=[made.id])
    reader = client.create_job(
        official.JobModel(
            workflow_id=workflow_id,
            name="reader",
            command="x",
            input_file_ids=[made.id],
            input_user_data_ids=[knob.id],
        )
    )
    run_id, node_id = begin(client, workflow_id), node(client, workflow_id)
    pairs = client.list_job_dependencies(workflow_id).items
    assert [(pair.job_id, pair.depends_on_job_id) for pair in pairs] == [(reader.id, writer.id)]
    (files,) = client.list_job_file_relationships(workflow_id).items
    assert (files.file_path, files.producer_job_name, files.consumer_job_name) == ("/f", "j0", "reader")
    (data,) = client.list_job_user_data_relationships(workflow_id).items
    assert (data.user_data_name, data.producer_job_id, data.consumer_job_id) == ("knob", None, reader.id)
    assert run(client, workflow_id, run_id, node_id) == ["j0", "reader"]
    assert client.process_changed_job_inputs(workflow_id, dry_run=True).reinitialized_jobs == []
    knob.data = {"x": 2}
    client.update_user_data(knob.id, knob)
    assert client.process_changed_job_inputs(workflow_id, dry_run=True).reinitialized_jobs == ["reader"]
    assert client.get_job(reader.id).status == "completed"
    assert client.process_changed_job_inputs(workflow_id).reinitialized_jobs == ["reader"]
    assert client.get_job(reader.id).status == "uninitialized"
    client.initialize_jobs(workflow_id, only_uninitialized=True)
    assert run(client, workflow_id, run_id, node_id) == ["reader"]


def test_every_operation_is_understood(client: Recorder) -> None:
    """All of the client's operations in one story; what the server answers fits the client's models."""
    assert client.ping() == {"status": "ok"}
    assert client.get_version()
    c, w = client, workflow(client)
    w_ = official.WorkflowModel(name="w2", user="u")
    assert c.get_workflow(w).compute_node_expiration_buffer_seconds == 180
    assert c.update_workflow(w, w_).name == "w2"
    assert w in [item.id for item in iter_documents(c.list_workflows, name="w2", user="u", is_archived=False)]
    _files_and_user_data(c, w)
    _requirements_and_schedulers(c, w)
    _nodes_and_results(c, w)
    _actions_and_events(c, w)
    _groups(c, w)
    assert c.create_remote_workers(w, ["b@h:22", "a"])[0].worker == "a"
    assert [worker.worker for worker in c.list_remote_workers(w)] == ["a", "b@h:22"]
    assert c.delete_remote_worker(w, "b@h:22").worker == "b@h:22"
    assert c.list_required_existing_files(w).files == []
    assert c.list_missing_user_data(w).user_data == []
    c.claim_next_jobs(w)
    c.cancel_workflow(w)
    c.reset_workflow_status(w, force=True)
    c.reset_job_status(w)
    _jobs(c, w)
    assert c.delete_workflow(w).id == w
    for name in ("is_workflow_complete", "is_workflow_uninitialized", "get_ready_job_requirements", "list_job_ids"):
        assert refusal(getattr(c, name), w)[0] == 404
    for name in ("list_job_dependencies", "list_job_file_relationships", "list_job_user_data_relationships"):
        assert refusal(getattr(c, name), w)[0] == 404
    assert refusal(c.process_changed_job_inputs, w)[0] == 404
    assert refusal(c.claim_jobs_based_on_resources, w, 1, offer())[0] == 404
    assert c.called == set(operations())


def _files_and_user_data(c: Any, w: int) -> None:
    file = c.create_file(official.FileModel(workflow_id=w, name="f", path="/f", st_mtime=1.5))
    file.st_mtime = 2
    assert c.update_file(file.id, file).st_mtime == c.get_file(file.id).st_mtime == 2
    assert c.list_files(w, name="f", is_output=False).total_count == 1
    assert c.delete_file(file.id).name == "f"
    assert c.delete_files(w)["deleted_count"] == 0
    value = {"a": [1, None, "x"]}
    data = c.create_user_data(official.UserDataModel(workflow_id=w, name="d", is_ephemeral=True, data=value))
    assert c.get_user_data(data.id).data == c.update_user_data(data.id, data).data == value
    assert c.list_user_data(w, name="d", is_ephemeral=True).count == 1
    assert c.delete_user_data(data.id).id == data.id
    assert c.delete_all_user_data(w)["deleted_count"] == 0


def _requirements_and_schedulers(c: Any, w: int) -> None:
    needs = c.create_resource_requirements(official.ResourceRequirementsModel(workflow_id=w, name="r", num_cpus=2))
    needs.memory = "2g"
    assert c.update_resource_requirements(needs.id, needs).memory == c.get_resource_requirements(needs.id).memory
    assert c.list_resource_requirements(w, sort_by="name", reverse_sort=True).items[0].name == "r"
    assert c.list_resource_requirements(w, runtime=60).items[0].name == "default"  # which lasts a minute, P0DT1M
    assert c.list_resource_requirements(w, runtime=61).items == []
    assert c.delete_resource_requirement(needs.id).name == "r"
    c.delete_resource_requirements(w)
    slurm = c.create_slurm_scheduler(
        official.SlurmSchedulerModel(workflow_id=w, name="s", account="a", nodes=1, walltime="01:00:00")
    )
    slurm.partition = "p"
    assert c.update_slurm_scheduler(slurm.id, slurm).partition == c.get_slurm_scheduler(slurm.id).partition == "p"
    assert c.list_slurm_schedulers(w, account="a").count == 1
    assert c.delete_slurm_scheduler(slurm.id).name == "s"
    c.delete_slurm_schedulers(w)
    local = c.create_local_scheduler(official.LocalSchedulerModel(workflow_id=w, name="l", num_cpus=2))
    local.memory = "1g"
    assert c.update_local_scheduler(local.id, local).memory == c.get_local_scheduler(local.id).memory == "1g"
    assert c.list_local_schedulers(w, num_cpus=2).count == 1
    assert c.delete_local_scheduler(local.id).name == "l"
    c.delete_local_schedulers(w)
    handler = c.create_failure_handler(official.FailureHandlerModel(workflow_id=w, name="h", rules="[]"))
    assert c.get_failure_handler(handler.id).rules == "[]"
    assert c.list_failure_handlers(w).count == 1
    assert c.delete_failure_handler(handler.id).name == "h"


def _nodes_and_results(c: Any, w: int) -> None:
    n = node(c, w)
    model = c.get_compute_node(n)
    model.is_active = False
    assert c.update_compute_node(n, model).is_active is False
    assert c.list_compute_nodes(w, is_active=False, hostname="h", scheduled_compute_node_id=5).total_count == 1
    scheduled = c.create_scheduled_compute_node(
        official.ScheduledComputeNodesModel(
            workflow_id=w, scheduler_id=9, scheduler_config_id=1, scheduler_type="slurm", status="pending"
        )
    )
    scheduled.status = "complete"
    assert c.update_scheduled_compute_node(scheduled.id, scheduled).status == "complete"
    assert c.get_scheduled_compute_node(scheduled.id).scheduler_id == 9
    assert c.list_scheduled_compute_nodes(w, status="complete").count == 1
    assert c.delete_scheduled_compute_node(scheduled.id).id == scheduled.id
    c.delete_scheduled_compute_nodes(w)
    (job,) = jobs(c, w, 1)
    row = c.create_result(result(job, 1, n))
    row.return_code = 4
    assert c.update_result(row.id, row).return_code == c.get_result(row.id).return_code == 4
    assert c.list_results(w, all_runs=True, compute_node_id=n).count == 1
    assert c.delete_result(row.id).id == row.id
    c.delete_results(w)
    assert c.delete_compute_node(n).id == n
    c.delete_compute_nodes(w)


def _actions_and_events(c: Any, w: int) -> None:
    action = c.create_workflow_action(
        w,
        official.WorkflowActionModel(
            workflow_id=w,
            trigger_type="on_workflow_start",
            action_type="run_commands",
            action_config={"commands": ["true"]},
        ),
    )
    begin(c, w)
    assert [due.id for due in c.get_pending_actions(w, trigger_type=["on_workflow_start"])] == [action.id]
    claim = official.ClaimActionRequest(compute_node_id=node(c, w))
    assert c.claim_action(w, action.id, claim).success is True
    assert refusal(c.claim_action, w, action.id, claim)[0] == 409
    assert c.get_workflow_actions(w)[0].executed is True
    event = c.create_event(official.EventModel(workflow_id=w, timestamp=1, data={"category": "mine"}))
    assert event.timestamp > 1
    event.data = {"category": "other"}
    assert c.update_event(event.id, event).data == c.get_event(event.id).data == {"category": "other"}
    assert c.list_events(w, category="other", after_timestamp=0).count == 1
    assert c.get_latest_event_timestamp(w)["timestamp"] == event.timestamp
    assert c.delete_event(event.id).id == event.id
    assert c.delete_events(w)["count"] > 0


def _groups(c: Any, w: int) -> None:
    group = c.create_access_group(official.AccessGroupModel(name=f"g{w}"))
    assert c.get_access_group(group.id).name == group.name
    assert group.id in [item.id for item in c.list_access_groups().items]
    member = official.UserGroupMembershipModel(user_name="x", group_id=group.id)
    assert c.add_user_to_group(group.id, member).user_name == "x"
    assert [item.user_name for item in c.list_group_members(group.id).items] == ["x"]
    assert group.id in [item.id for item in c.list_user_groups("x").items]
    link = official.WorkflowAccessGroupModel(workflow_id=w, group_id=group.id)
    assert c.add_workflow_to_group(w, link).group_id == group.id
    assert [item.id for item in c.list_workflow_groups(w).items] == [group.id]
    assert c.check_workflow_access(w, "x").has_access is True
    c.remove_workflow_from_group(w, group.id)
    c.remove_user_from_group(group.id, "x")
    assert c.delete_access_group(group.id).id == group.id


def _jobs(c: Any, w: int) -> None:
    job = c.create_job(official.JobModel(workflow_id=w, name="one", command="x", supports_termination=True))
    job.command = "y"
    assert c.update_job(job.id, job).command == c.get_job(job.id).command == "y"
    assert c.list_jobs(w, status="uninitialized", sort_by="name", include_relationships=True).total_count >= 1
    run_id = begin(c, w)
    assert c.manage_status_change(job.id, official.JobStatus.PENDING, run_id).status == "pending"
    n = node(c, w)
    assert c.start_job(job.id, run_id, n).status == "running"
    assert c.retry_job(job.id, run_id).attempt_id == 2
    stopped = result(job, run_id, n, 143, attempt_id=2)
    assert c.complete_job(job.id, official.JobStatus.TERMINATED, run_id, stopped).status == "terminated"
    assert c.delete_job(job.id).name == "one"
    c.delete_jobs(w)
