"""Endpoints about one workflow as a whole: its runs, its state, what it needs, what it is made of."""

from typing import Any, Final

from attrs import Factory, define

from torc_framework.models.records import WorkflowActionRecord, WorkflowStatusRecord
from torc_framework.server.endpoints import MAX_LIMIT, PAGE_PARAMETERS, Call, Endpoint, Parameter, Work, page
from torc_framework.server.scopes import WORKFLOW
from torc_framework.store import actions, lookups, runs
from torc_framework.store.records import create
from torc_framework.store.sql import Tx


@define
class BeginRun:
    """Body of ``begin_run``."""

    file_mtimes: dict[int, float | None] = Factory(dict)
    only_uninitialized: bool = False
    force: bool = False


@define
class ActionClaim:
    """Body of an action's ``claim``."""

    compute_node_id: int | None = None


@define
class StatusChange:
    """Body of ``PUT status``: all four fields are written, absent ones as false."""

    run_id: int
    is_canceled: bool = False
    is_archived: bool = False
    has_detected_need_to_run_completion_script: bool = False


def _begin_run(tx: Tx, call: Call) -> Any:
    asked: BeginRun = call.body
    return runs.begin_run(
        tx, call.id, asked.file_mtimes, only_uninitialized=asked.only_uninitialized, force=asked.force
    )


def _put_status(tx: Tx, call: Call) -> Any:
    wanted: StatusChange = call.body
    status = WorkflowStatusRecord(
        id=call.id,
        run_id=wanted.run_id,
        is_canceled=wanted.is_canceled,
        is_archived=wanted.is_archived,
        has_detected_need_to_run_completion_script=wanted.has_detected_need_to_run_completion_script,
    )
    return runs.put_status(tx, status)


def _cancel(tx: Tx, call: Call) -> Any:
    runs.cancel(tx, call.id)
    return {"message": f"Workflow {call.id} canceled"}


def _initialize_jobs(tx: Tx, call: Call) -> Any:
    runs.initialize_jobs(tx, call.id, **call.query)
    return {"message": f"Initialized jobs of workflow {call.id}"}


def _reset_status(tx: Tx, call: Call) -> Any:
    runs.reset_status(tx, call.id, force=call.query["force"])
    return {"message": f"Reset status of workflow {call.id}"}


def _reset_job_status(tx: Tx, call: Call) -> Any:
    failed_only = call.query["failed_only"]
    count = runs.reset_job_status(tx, call.id, failed_only=failed_only)
    answer = {"workflow_id": call.id, "updated_count": count, "status": "uninitialized"}
    return answer | ({"reset_type": "failed_only"} if failed_only else {})


def _job_counts(tx: Tx, call: Call) -> Any:
    counts = runs.job_counts(tx, call.id)
    return {"counts": counts, "total": sum(counts.values())}


def _job_ids(tx: Tx, call: Call) -> Any:
    found = lookups.job_ids(tx, call.id)
    return {"job_ids": found, "count": len(found)}


def _required_existing_files(tx: Tx, call: Call) -> Any:
    return {"files": [str(file_id) for file_id in lookups.required_existing_files(tx, call.id)]}


def _missing_user_data(tx: Tx, call: Call) -> Any:
    return {"user_data": lookups.missing_user_data(tx, call.id)}


def _latest_event_timestamp(tx: Tx, call: Call) -> Any:
    return {"timestamp": lookups.latest_event_timestamp(tx, call.id)}


def _job_dependencies(tx: Tx, call: Call) -> Any:
    offset, limit = call.query["offset"], min(call.query["limit"], MAX_LIMIT)
    pairs, total = lookups.job_dependencies(tx, call.id, offset, limit)
    return page(pairs, offset, total)


def _claim_action(tx: Tx, call: Call) -> Any:
    action_id = call.ids["action_id"]
    actions.claim_action(tx, call.id, action_id, call.body.compute_node_id)
    return {"action_id": action_id, "success": True, "claimed": True}


