"""Resets jobs without the jobs that wait for them."""

from collections.abc import Sequence

import sqlalchemy as sa

from torc_framework.models.statuses import JobStatus
from torc_framework.store.database.sql import Statement, Tx, ids_param, number
from torc_framework.store.job_state import transitions
from torc_framework.store.job_state.dependency_counters import dependents_of, recount
from torc_framework.store.tables.core import JOB

_READY = Statement(sa.select(JOB.c.id).where(JOB.c.id.in_(ids_param()), JOB.c.status == number(JobStatus.READY)))


def reset_without_dependents(tx: Tx, workflow_id: int, job_ids: Sequence[int]) -> None:
    """Reset these jobs; dependents that are ready become blocked, all other dependents keep their status."""
    transitions.reset(tx, job_ids)
    ready = [job_id for (job_id,) in tx.rows_for(_READY, dependents_of(tx, job_ids).job_ids)]
    transitions.found_blocked(tx, ready)
    recount(tx, workflow_id)
