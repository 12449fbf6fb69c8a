"""The progress of workflows: numbers of jobs by status, loads of runners, recent completions.

No query reads a row for each job, except in indexes.
"""

import time
from collections import defaultdict
from collections.abc import Iterable, Sequence
from datetime import datetime, timedelta
from typing import Any, Final

import sqlalchemy as sa

from torc_framework.models.progress import RunnerLoad
from torc_framework.models.runner_states import SILENT_AFTER_S
from torc_framework.models.statuses import LIVE, JobStatus
from torc_framework.store.database.sql import Row, Statement, Tx, first, ids_param, number, numbers, param
from torc_framework.store.records.events import utc_text
from torc_framework.store.records.kind import Values
from torc_framework.store.tables import core as t
from torc_framework.store.tables.allocations import SCHEDULED_COMPUTE_NODE

RECENT: Final = 200
"""Most ends of results that `workflow_progress` returns."""
_UNKNOWN_CLASS: Final = "unknown"
_NODE, _ALLOCATION = t.COMPUTE_NODE.c, SCHEDULED_COMPUTE_NODE.c
_FAILED: Final = (JobStatus.FAILED, JobStatus.TERMINATED)

# --- many workflows -------------------------------------------------------------------------------

_STATUSES: Final = Statement(
    sa.select(
        t.WORKFLOW_STATUS.c.id, t.WORKFLOW_STATUS.c.run_id, t.WORKFLOW_STATUS.c.is_canceled,
        t.WORKFLOW_STATUS.c.is_archived,
    ).where(t.WORKFLOW_STATUS.c.id.in_(ids_param()))
)  # fmt: skip
_COUNTS: Final = Statement(
    sa.select(t.JOB.c.workflow_id, t.JOB.c.status, sa.func.count())
    .where(t.JOB.c.workflow_id.in_(ids_param()))
    .group_by(t.JOB.c.workflow_id, t.JOB.c.status)
)
_NEWEST_EVENT: Final = (
    sa.select(sa.func.max(t.EVENT.c.timestamp)).where(t.EVENT.c.workflow_id == t.WORKFLOW.c.id).scalar_subquery()
)
_UPDATES: Final = Statement(sa.select(t.WORKFLOW.c.id, _NEWEST_EVENT).where(t.WORKFLOW.c.id.in_(ids_param())))


def _count(table: sa.Table, condition: sa.ColumnElement[bool], *names: str) -> Statement:
    """Return the query for the number of rows that satisfy a condition, by workflow; the names are its parameters."""
    column = table.c.workflow_id
    return Statement(
        sa.select(column, sa.func.count()).where(column.in_(ids_param()), condition).group_by(column), *names
    )


_INTERRUPTED: Final = _count(t.JOB, t.JOB.c.is_interrupted != number(0))
_RUNNERS: Final = _count(t.COMPUTE_NODE, _NODE.is_active == number(1))
_SILENT: Final = _count(
    t.COMPUTE_NODE, sa.and_(_NODE.is_active == number(1), _NODE.last_heard_at < param("heard")), "heard"
)
_QUEUED: Final = _count(SCHEDULED_COMPUTE_NODE, _ALLOCATION.status == sa.literal_column("'pending'"))


def workflow_overviews(tx: Tx, workflows: Sequence[Values]) -> list[Values]:
    """Return these workflows with the numbers that tell their states, as values of `WorkflowOverview`."""
    ids = [workflow["id"] for workflow in workflows]
    counts: defaultdict[int, dict[str, int]] = defaultdict(dict)
    for workflow_id, status, count in _rows(tx, _COUNTS, ids):
        counts[workflow_id][JobStatus(status).label] = count
    statuses = {row[0]: row[1:] for row in _rows(tx, _STATUSES, ids)}
    interrupted, runners, queued, updates = (
        dict(_rows(tx, query, ids)) for query in (_INTERRUPTED, _RUNNERS, _QUEUED, _UPDATES)
    )
    silent: dict[int, int] = dict(tx.rows_for(_SILENT, ids, utc_text(time.time() - SILENT_AFTER_S))) if runners else {}
    found = []
    for workflow in workflows:
        id_ = workflow["id"]
        run_id, is_canceled, is_archived = statuses[id_]
        found.append(
            {
                "workflow": workflow,
                "run_id": run_id,
                "is_canceled": bool(is_canceled),
                "is_archived": bool(is_archived),
                "counts": counts[id_],
                "interrupted": interrupted.get(id_, 0),
                "active_runners": runners.get(id_, 0),
                "silent_runners": silent.get(id_, 0),
                "queued_allocations": queued.get(id_, 0),
                "updated_at": updates[id_],
            }
        )
    return found


