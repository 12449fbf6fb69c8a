"""What the whole database holds, counted: jobs by status, workflows by state, runners."""

from collections import Counter, defaultdict
from typing import Final

import sqlalchemy as sa
from attrs import Factory, define

from torc_framework.models.statuses import LIVE, UNFINISHED, JobStatus
from torc_framework.store.database.sql import Statement, Tx, number
from torc_framework.store.tables.core import COMPUTE_NODE, JOB, WORKFLOW_STATUS

WORKFLOW_STATES: Final = ("new", "waiting", "active", "complete", "canceled", "archived")
"""A workflow is in the last of these that is true of it; ``waiting`` has unfinished jobs and none in hand."""

_JOBS: Final = Statement(
    sa.select(JOB.c.workflow_id, JOB.c.status, JOB.c.is_interrupted, sa.func.count()).group_by(
        JOB.c.workflow_id, JOB.c.status, JOB.c.is_interrupted
    )
)
_WORKFLOWS: Final = Statement(
    sa.select(
        WORKFLOW_STATUS.c.id, WORKFLOW_STATUS.c.run_id, WORKFLOW_STATUS.c.is_canceled, WORKFLOW_STATUS.c.is_archived
    )
)
_RUNNERS: Final = Statement(sa.select(sa.func.count()).where(COMPUTE_NODE.c.is_active == number(1)))
_READ_ONE_ROW: Final = Statement(sa.select(WORKFLOW_STATUS.c.id).where(WORKFLOW_STATUS.c.id == sa.literal_column("0")))


@define
class DatabaseCounts:
    """Numbers of everything.

    Attributes:
        jobs: By status label.
        workflows: By state.
        runners: Compute nodes that are active.
    """

    jobs: Counter[str] = Factory(Counter)
    workflows: Counter[str] = Factory(Counter)
    runners: int = 0


def count_database(tx: Tx) -> DatabaseCounts:
    """Count everything."""
    census = DatabaseCounts()
    statuses: defaultdict[int, set[JobStatus]] = defaultdict(set)
    open_workflows: set[int] = set()
    for workflow_id, status, is_interrupted, count in tx.rows(_JOBS):
        statuses[workflow_id].add(JobStatus(status))
        if is_interrupted or status in UNFINISHED:
            open_workflows.add(workflow_id)
        census.jobs[JobStatus(status).label] += count
    for workflow_id, run_id, is_canceled, is_archived in tx.rows(_WORKFLOWS):
        flags = bool(is_canceled), bool(is_archived), workflow_id in open_workflows
        census.workflows[_state(run_id, *flags, bool(statuses[workflow_id] & LIVE))] += 1
    census.runners = int(tx.value(_RUNNERS) or 0)
    return census


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
    """Read from the tables of the database; what is wrong with it is raised."""
    tx.rows(_READ_ONE_ROW)
