"""Budgets of attempts: the number of attempts of a job that count towards the limit of a retry."""

from typing import Final

import sqlalchemy as sa

from torc_framework.models.exits import ExitClass
from torc_framework.models.failures import SEPARATE_BUDGET_CLASSES, UNCOUNTED_CLASSES
from torc_framework.models.statuses import JobStatus
from torc_framework.store.database.sql import Statement, Tx, param
from torc_framework.store.tables.core import RESULT

_CLASSES_BEFORE = Statement(
    sa.select(RESULT.c.exit_class, RESULT.c.status).where(
        RESULT.c.job_id == param("job"), RESULT.c.run_id == param("run"), RESULT.c.attempt_id < param("attempt")
    ),
    "job",
    "run",
    "attempt",
)
_CANCELED_WITH_ALLOCATION: Final = (str(ExitClass.CANCELED), int(JobStatus.TERMINATED))
"""Class and status of an attempt that ended because its allocation was canceled."""


def attempts_spent(tx: Tx, job_id: int, run_id: int, attempt_id: int, exit_class: str | None) -> int:
    """Return how many attempts of a run, this one included, count towards the same budget as this one.

    Each class in `SEPARATE_BUDGET_CLASSES` has a budget of its own. Interruptions count towards no budget. All other
    classes share one budget.
    """
    before = tx.rows(_CLASSES_BEFORE, job_id, run_id, attempt_id)
    if exit_class in SEPARATE_BUDGET_CLASSES:
        return [name for name, _ in before].count(exit_class) + 1
    free = [name in UNCOUNTED_CLASSES or (name, status) == _CANCELED_WITH_ALLOCATION for name, status in before]
    return attempt_id - free.count(True)
