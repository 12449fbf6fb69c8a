"""Endpoints of one workflow as a whole: its runs, its state, its actions, its dependencies, its remote workers."""

from typing import Any, Final, Literal

import msgspec
from attrs import Factory, define

from torc_framework.models import responses as a
from torc_framework.models.records import WorkflowActionRecord, WorkflowStatusRecord
from torc_framework.server.auth.permissions import WORKFLOW_IN_PATH
from torc_framework.server.dispatch.endpoint import Endpoint, EndpointFunction, page
from torc_framework.server.http.endpoint_calls import (
    FORCE,
    MAX_LIMIT,
    PAGE_PARAMETERS,
    EndpointCall,
    Parameter,
    parse_integer,
)
from torc_framework.server.http.endpoint_results import RequestError
from torc_framework.store.database.sql import Tx
from torc_framework.store.exchange import single_claims
from torc_framework.store.job_state import changed_inputs, interruptions
from torc_framework.store.record_kinds import actions, jobs, remote_workers, workflow_queries
from torc_framework.store.records import crud
from torc_framework.store.runs import lifecycle
from torc_framework.store.runs.workflow_status import (
    WorkflowCompletion,
    is_uninitialized,
    job_counts,
    put_status,
    workflow_completion,
    workflow_status,
)


@define
class BeginRun:
    """Body of ``begin_run``."""

    file_mtimes: dict[int, float | None] = Factory(dict)
    only_uninitialized: bool = False
    force: bool = False
    dry_run: bool = False


@define
class Reinitialize:
    """Body of ``reinitialize``: current modification times of files, null for missing ones.

    ``reset`` has the effect of ``reset_status`` and ``reset_job_status`` before.
    """

    file_mtimes: dict[int, float | None] = Factory(dict)
    dry_run: bool = False
    force: bool = False
    reset: Literal["all", "failed"] | None = None


@define
class SomeJobs:
    """Body of ``delete_jobs``."""

    job_ids: list[int]


@define
class ActionClaim:
    """Body of an action's ``claim``; ``compute_node_id`` is null for a caller without a compute node."""

    compute_node_id: int | None
    will_report: bool = False
    again: bool = False


@define
class ActionEnd:
    """Body of an action's ``result``: ``error`` is null if the action was carried out."""

    compute_node_id: int | None = None
    error: str | None = None


@define
class StatusChange:
    """Body of ``PUT status``: all four fields are written, absent ones as false."""

    run_id: int
    id: int | None = None
    is_canceled: bool | None = None
    is_archived: bool | None = None
    has_detected_need_to_run_completion_script: bool | None = None


def _begin_run(tx: Tx, call: EndpointCall) -> WorkflowStatusRecord:
    asked: BeginRun = call.body
    return lifecycle.begin_run(
        tx,
        call.id,
        asked.file_mtimes,
        only_uninitialized=asked.only_uninitialized,
        force=asked.force,
        dry_run=asked.dry_run,
    )


def _reinitialize(tx: Tx, call: EndpointCall) -> a.Reinitialized:
    from torc_framework.store.runs.reinitialize import reinitialize  # the start of a server does without

    asked: Reinitialize = call.body
    user, reset_count = call.caller.name, 0
    if asked.reset is not None:
        if asked.dry_run:
            raise RequestError("body: dry_run: is not possible with a reset; leave one of them out")
        lifecycle.reset_status(tx, call.id, force=asked.force, user=user)
        reset_count = lifecycle.reset_job_status(tx, call.id, failed_only=asked.reset == "failed", user=user)
    found = reinitialize(tx, call.id, asked.file_mtimes, dry_run=asked.dry_run, force=asked.force, user=user)
    return msgspec.structs.replace(found, reset_count=reset_count)


def _put_status(tx: Tx, call: EndpointCall) -> WorkflowStatusRecord:
    wanted: StatusChange = call.body
    status = WorkflowStatusRecord(
        id=call.id,
        run_id=wanted.run_id,
        is_canceled=bool(wanted.is_canceled),
        is_archived=bool(wanted.is_archived),
        has_detected_need_to_run_completion_script=bool(wanted.has_detected_need_to_run_completion_script),
    )
    return put_status(tx, status)


def _cancel(tx: Tx, call: EndpointCall) -> a.StatusMessage:
    lifecycle.cancel_workflow(tx, call.id)
    return _status_message(tx, call.id, f"Workflow {call.id} canceled")


