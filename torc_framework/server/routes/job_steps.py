"""Endpoints for the single steps of a job: claim, start, complete, retry, for clients that do not use the exchange; and
for the lease of a dead runner.
"""

from typing import Annotated, Any, Final

import msgspec
from attrs import define

from torc_framework.models import responses as a
from torc_framework.models.exchange import Offer, TakenLeases, TakeOverOrder
from torc_framework.models.records import JobRecord, ResultRecord
from torc_framework.models.resources import Resources, parse_duration
from torc_framework.models.statuses import JobStatus
from torc_framework.server.auth.permissions import WORKFLOW_IN_PATH, record_permission
from torc_framework.server.dispatch.endpoint import Endpoint, EndpointFunction
from torc_framework.server.http.endpoint_calls import EndpointCall, Parameter
from torc_framework.server.http.endpoint_results import RequestError
from torc_framework.store.database.sql import Tx
from torc_framework.store.errors import RuleError
from torc_framework.store.exchange import leases, single_claims, single_steps
from torc_framework.store.exchange.status_changes import change_status
from torc_framework.store.record_kinds.jobs import JOBS, MAX_BATCH
from torc_framework.store.record_kinds.nodes import COMPUTE_NODES

_Amount = Annotated[int, msgspec.Meta(ge=0, le=2**63 - 1)]


@define
class WorkerResources:
    """Body of ``claim_jobs_based_on_resources``: resources of a runner; memory in GiB, time as ISO 8601 duration."""

    num_cpus: _Amount
    memory_gb: Annotated[float, msgspec.Meta(ge=0, le=2**30)]
    num_gpus: _Amount
    num_nodes: _Amount
    time_limit: str | None = None
    scheduler_config_id: Annotated[int, msgspec.Meta(ge=-(2**63), le=2**63 - 1)] | None = None
    id: int | None = None


def _claim_by_resources(tx: Tx, call: EndpointCall) -> a.ClaimedJobs:
    offered: WorkerResources = call.body
    free = Resources(
        num_cpus=offered.num_cpus,
        memory_bytes=int(offered.memory_gb * 1024**3),
        num_gpus=offered.num_gpus,
        num_nodes=offered.num_nodes,
        runtime_s=_seconds(offered.time_limit),
    )
    offer = Offer(
        slots=_limit(call.ids["limit"]),
        free=free,
        sort_method=call.query["sort_method"],
        scheduler_config_id=offered.scheduler_config_id,
        strict_scheduler_match=call.query["strict_scheduler_match"],
    )
    return single_claims.claim_by_resources(tx, call.id, offer)


def _seconds(time_limit: str | None) -> int | None:
    if time_limit is None:
        return None
    try:
        return parse_duration(time_limit)
    except ValueError as error:
        raise RuleError(f"time_limit: {error}") from error


def _limit(wanted: int) -> int:
    if wanted < 0:
        raise RequestError(f"limit: {wanted} is negative")
    return min(wanted, MAX_BATCH)


def _claim_next(tx: Tx, call: EndpointCall) -> a.ClaimedJobs:
    return single_claims.claim_next(tx, call.id, _limit(call.query["limit"]))


def _start(tx: Tx, call: EndpointCall) -> Any:
    return single_steps.start_job(tx, call.id, call.ids["run_id"], call.ids["compute_node_id"])


def _complete(tx: Tx, call: EndpointCall) -> Any:
    return single_steps.complete_job(tx, call.id, _status(call), call.ids["run_id"], call.body)


def _change_status(tx: Tx, call: EndpointCall) -> Any:
    return change_status(tx, call.id, _status(call), call.ids["run_id"], call.caller.name)


def _status(call: EndpointCall) -> str:
    """Return the status in the path."""
    try:
        return JobStatus.from_label(call.words["status"]).label
    except ValueError as error:
        raise RequestError(f"path: status: {error}") from error


def _retry(tx: Tx, call: EndpointCall) -> Any:
    return single_steps.retry_job(tx, call.id, call.ids["run_id"], call.query["max_retries"])


_OF_JOB: Final = record_permission(JOBS)


def _take_over(tx: Tx, call: EndpointCall) -> TakenLeases:
    return leases.take_over(tx, call.id, call.body)


def _step(method: str, path: str, function: EndpointFunction, summary: str, **more: Any) -> Endpoint:
    """Return the endpoint of one step of a job."""
    path = f"/jobs/{{id}}/{path}"
    common: dict[str, Any] = {"response": JobRecord, "permission": _OF_JOB, "tags": ["jobs"]}
    return Endpoint(method, path, function, changes=True, summary=summary, **common, **more)


JOB_STEP_ENDPOINTS: Final = (
    Endpoint(
        "POST",
        "/workflows/{id}/claim_jobs_based_on_resources/{limit}",
        _claim_by_resources,
        changes=True,
        summary="Claim up to `limit` ready jobs that fit what a runner offers; they become pending.",
        query={"sort_method": Parameter(str, "none"), "strict_scheduler_match": Parameter(bool, default=False)},
        body=WorkerResources,
        response=a.ClaimedJobs,
        permission=WORKFLOW_IN_PATH,
    ),
    Endpoint(
        "POST",
        "/workflows/{id}/claim_next_jobs",
        _claim_next,
        changes=True,
        summary="Claim the next ready jobs, without regard to their requirements; they become pending.",
        query={"limit": Parameter(int, 10)},
        response=a.ClaimedJobs,
        permission=WORKFLOW_IN_PATH,
    ),
    Endpoint(
        "POST",
        "/compute_nodes/{id}/take_over",
        _take_over,
        changes=True,
        summary="Take the lease of a dead runner, if it still has the epoch that the caller has read.",
        body=TakeOverOrder,
        response=TakenLeases,
        permission=record_permission(COMPUTE_NODES),
        tags=["compute_nodes"],
    ),
    _step(
        "PUT",
        "start_job/{run_id}/{compute_node_id}",
        _start,
        "Report that a claimed job runs on a compute node.",
    ),
    _step(
        "POST",
        "complete_job/{status}/{run_id}",
        _complete,
        "Report how a job ended; its dependents become ready or canceled.",
        body=ResultRecord,
    ),
    _step(
        "POST",
        "retry/{run_id}",
        _retry,
        "Give a failed job another attempt, at most `max_retries` in all.",
        query={"max_retries": Parameter(int)},
    ),
    _step(
        "PUT",
        "manage_status_change/{status}/{run_id}",
        _change_status,
        "Set a job's status directly; use `complete_job` for the end of an attempt.",
    ),
)
"""All endpoints for the steps of a job and for leases."""
