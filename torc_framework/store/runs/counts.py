"""Counts of the whole database: jobs by status, workflows by state, active runners."""

from collections import Counter, defaultdict
from typing import Final

import sqlalchemy as sa
from attrs import Factory, define

from torc_framework.models.statuses import LIVE, UNFINISHED, JobStatus
from torc_framework.store.database.sql import Statement, Tx, number
from torc_framework.store.tables.core import COMPUTE_NODE, JOB, WORKFLOW_STATUS

WORKFLOW_STATES: Final = ("new", "waiting", "active", "complete", "canceled", "archived")
"""States of a workflow; the last one that applies is its state.

``waiting`` has unfinished jobs of which no runner holds any, ``active`` has jobs that runners hold.
"""

_JOBS: Final = Statement(
    sa.select(JOB.c.workflow_id, JOB.c.status, sa.func.count()).group_by(JOB.c.workflow_id, JOB.c.status)
)
_INTERRUPTED: Final = Statement(sa.select(JOB.c.workflow_id).where(JOB.c.is_interrupted != number(0)).distinct())
_WORKFLOWS: Final = Statement(
    sa.select(
        WORKFLOW_STATUS.c.id, WORKFLOW_STATUS.c.run_id, WORKFLOW_STATUS.c.is_canceled, WORKFLOW_STATUS.c.is_archived
    )
)
_RUNNERS: Final = Statement(sa.select(sa.func.count()).where(COMPUTE_NODE.c.is_active == number(1)))
_READ_ONE_ROW: Final = Statement(sa.select(WORKFLOW_STATUS.c.id).where(WORKFLOW_STATUS.c.id == sa.literal_column("0")))


@define
class DatabaseCounts:
    """Numbers of jobs, workflows and runners.

    Attributes:
        jobs: By status label.
        workflows: By state.
        runners: Compute nodes that are active.
    """

    jobs: Counter[str] = Factory(Counter)
    workflows: Counter[str] = Factory(Counter)
    runners: int = 0


def count_database(tx: Tx) -> DatabaseCounts:
    """Return the counts of the database."""
    counts = DatabaseCounts()
    statuses: defaultdict[int, set[JobStatus]] = defaultdict(set)
    open_workflows: set[int] = {row[0] for row in tx.rows(_INTERRUPTED)}
    workflows = tx.rows(_WORKFLOWS)
    existing = {row[0] for row in workflows}
    for workflow_id, status, count in tx.rows(_JOBS):
        if workflow_id not in existing:  # it is being deleted
            continue
        statuses[workflow_id].add(JobStatus(status))
        if status in UNFINISHED:
            open_workflows.add(workflow_id)
        counts.jobs[JobStatus(status).label] += count
    for workflow_id, run_id, is_canceled, is_archived in workflows:
        flags = bool(is_canceled), bool(is_archived), workflow_id in open_workflows
        counts.workflows[_state(run_id, *flags, bool(statuses[workflow_id] & LIVE))] += 1
    counts.runners = int(tx.value(_RUNNERS) or 0)
    return counts


def _state(run_id: int, is_canceled: bool, is_archived: bool, is_open: bool, is_live: bool) -> str:
    if is_archived:
        return "archived"
    if is_canceled:
        return "canceled"
    if not run_id:
        return "new"
    if not is_open:
        return "complete"
    return "active" if is_live else "waiting"


def check_readable(tx: Tx) -> None:
    """Read from a table of the database, so that an unusable database raises its error."""
    tx.rows(_READ_ONE_ROW)