def _status_message(tx: Tx, workflow_id: int, message: str) -> a.StatusMessage:
    """Return the status of a workflow after a change, as Torc's server answers, with a sentence."""
    status = workflow_status(tx, workflow_id)
    return a.StatusMessage(
        message,
        workflow_id,
        status.run_id,
        status.is_canceled,
        status.is_archived,
        status.has_detected_need_to_run_completion_script,
    )


def _initialize_jobs(tx: Tx, call: EndpointCall) -> a.Message:
    lifecycle.initialize_jobs(tx, call.id, **call.query)
    return a.Message(f"Initialized jobs of workflow {call.id}")


def _process_changed_job_inputs(tx: Tx, call: EndpointCall) -> a.ChangedJobs:
    names = changed_inputs.reset_changed_jobs(tx, call.id, dry_run=call.query["dry_run"], user=call.caller.name)
    return a.ChangedJobs(names)


def _reset_status(tx: Tx, call: EndpointCall) -> a.StatusMessage:
    lifecycle.reset_status(tx, call.id, force=call.query["force"], user=call.caller.name)
    return _status_message(tx, call.id, f"Reset status of workflow {call.id}")


def _reset_job_status(tx: Tx, call: EndpointCall) -> a.ResetJobs:
    failed_only = call.query["failed_only"]
    count = lifecycle.reset_job_status(tx, call.id, failed_only=failed_only, user=call.caller.name)
    return a.ResetJobs(call.id, count, "uninitialized", "failed_only" if failed_only else None)


def _job_counts(tx: Tx, call: EndpointCall) -> a.JobCounts:
    counts = job_counts(tx, call.id)
    return a.JobCounts(counts, sum(counts.values()), interruptions.count_interrupted(tx, call.id))


def _resume(tx: Tx, call: EndpointCall) -> a.ResumedJobs:
    return a.ResumedJobs(lifecycle.resume_workflow(tx, call.id))


def _job_ids(tx: Tx, call: EndpointCall) -> a.JobIds:
    found = workflow_queries.job_ids(tx, call.id)
    return a.JobIds(found, len(found))


def _delete_jobs(tx: Tx, call: EndpointCall) -> a.DeletedJobs:
    return a.DeletedJobs(jobs.delete_listed_jobs(tx, call.id, call.body.job_ids, force=call.query["force"]))  # type: ignore[arg-type]  # records are dictionaries


def _is_uninitialized(tx: Tx, call: EndpointCall) -> a.IsUninitialized:
    return a.IsUninitialized(is_uninitialized(tx, call.id))


def _required_existing_files(tx: Tx, call: EndpointCall) -> a.RequiredFiles:
    return a.RequiredFiles([str(file_id) for file_id in workflow_queries.required_existing_files(tx, call.id)])


def _missing_user_data(tx: Tx, call: EndpointCall) -> a.MissingUserData:
    return a.MissingUserData(workflow_queries.missing_user_data(tx, call.id))


def _latest_event_timestamp(tx: Tx, call: EndpointCall) -> a.LatestEvent:
    return a.LatestEvent(workflow_queries.latest_event_timestamp(tx, call.id))


def _paged(find: workflow_queries.FindPage) -> EndpointFunction:
    """Return an endpoint function that lists one page of what ``find`` returns."""

    def listed(tx: Tx, call: EndpointCall) -> Any:
        offset, limit = call.query["offset"], min(call.query["limit"], MAX_LIMIT)
        after = None if call.query["after"] is None else _three_numbers(call.query["after"])
        items, total = find(tx, call.id, workflow_queries.RelationPage(offset, limit, after))
        return page(items, 0 if after is not None else offset, total)

    return _known(listed)


def _three_numbers(text: str) -> tuple[int, ...]:
    """Return the numbers of the parameter ``after``.

    Raises:
        RequestError: the text is not three numbers with commas between them.
    """
    parts = text.split(",")
    if len(parts) != 3:
        raise RequestError(f"query 'after': {text!r} is not three numbers with commas between them")
    return tuple(parse_integer("query 'after'", part, 0) for part in parts)


def _claim_action(tx: Tx, call: EndpointCall) -> a.ClaimedAction:
    action_id = call.ids["action_id"]
    asked: ActionClaim = call.body
    node_id, will_report = asked.compute_node_id, asked.will_report
    actions.claim_action(tx, call.id, action_id, node_id, will_report=will_report, again=asked.again)
    return a.ClaimedAction(action_id)


