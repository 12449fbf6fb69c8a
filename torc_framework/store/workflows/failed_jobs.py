"""The failed jobs of a workflow with their attempts that failed, and the work that other jobs have lost."""

from typing import Any, Final

import sqlalchemy as sa

from torc_framework.models.exits import ExitClass
from torc_framework.models.failed_jobs import FailedJobs, LostWork
from torc_framework.models.statuses import FAILURES, UNSUCCESSFUL
from torc_framework.store.database.sql import Statement, Tx, first, number, numbers, param
from torc_framework.store.record_kinds.jobs import JOBS
from torc_framework.store.record_kinds.results import RESULTS
from torc_framework.store.records.crud import find
from torc_framework.store.records.kind import PageRequest
from torc_framework.store.tables import core as t

PAGE_JOBS: Final = 1000
"""Jobs of one page."""
_J: Final = t.JOB.c
_R: Final = t.RESULT.c
_IS_FAILED: Final = sa.and_(_J.status.in_(numbers(FAILURES)), _J.is_interrupted == number(0))
FEW_FAILED: Final = 20 * PAGE_JOBS
"""Most failed jobs that are sorted for each page; to find more than these, the jobs are read in the order of ids."""
_ID: Final = _J.id + number(0)
_STATUS: Final = sa.type_coerce(_J.status, sa.Integer)
_FEW, _MANY = (
    Statement(
        first(
            sa.select(_J.id)
            .where(
                _J.workflow_id == param("workflow"),
                id_ > param("after"),
                status.in_(numbers(FAILURES)),
                _J.is_interrupted == number(0),
            )
            .order_by(id_),
            param("count"),
        ),
        *("workflow", "after", "count"),
    )
    for id_, status in ((_ID, _STATUS), (_J.id, _STATUS + number(0)))  # SQLite uses no index for a sum
)
_COUNT: Final = Statement(
    sa.select(sa.func.count()).where(_J.workflow_id == param("workflow"), _J.status.in_(numbers(FAILURES))), "workflow"
)
_IS_LOST: Final = sa.not_(
    sa.and_(
        sa.func.coalesce(_R.exit_class, sa.literal_column("''")) == sa.literal_column(f"'{ExitClass.INTERRUPTED}'"),
        _R.return_code == number(0),
    )
)
_LOST: Final = Statement(
    sa.select(_J.resource_requirements_id, sa.func.sum(_R.exec_time_minutes))
    .select_from(t.RESULT.join(t.JOB, _J.id == _R.job_id))
    .where(_R.workflow_id == param("workflow"), _R.status.in_(numbers(UNSUCCESSFUL)), _IS_LOST, sa.not_(_IS_FAILED))
    .group_by(_J.resource_requirements_id),
    "workflow",
)


def failed_jobs(tx: Tx, workflow_id: int, after_id: int) -> FailedJobs:
    """Return a page of the jobs that failed, after the job of an id, with the results of their attempts that failed.

    Interrupted jobs have not failed.
    """
    query = _FEW if tx.value(_COUNT, workflow_id) <= FEW_FAILED else _MANY
    ids = [row[0] for row in tx.rows(query, workflow_id, after_id, PAGE_JOBS + 1)]
    shown, every = ids[:PAGE_JOBS], PageRequest(limit=-1)
    jobs: list[Any] = find(tx, JOBS, [_J.id.in_(shown)], every)[0]
    failed = _R.job_id.in_(shown), _R.status.in_(UNSUCCESSFUL)
    results: list[Any] = find(tx, RESULTS, failed, every)[0]
    return FailedJobs(jobs, results, len(ids) > PAGE_JOBS)


def lost_work(tx: Tx, workflow_id: int) -> list[LostWork]:
    """Return the run time of attempts whose work was lost, of jobs that are not failed now, by their requirements."""
    return [LostWork(*row) for row in tx.rows(_LOST, workflow_id)]
