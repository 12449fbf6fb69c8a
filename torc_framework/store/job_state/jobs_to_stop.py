"""Requests to runners to stop jobs: those that are deleted, and those that a person takes from them.

The row of a deleted job is deleted at once. Later reports of its runner name no job, and change nothing.
"""

from collections.abc import Sequence
from typing import Final

import sqlalchemy as sa

from torc_framework.models.statuses import LIVE, JobStatus
from torc_framework.store.database.sql import Row, Statement, Tx, ids_param, numbers, param
from torc_framework.store.errors import ConflictError
from torc_framework.store.tables.core import COMPUTE_NODE, JOB
from torc_framework.store.tables.internal import JOB_TO_STOP

_LIVE: Final = sa.select(JOB.c.id, JOB.c.name, JOB.c.status)
_LIVE_AMONG: Final = Statement(_LIVE.where(JOB.c.id.in_(ids_param()), JOB.c.status.in_(numbers(LIVE))))
_LIVE_OF: Final = Statement(
    _LIVE.where(JOB.c.workflow_id == param("workflow"), JOB.c.status.in_(numbers(LIVE))), "workflow"
)
_REQUEST_STOPS: Final = Statement(
    sa.insert(JOB_TO_STOP).from_select(
        ["compute_node_id", "job_id"],
        sa.select(COMPUTE_NODE.c.id, JOB.c.id)
        .select_from(JOB.join(COMPUTE_NODE, COMPUTE_NODE.c.id == JOB.c.active_compute_node_id))
        .where(
            JOB.c.id.in_(ids_param()),
            JOB.c.status.in_(numbers(LIVE)),
            COMPUTE_NODE.c.is_active,
            ~sa.exists().where(JOB_TO_STOP.c.compute_node_id == COMPUTE_NODE.c.id, JOB_TO_STOP.c.job_id == JOB.c.id),
        ),
    )
)
_STOP_REQUESTS: Final = Statement(
    sa.select(JOB_TO_STOP.c.job_id).where(JOB_TO_STOP.c.compute_node_id == param("node")), "node"
)
_DELETE_STOP_REQUESTS: Final = Statement(
    sa.delete(JOB_TO_STOP).where(JOB_TO_STOP.c.compute_node_id == param("node")), "node"
)
_EXISTING: Final = Statement(sa.select(JOB.c.id).where(JOB.c.id.in_(ids_param())))


def prepare_job_deletion(tx: Tx, workflow_id: int, job_ids: Sequence[int], *, force: bool) -> None:
    """Store requests to runners to stop those of the jobs that they hold, before the jobs are deleted.

    Raises:
        ConflictError: without ``force``, some of them are pending or running; the message has the first.
    """
    _refuse(tx.rows_for(_LIVE_AMONG, job_ids), force=force)
    request_stops(tx, workflow_id, job_ids)


def request_stops(tx: Tx, workflow_id: int, job_ids: Sequence[int]) -> None:
    """Store requests to active runners to stop those of the jobs that they hold, before these are taken from them."""
    if tx.changed_for(_REQUEST_STOPS, job_ids):
        tx.workflows_to_wake.add(workflow_id)


def check_workflow_deletable(tx: Tx, workflow_id: int, *, force: bool) -> None:
    """Check that a workflow may be deleted; its runners end when they find that it does not exist.

    Raises:
        ConflictError: without ``force``, some of its jobs are pending or running; the message has the first.
    """
    if not force:
        _refuse(tx.rows(_LIVE_OF, workflow_id), force=force)


def _refuse(live: Sequence[Row], *, force: bool) -> None:
    if not live or force:
        return
    job_id, name, status = min(live)
    more = f" and {len(live) - 1} more" if len(live) > 1 else ""
    raise ConflictError(
        f"Job {job_id} ({name}) is {JobStatus(status).label}{more}: nothing was deleted. Wait for the end, cancel "
        "the workflow, or delete with force, which stops what runs"
    )


def take_stop_requests(tx: Tx, node_id: int, holding: Sequence[int] | None) -> list[int]:
    """Return jobs that a runner has to stop, and delete the requests.

    Args:
        holding: All jobs that the runner holds, if it lost a reply: deleted ones among them are returned, too.
    """
    to_stop = {job_id for (job_id,) in tx.rows(_STOP_REQUESTS, node_id)}
    if to_stop:
        tx.run(_DELETE_STOP_REQUESTS, node_id)
    if holding:
        to_stop |= set(holding) - {job_id for (job_id,) in tx.rows_for(_EXISTING, sorted(set(holding)))}
    return sorted(to_stop)