def _rows(tx: Tx, query: Statement, ids: Sequence[int]) -> Iterable[Any]:
    return tx.rows_for(query, ids)


# --- one workflow ---------------------------------------------------------------------------------

_READY: Final = Statement(
    sa.select(t.JOB.c.resource_requirements_id, sa.func.count())
    .where(t.JOB.c.workflow_id == param("workflow"), t.JOB.c.status == number(JobStatus.READY))
    .group_by(t.JOB.c.resource_requirements_id),
    "workflow",
)
_CLASS: Final = sa.func.coalesce(t.RESULT.c.exit_class, sa.literal_column(f"'{_UNKNOWN_CLASS}'"))
_FAILURES: Final = Statement(
    sa.select(_CLASS, sa.func.count())
    .select_from(t.JOB.outerjoin(t.RESULT, t.RESULT.c.id == t.JOB.c.result_id))
    .where(
        t.JOB.c.workflow_id == param("workflow"),
        t.JOB.c.status.in_(numbers(_FAILED)),
        t.JOB.c.is_interrupted == number(0),
    )
    .group_by(_CLASS),
    "workflow",
)
_REQUESTS: Final = t.RESOURCE_REQUIREMENTS.c
_LOADS: Final = Statement(
    sa.select(
        t.JOB.c.active_compute_node_id,
        t.JOB.c.status,
        sa.func.count(),
        sa.func.sum(_REQUESTS.num_cpus * _REQUESTS.num_nodes),
        sa.func.sum(_REQUESTS.memory_bytes * _REQUESTS.num_nodes),
    )
    .join(t.RESOURCE_REQUIREMENTS, _REQUESTS.id == t.JOB.c.resource_requirements_id)
    .where(
        t.JOB.c.workflow_id == param("workflow"),
        t.JOB.c.status.in_(numbers(LIVE)),
        t.JOB.c.active_compute_node_id.is_not(None),
    )
    .group_by(t.JOB.c.active_compute_node_id, t.JOB.c.status)
    .order_by(t.JOB.c.active_compute_node_id),
    "workflow",
)
_IN_RUN: Final = (t.RESULT.c.workflow_id == param("workflow"), t.RESULT.c.run_id == param("run"))
_NEWEST: Final = Statement(
    first(
        sa.select(t.RESULT.c.completion_time)
        .where(*_IN_RUN, sa.exists().where(t.JOB.c.id == t.RESULT.c.job_id, t.JOB.c.result_id == t.RESULT.c.id))
        .order_by(t.RESULT.c.id.desc()),
        sa.literal_column(str(RECENT), sa.Integer),
    ),
    "workflow",
    "run",
)
_OLDEST: Final = Statement(
    first(
        sa.select(t.RESULT.c.completion_time, t.RESULT.c.exec_time_minutes).where(*_IN_RUN).order_by(t.RESULT.c.id),
        sa.literal_column("1", sa.Integer),
    ),
    "workflow",
    "run",
)


def workflow_progress(tx: Tx, workflow: Values) -> Values:
    """Return the progress of one workflow, as values of `WorkflowProgress`."""
    (overview,) = workflow_overviews(tx, [workflow])
    workflow_id, run_id = workflow["id"], overview["run_id"]
    return {
        "overview": overview,
        "ready": dict(tx.rows(_READY, workflow_id)),
        "failures": dict(tx.rows(_FAILURES, workflow_id)),
        "loads": _loads(tx, workflow_id),
        "recent": [row[0] for row in tx.rows(_NEWEST, workflow_id, run_id)],
        "started_at": _started_at(tx.row(_OLDEST, workflow_id, run_id)),
    }


def _loads(tx: Tx, workflow_id: int) -> list[RunnerLoad]:
    loads: dict[int, RunnerLoad] = {}
    rows: Iterable[Any] = tx.rows(_LOADS, workflow_id)
    for node_id, status, jobs, cpus, memory in rows:
        load = loads.setdefault(node_id, RunnerLoad(node_id, 0, 0, 0))
        if status == JobStatus.RUNNING:
            load.jobs, load.num_cpus, load.memory_bytes = jobs, int(cpus), int(memory)
        else:
            load.claimed = jobs
    return [*loads.values()]


def _started_at(oldest: Row | None) -> str | None:
    """Return when the attempt of the oldest result began."""
    if oldest is None:
        return None
    ended, minutes = oldest
    try:
        return utc_text((datetime.fromisoformat(ended) - timedelta(minutes=minutes)).timestamp())
    except (ValueError, OverflowError):  # a client stored any text and number
        return None
