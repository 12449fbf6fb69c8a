"""What lists show of jobs whose ids are in a range: the few values of their present results, and names."""

from typing import Final

import sqlalchemy as sa

from torc_framework.models.progress import JobEnding, NamesOfJobs
from torc_framework.models.statuses import JobStatus
from torc_framework.store.database.sql import Statement, Tx, param
from torc_framework.store.tables import core as t

_R = t.RESULT.c
_ENDINGS: Final = Statement(
    sa.select(
        t.JOB.c.id,
        _R.status,
        _R.return_code,
        _R.exec_time_minutes,
        _R.exit_code,
        _R.signal,
        _R.exit_class,
        _R.peak_memory_bytes,
    )
    .join(t.RESULT, _R.id == t.JOB.c.result_id)
    .where(t.JOB.c.workflow_id == param("workflow"), t.JOB.c.id >= param("first"), t.JOB.c.id <= param("last"))
    .order_by(t.JOB.c.id),
    "workflow",
    "first",
    "last",
)


def job_endings(tx: Tx, workflow_id: int, first_job_id: int, last_job_id: int) -> list[JobEnding]:
    """Return how the jobs of a workflow ended whose ids are in a range; jobs without a result are left out."""
    rows = tx.rows(_ENDINGS, workflow_id, first_job_id, last_job_id)
    return [JobEnding(job_id, JobStatus(status).label, *values) for job_id, status, *values in rows]


_NAMES: Final = Statement(
    sa.select(t.JOB.c.id, t.JOB.c.name)
    .where(t.JOB.c.workflow_id == param("workflow"), t.JOB.c.id >= param("first"), t.JOB.c.id <= param("last"))
    .order_by(t.JOB.c.id),
    *("workflow", "first", "last"),
)


def job_names(tx: Tx, workflow_id: int, first_job_id: int, last_job_id: int) -> NamesOfJobs:
    """Return the names of the jobs of a workflow whose ids are in a range."""
    rows = tx.rows(_NAMES, workflow_id, first_job_id, last_job_id)
    return NamesOfJobs([job_id for job_id, _ in rows], [name for _, name in rows])
