"""Claims of jobs by single calls, which Torc's own runners use: by resources, or the next ready jobs."""

import heapq
from collections.abc import Mapping, Sequence
from typing import Any, Final

import sqlalchemy as sa

from torc_framework.models.exchange import Offer
from torc_framework.models.records import JobRecord
from torc_framework.models.resources import format_duration
from torc_framework.models.responses import ClaimedJobs, ReadyRequirements
from torc_framework.models.statuses import JobStatus
from torc_framework.store.database.sql import Row, Statement, Tx, first, ids_param, number, param
from torc_framework.store.errors import NotFoundError
from torc_framework.store.exchange.claims import choose_jobs, delayed_jobs, ready_requirements_later
from torc_framework.store.job_state import transitions
from torc_framework.store.job_state.interruptions import IS_INTERRUPTED
from torc_framework.store.record_kinds.jobs import COLUMNS
from torc_framework.store.records.requirements import check_sort_method
from torc_framework.store.runs.lifecycle import resume_workflow
from torc_framework.store.runs.workflow_status import workflow_status
from torc_framework.store.tables import core as t

CANCELED: Final = "Workflow is canceled"
"""Reason in an empty answer."""
_COLUMNS: Final = (*COLUMNS, "attempt_id")
_CLAIMED = Statement(sa.select(*(t.JOB.c[name] for name in _COLUMNS)).where(t.JOB.c.id.in_(ids_param())))
_OUTPUTS: Final = Statement(
    sa.union_all(
        *(
            sa.select(sa.literal_column(f"'output_{other}s'"), table.c.job_id, table.c[other].label("other")).where(
                table.c.job_id.in_(ids_param())
            )
            for other, table in (("file_id", t.JOB_OUTPUT_FILE), ("user_data_id", t.JOB_OUTPUT_USER_DATA))
        )
    ).order_by("other")
)
"""Name of the record's field, job, and id of a file or of user data that the job writes."""
_STATE: Final = Statement(
    sa.select(
        t.WORKFLOW_STATUS.c.is_canceled,
        sa.exists().where(IS_INTERRUPTED),
        sa.exists().where(t.JOB.c.workflow_id == param("workflow"), t.JOB.c.not_before.is_not(None)),
    ).where(t.WORKFLOW_STATUS.c.id == param("workflow")),
    "workflow",
)
_READY: Final = sa.and_(t.JOB.c.workflow_id == param("workflow"), t.JOB.c.status == number(JobStatus.READY))
_FIRST_OF = Statement(
    first(
        sa.select(t.JOB.c.id)
        .where(_READY, t.JOB.c.resource_requirements_id == param("requirements"))
        .order_by(t.JOB.c.id),
        param("limit"),
    ),
    "workflow",
    "requirements",
    "limit",
)


def claim_by_resources(tx: Tx, workflow_id: int, offer: Offer) -> ClaimedJobs:
    """Claim ready jobs that fit the offered resources, in the order of the offer's sort method.

    Raises:
        NotFoundError: there is no such workflow.
        RuleError: the sort method is not known.
    """
    check_sort_method(offer.sort_method)
    is_canceled, has_interrupted, _ = _state(tx, workflow_id)
    if is_canceled:
        return ClaimedJobs([], CANCELED)
    if has_interrupted and offer.slots + offer.ahead > 0:
        resume_workflow(tx, workflow_id)
    return _claim_and_describe(tx, choose_jobs(tx, workflow_id, offer).job_ids)


def claim_next(tx: Tx, workflow_id: int, limit: int) -> ClaimedJobs:
    """Claim the first ready jobs by id, without a comparison of resources.

    Raises:
        NotFoundError: there is no such workflow.
    """
    requirements = ready_requirements_later(tx, workflow_id)
    is_canceled, has_interrupted, has_delays = _state(tx, workflow_id)
    if is_canceled:
        return ClaimedJobs([], CANCELED)
    if has_interrupted and limit > 0:
        resume_workflow(tx, workflow_id)
        requirements = ready_requirements_later(tx, workflow_id)
    early = delayed_jobs(tx, workflow_id) if has_delays else {}
    most = limit + len(early)
    by_requirements = [tx.rows_later(_FIRST_OF, workflow_id, each.id, most) for each in requirements()]
    ready = (job_id for rows in by_requirements for (job_id,) in rows() if job_id not in early)
    return _claim_and_describe(tx, heapq.nsmallest(limit, ready))


def _state(tx: Tx, workflow_id: int) -> Row:
    """Return whether a workflow is canceled, and whether it has interrupted jobs and delayed ones.

    Raises:
        NotFoundError: there is no such workflow.
    """
    found = tx.row(_STATE, workflow_id)
    if found is None:
        raise NotFoundError("Workflow", workflow_id)
    return found


def _claim_and_describe(tx: Tx, job_ids: Sequence[int]) -> ClaimedJobs:
    """Claim jobs without a compute node; return their records in their order."""
    transitions.claimed(tx, None, job_ids)
    outputs: dict[str, dict[int, list[int]]] = {"output_file_ids": {}, "output_user_data_ids": {}}
    outputs_of = tx.rows_for_later(_OUTPUTS, job_ids)
    records = [dict(zip(_COLUMNS, row, strict=True)) for row in tx.rows_for(_CLAIMED, job_ids)]
    for name, job_id, other in outputs_of():
        outputs[name].setdefault(job_id, []).append(other)
    by_id = {record["id"]: record for record in records}
    return ClaimedJobs([_record(by_id[job_id], outputs) for job_id in job_ids])


def _record(row: dict[str, Any], outputs: Mapping[str, Mapping[int, list[int]]]) -> JobRecord:
    row |= {name: bool(row[name]) for name in ("cancel_on_blocking_job_failure", "supports_termination")}
    row |= {name: others.get(row["id"]) for name, others in outputs.items()}
    return JobRecord(**row, status=JobStatus.PENDING.label)


def ready_requirements_total(tx: Tx, workflow_id: int, scheduler_id: int | None = None) -> ReadyRequirements:
    """Return the sum of the requirements of all ready jobs.

    Args:
        scheduler_id: Record of a scheduler; leave out jobs that are bound to another one.

    Raises:
        NotFoundError: there is no such workflow.
    """
    workflow_status(tx, workflow_id)
    asked, total = t.RESOURCE_REQUIREMENTS.c, sa.func.sum
    query = (
        sa.select(
            sa.func.count(),
            total(asked.num_cpus),
            total(asked.num_gpus),
            total(asked.memory_bytes),
            sa.func.max(asked.num_nodes),
            sa.func.max(asked.runtime_s),
        )
        .select_from(t.JOB.join(t.RESOURCE_REQUIREMENTS, asked.id == t.JOB.c.resource_requirements_id))
        .where(t.JOB.c.workflow_id == workflow_id, t.JOB.c.status == JobStatus.READY.label)
    )
    if scheduler_id is not None:
        query = query.where(sa.or_(t.JOB.c.scheduler_id.is_(None), t.JOB.c.scheduler_id == scheduler_id))
    jobs, cpus, gpus, memory, nodes, runtime = (int(value or 0) for value in tx.connection.execute(query).one())
    return ReadyRequirements(jobs, cpus, gpus, memory / 1024**3, nodes, format_duration(runtime))