def _finish_action(tx: Tx, call: EndpointCall) -> Any:
    end: ActionEnd = call.body
    return actions.finish_action(tx, call.id, call.ids["action_id"], end.compute_node_id, end.error)


def _ready_job_requirements(tx: Tx, call: EndpointCall) -> a.ReadyRequirements:
    return single_claims.ready_requirements_total(tx, call.id, call.query["scheduler_config_id"])


def _delete_remote_worker(tx: Tx, call: EndpointCall) -> a.RemoteWorker:
    return remote_workers.delete_remote_worker(tx, call.id, call.words["worker"])


def _known(function: EndpointFunction) -> EndpointFunction:
    """Return an endpoint function that answers 404 for an unknown workflow and otherwise calls ``function``."""

    def checked(tx: Tx, call: EndpointCall) -> Any:
        workflow_status(tx, call.id)
        return function(tx, call)

    return checked


def _sized(function: EndpointFunction) -> EndpointFunction:
    """Return an endpoint function that checks the size of a workflow's actions before it calls ``function``."""

    def checked(tx: Tx, call: EndpointCall) -> Any:
        call.check_size(crud.size_of(tx, actions.ACTIONS, actions.ACTIONS.table.c.workflow_id == call.id))
        return function(tx, call)

    return checked


def _flag(*, default: bool) -> Parameter:
    return Parameter(bool, default)


def _about(method: str, path: str, function: EndpointFunction, summary: str, response: Any, **more: Any) -> Endpoint:
    """Return an endpoint below ``/workflows/{id}``."""
    changes = method != "GET"
    path = f"/workflows/{{id}}/{path}"
    return Endpoint(
        method, path, function, changes, summary=summary, response=response, permission=WORKFLOW_IN_PATH, **more
    )


_STATUS: Final = WorkflowStatusRecord
_PAGED: Final[dict[str, Any]] = {"query": {**PAGE_PARAMETERS, "after": Parameter(str)}}
_INITIALIZE: Final = {
    "only_uninitialized": _flag(default=False),
    "clear_ephemeral_user_data": _flag(default=True),
}

