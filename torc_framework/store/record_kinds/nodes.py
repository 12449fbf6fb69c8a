"""The kinds of records of runners (compute nodes) and of the nodes that were asked for (scheduled compute nodes)."""

from typing import Final

import sqlalchemy as sa

from torc_framework.models import records as r
from torc_framework.models.statuses import LIVE, JobStatus
from torc_framework.store.database.sql import Statement, Tx, numbers, param
from torc_framework.store.errors import ConflictError
from torc_framework.store.job_state.triggers import reopen_actions
from torc_framework.store.record_kinds.list_filters import as_text, equals
from torc_framework.store.records.events import TransactionEvents
from torc_framework.store.records.kind import ListFilter, RecordKind, Values, changes_without_nulls
from torc_framework.store.tables import core as t
from torc_framework.store.tables.allocations import SCHEDULED_COMPUTE_NODE


def _add_node_event(tx: Tx, node: Values, event_type: str) -> None:
    events = TransactionEvents(node["workflow_id"])
    events.add(
        event_type,
        compute_node_id=node["id"],
        hostname=node["hostname"],
        compute_node_type=node["compute_node_type"],
    )
    events.write(tx)


_HELD: Final = Statement(
    sa.select(t.JOB.c.id, t.JOB.c.name, t.JOB.c.status)
    .where(t.JOB.c.active_compute_node_id == param("node"), t.JOB.c.status.in_(numbers(LIVE)))
    .order_by(t.JOB.c.id),
    "node",
)


def _end_lease(tx: Tx, node: Values, changes: Values) -> Values:
    """Refuse to end a runner that holds jobs; raise the epoch of the lease of one that ends.

    Raises:
        ConflictError: it holds jobs.
    """
    changes = changes_without_nulls(tx, node, changes)
    if not node.get("is_active") or changes.get("is_active", True):
        return changes
    if held := tx.rows(_HELD, node["id"]):
        job_id, name, status = held[0]
        more = f", and {len(held) - 1} more" if len(held) > 1 else ""
        raise ConflictError(
            f"Compute node {node['id']} cannot end: it holds job {job_id} ({name}), which is "
            f"{JobStatus(status).label}{more}. Report the end of each, or release it, before; 'torc workflows "
            "sync-status' does that for a runner that is dead"
        )
    return {**changes, "epoch": (node.get("epoch") or 0) + 1}


def _node_changed(tx: Tx, before: Values, after: Values) -> None:
    if before.get("is_active") and not after.get("is_active"):
        reopen_actions(tx, after["id"])
        _add_node_event(tx, after, "compute_node_stopped")
    if bool(before.get("is_draining")) != bool(after.get("is_draining")):
        tx.workflows_to_wake.add(after["workflow_id"])
        if after.get("is_draining"):
            _add_node_event(tx, after, "compute_node_draining")


COMPUTE_NODES: Final = RecordKind(
    path="compute_nodes",
    title="Compute node",
    record=r.ComputeNodeRecord,
    table=t.COMPUTE_NODE,
    filters={
        **equals(t.COMPUTE_NODE, hostname=str),
        "is_active": ListFilter(
            bool,
            lambda yes: t.COMPUTE_NODE.c.is_active if yes else sa.func.coalesce(t.COMPUTE_NODE.c.is_active, False) == 0,
        ),
        "scheduled_compute_node_id": ListFilter(
            int, lambda value: sa.cast(t.COMPUTE_NODE.c.scheduler["scheduler_id"].as_string(), sa.String) == str(value)
        ),
    },
    after_create=lambda tx, node: _add_node_event(tx, node, "compute_node_started"),
    before_update=_end_lease,
    after_update=_node_changed,
)


def _add_allocation_event(tx: Tx, node: Values) -> None:
    if node.get("request") is not None and node.get("allocation_id") is None:
        return  # a request; the allocations that it obtains have records of their own
    events = TransactionEvents(node["workflow_id"])
    events.add(
        "scheduler_node_created",
        scheduled_compute_node_id=node["id"],
        scheduler_id=node["scheduler_id"],
        scheduler_type=node["scheduler_type"],
    )
    events.write(tx)


SCHEDULED_COMPUTE_NODES: Final = RecordKind(
    path="scheduled_compute_nodes",
    title="Scheduled compute node",
    record=r.ScheduledComputeNodeRecord,
    table=SCHEDULED_COMPUTE_NODE,
    filters={
        **equals(SCHEDULED_COMPUTE_NODE, status=str, scheduler_type=str, allocation_id=str),
        "scheduler_id": as_text(SCHEDULED_COMPUTE_NODE.c.scheduler_id),
        "scheduler_config_id": as_text(SCHEDULED_COMPUTE_NODE.c.scheduler_config_id),
    },
    after_create=_add_allocation_event,
)