def _known(work: Work) -> Work:
    """Return the work, refused with 404 when there is no such workflow."""

    def checked(tx: Tx, call: Call) -> Any:
        runs.status(tx, call.id)
        return work(tx, call)

    checked.__doc__ = work.__doc__
    return checked


def _flag(*, default: bool) -> Parameter:
    return Parameter(bool, default)


_INITIALIZE: Final = {
    "only_uninitialized": _flag(default=False),
    "clear_ephemeral_user_data": _flag(default=True),
}
_STATUS: Final = WorkflowStatusRecord
_TRIGGERS: Final = {"trigger_type": Parameter(str, (), repeated=True)}
_W: Final = "/workflows/{id}"

WORKFLOW_ENDPOINTS: Final = (
    Endpoint("POST", f"{_W}/begin_run", _begin_run, changes=True, body=BeginRun, answers=_STATUS, scope=WORKFLOW),
    Endpoint("GET", f"{_W}/status", lambda tx, call: runs.status(tx, call.id), answers=_STATUS, scope=WORKFLOW),
    Endpoint("PUT", f"{_W}/status", _put_status, changes=True, body=StatusChange, answers=_STATUS, scope=WORKFLOW),
    Endpoint("PUT", f"{_W}/cancel", _cancel, changes=True, scope=WORKFLOW),
    Endpoint("POST", f"{_W}/initialize_jobs", _initialize_jobs, changes=True, query=_INITIALIZE, scope=WORKFLOW),
    Endpoint(
        "POST", f"{_W}/reset_status", _reset_status, changes=True, query={"force": _flag(default=False)}, scope=WORKFLOW
    ),
    Endpoint(
        "POST",
        f"{_W}/reset_job_status",
        _reset_job_status,
        changes=True,
        query={"failed_only": _flag(default=False)},
        scope=WORKFLOW,
    ),
    Endpoint(
        "GET", f"{_W}/is_complete", lambda tx, call: runs.outcome(tx, call.id), answers=runs.Outcome, scope=WORKFLOW
    ),
    Endpoint(
        "GET",
        f"{_W}/is_uninitialized",
        lambda tx, call: {"is_uninitialized": runs.is_uninitialized(tx, call.id)},
        scope=WORKFLOW,
    ),
    Endpoint("GET", f"{_W}/job_counts", _known(_job_counts), scope=WORKFLOW),
    Endpoint("GET", f"{_W}/job_ids", _known(_job_ids), scope=WORKFLOW),
    Endpoint("GET", f"{_W}/required_existing_files", _known(_required_existing_files), scope=WORKFLOW),
    Endpoint("GET", f"{_W}/missing_user_data", _known(_missing_user_data), scope=WORKFLOW),
    Endpoint("GET", f"{_W}/latest_event_timestamp", _known(_latest_event_timestamp), scope=WORKFLOW),
    Endpoint("GET", f"{_W}/graph", _known(lambda tx, call: lookups.dependency_graph(tx, call.id)), scope=WORKFLOW),
    Endpoint("GET", f"{_W}/job_dependencies", _known(_job_dependencies), query=PAGE_PARAMETERS, scope=WORKFLOW),
    Endpoint(
        "POST",
        f"{_W}/actions",
        lambda tx, call: create(tx, actions.ACTIONS, call.body),
        changes=True,
        body=WorkflowActionRecord,
        answers=WorkflowActionRecord,
        scope=WORKFLOW,
    ),
    Endpoint(
        "GET",
        f"{_W}/actions",
        lambda tx, call: actions.all_actions(tx, call.id),
        answers=list[WorkflowActionRecord],
        scope=WORKFLOW,
    ),
    Endpoint(
        "GET",
        f"{_W}/actions/pending",
        lambda tx, call: actions.due_actions(tx, call.id, call.query["trigger_type"]),
        query=_TRIGGERS,
        answers=list[WorkflowActionRecord],
        scope=WORKFLOW,
    ),
    Endpoint(
        "POST", f"{_W}/actions/{{action_id}}/claim", _claim_action, changes=True, body=ActionClaim, scope=WORKFLOW
    ),
)
"""Everything below ``/workflows/{id}`` that is no record of its own."""