WORKFLOW_ENDPOINTS: Final = (
    _about("GET", "status", lambda tx, call: workflow_status(tx, call.id), "Get a workflow's status.", _STATUS),
    _about("PUT", "status", _put_status, "Overwrite a workflow's status.", _STATUS, body=StatusChange),
    _about(
        "POST",
        "begin_run",
        _begin_run,
        "Start the next run in one step: reset the jobs, increment `run_id`, record modification times, initialize.",
        _STATUS,
        body=BeginRun,
    ),
    _about(
        "POST",
        "reinitialize",
        _reinitialize,
        "Start the next run in one step and reset only the jobs that have a reason to run again; returns these.",
        a.Reinitialized,
        body=Reinitialize,
    ),
    _about(
        "POST",
        "initialize_jobs",
        _initialize_jobs,
        "Find out which jobs are ready and which are blocked.",
        a.Message,
        query=_INITIALIZE,
    ),
    _about(
        "POST",
        "process_changed_job_inputs",
        _process_changed_job_inputs,
        "Reset the jobs to uninitialized whose inputs have changed since the last initialize.",
        a.ChangedJobs,
        query={"dry_run": _flag(default=False)},
    ),
    _about(
        "PUT",
        "cancel",
        _cancel,
        "Cancel a workflow: runners end the jobs that they hold, and no further ones are handed out.",
        a.StatusMessage,
    ),
    _about(
        "POST",
        "reset_status",
        _reset_status,
        "Clear a workflow's canceled and archived flags.",
        a.StatusMessage,
        query={"force": _flag(default=False)},
    ),
    _about(
        "POST",
        "reset_job_status",
        _reset_job_status,
        "Reset all jobs to uninitialized, or only the failed ones and their dependents.",
        a.ResetJobs,
        query={"failed_only": _flag(default=False)},
    ),
    _about(
        "POST",
        "resume_interrupted_jobs",
        _resume,
        "Make the interrupted jobs ready; the next runner that asks for jobs has the same effect.",
        a.ResumedJobs,
    ),
    _about(
        "GET",
        "is_complete",
        lambda tx, call: workflow_completion(tx, call.id),
        "Answer whether no job of the workflow is unfinished.",
        WorkflowCompletion,
    ),
    _about(
        "GET",
        "is_uninitialized",
        _is_uninitialized,
        "Answer whether every job is uninitialized or disabled.",
        a.IsUninitialized,
    ),
    _about("GET", "job_counts", _known(_job_counts), "Count the jobs by status.", a.JobCounts),
    _about(
        "POST",
        "delete_jobs",
        _delete_jobs,
        "Delete some jobs, all of them or none; jobs no longer wait for them.",
        a.DeletedJobs,
        body=SomeJobs,
        query=FORCE,
    ),
    _about("GET", "job_ids", _known(_job_ids), "List the ids of all jobs.", a.JobIds, has_any_size=True),
    _about(
        "GET",
        "required_existing_files",
        _known(_required_existing_files),
        "List the files that must exist before a run.",
        a.RequiredFiles,
        has_any_size=True,
    ),
    _about(
        "GET",
        "missing_user_data",
        _known(_missing_user_data),
        "List the user data that must have a value before a run and do not have one.",
        a.MissingUserData,
        has_any_size=True,
    ),
    _about(
        "GET",
        "latest_event_timestamp",
        _known(_latest_event_timestamp),
        "Get the time of the newest event, milliseconds since the epoch.",
        a.LatestEvent,
    ),
    _about(
        "GET",
        "ready_job_requirements",
        _ready_job_requirements,
        "Get the sums and maxima of the requirements of all ready jobs.",
        a.ReadyRequirements,
        query={"scheduler_config_id": Parameter(int)},
    ),
    _about(
        "GET",
        "graph",
        _known(lambda tx, call: workflow_queries.dependency_graph(tx, call.id)),
        "Get all dependencies: pairs of jobs, and groups that stand for M x N pairs.",
        a.DependencyGraph,
        has_any_size=True,
    ),
    _about(
        "GET",
        "job_dependencies",
        _paged(workflow_queries.job_dependencies),
        "List all dependencies as pairs of jobs.",
        a.Page[a.JobDependency],
        **_PAGED,
    ),
    _about(
        "GET",
        "job_file_relationships",
        _paged(workflow_queries.job_file_relationships),
        "List which job writes and which job reads which file.",
        a.Page[a.JobFileRelationship],
        **_PAGED,
    ),
    _about(
        "GET",
        "job_user_data_relationships",
        _paged(workflow_queries.job_user_data_relationships),
        "List which job writes and which job reads which user data.",
        a.Page[a.JobUserDataRelationship],
        **_PAGED,
    ),
    _about(
        "POST",
        "actions",
        lambda tx, call: crud.create(tx, actions.ACTIONS, call.body),
        "Create an action.",
        WorkflowActionRecord,
        body=WorkflowActionRecord,
    ),
    _about(
        "GET",
        "actions",
        _sized(lambda tx, call: actions.all_actions(tx, call.id)),
        "List a workflow's actions.",
        list[WorkflowActionRecord],
    ),
    _about(
        "GET",
        "actions/pending",
        _sized(lambda tx, call: actions.due_actions(tx, call.id, call.query["trigger_type"])),
        "List the actions that are due.",
        list[WorkflowActionRecord],
        query={"trigger_type": Parameter(str, (), repeated=True)},
    ),
    _about(
        "POST",
        "actions/{action_id}/claim",
        _claim_action,
        "Claim an action for a runner; 409 if it is claimed already.",
        a.ClaimedAction,
        body=ActionClaim,
    ),
    _about(
        "PUT",
        "actions/{action_id}/result",
        _finish_action,
        "Report how an action ended.",
        WorkflowActionRecord,
        body=ActionEnd,
    ),
    _about(
        "POST",
        "remote_workers",
        lambda tx, call: remote_workers.add_remote_workers(tx, call.id, call.body),
        "Add remote workers, each `[user@]host[:port]`.",
        list[a.RemoteWorker],
        body=list[str],
    ),
    _about(
        "GET",
        "remote_workers",
        lambda tx, call: remote_workers.remote_workers(tx, call.id),
        "List a workflow's remote workers.",
        list[a.RemoteWorker],
    ),
    _about("DELETE", "remote_workers/{worker}", _delete_remote_worker, "Remove a remote worker.", a.RemoteWorker),
)
"""All endpoints below ``/workflows/{id}`` that are not about a record of their own."""
