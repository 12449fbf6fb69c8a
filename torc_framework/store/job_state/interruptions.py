"""Interrupted jobs: they are terminated only because their runner had to end, and run again.

Until they run again they count as unfinished: their dependents wait, the workflow is not complete, and no action that
waits for their end is due. They become ready in the transaction in which any runner next asks for jobs, or when a user
asks for it. Interrupted jobs of a canceled workflow do not become ready.
"""

from typing import Any, Final

import sqlalchemy as sa

from torc_framework.models.statuses import UNBLOCKING, UNFINISHED
from torc_framework.store.database.sql import Statement, Tx, number, numbers, param
from torc_framework.store.job_state import transitions
from torc_framework.store.records.events import JOBS_A_ROW, TransactionEvents
from torc_framework.store.tables.core import JOB


def is_over(job: Any = JOB) -> sa.ColumnElement[bool]:
    """Return the condition that a job is over: its dependents do not wait for it any more."""
    return sa.and_(job.c.status.in_(numbers(UNBLOCKING)), job.c.is_interrupted == number(0))


IS_INTERRUPTED: Final = sa.and_(JOB.c.workflow_id == param("workflow"), JOB.c.is_interrupted != number(0))
"""The condition that a job of the workflow is interrupted; it uses the index of interrupted jobs."""
IS_UNFINISHED: Final = sa.or_(
    sa.exists().where(JOB.c.workflow_id == param("workflow"), JOB.c.status.in_(numbers(UNFINISHED))),
    sa.exists().where(IS_INTERRUPTED),
)
"""The condition that the workflow has a job that is not finished."""
_INTERRUPTED = Statement(sa.select(JOB.c.id).where(IS_INTERRUPTED).order_by(JOB.c.id), "workflow")
_COUNT = Statement(sa.select(sa.func.count()).select_from(JOB).where(IS_INTERRUPTED), "workflow")


def count_interrupted(tx: Tx, workflow_id: int) -> int:
    """Return how many jobs of a workflow are interrupted."""
    return int(tx.value(_COUNT, workflow_id))


def resume_interrupted(tx: Tx, events: TransactionEvents) -> list[int]:
    """Make the interrupted jobs of a workflow ready for their next attempt; return their ids.

    Args:
        events: Events of the workflow, to which those of the jobs are added.
    """
    job_ids = [job_id for (job_id,) in tx.rows(_INTERRUPTED, events.workflow_id)]
    if job_ids:
        transitions.resumed(tx, job_ids)
        tx.workflows_with_ready_jobs.add(events.workflow_id)
    for start in range(0, len(job_ids), JOBS_A_ROW):
        events.add("jobs_resumed", job_ids=job_ids[start : start + JOBS_A_ROW])
    return job_ids
