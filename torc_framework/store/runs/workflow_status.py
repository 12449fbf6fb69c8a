"""The status of a workflow: its present run, its flags, and the number of its jobs in each status."""

from typing import Any

import sqlalchemy as sa
from attrs import frozen

from torc_framework.models.exchange import MOST_COUNTED_UNFINISHED
from torc_framework.models.records import WorkflowStatusRecord
from torc_framework.models.statuses import UNFINISHED, JobStatus
from torc_framework.store.database.sql import Statement, Tx, first, number, param
from torc_framework.store.errors import NotFoundError, RuleError
from torc_framework.store.job_state.propagation import is_finished
from torc_framework.store.tables import core as t

_STATUS = Statement(
    sa.select(
        t.WORKFLOW_STATUS.c.run_id,
        t.WORKFLOW_STATUS.c.is_canceled,
        t.WORKFLOW_STATUS.c.is_archived,
        t.WORKFLOW_STATUS.c.has_detected_need_to_run_completion_script,
    ).where(t.WORKFLOW_STATUS.c.id == param("workflow")),
    "workflow",
)
_PUT = Statement(
    sa.update(t.WORKFLOW_STATUS)
    .where(t.WORKFLOW_STATUS.c.id == param("workflow"))
    .values(
        run_id=param("run"),
        is_canceled=param("canceled"),
        is_archived=param("archived"),
        has_detected_need_to_run_completion_script=param("script"),
    ),
    "run",
    "canceled",
    "archived",
    "script",
    "workflow",
)
_COUNTS = Statement(
    sa.select(t.JOB.c.status, sa.func.count()).where(t.JOB.c.workflow_id == param("workflow")).group_by(t.JOB.c.status),
    "workflow",
)


def _bounded_count(status: JobStatus) -> sa.Select[Any]:
    """Return the query for the number of a workflow's jobs in one status, which reads no more rows than it counts."""
    jobs = sa.select(t.JOB.c.id).where(t.JOB.c.workflow_id == param("workflow"), t.JOB.c.status == number(status))
    bounded = first(jobs, sa.literal_column(str(MOST_COUNTED_UNFINISHED), sa.Integer)).subquery()
    return sa.select(number(status), sa.func.count()).select_from(bounded)


_UNFINISHED = Statement(sa.union_all(*map(_bounded_count, sorted(UNFINISHED))), "workflow")


@frozen
class WorkflowCompletion:
    """The end of a workflow: it is complete when it is canceled or has no unfinished job."""

    is_complete: bool
    is_canceled: bool
    needs_to_run_completion_script: bool


def workflow_status(tx: Tx, workflow_id: int) -> WorkflowStatusRecord:
    """Return the workflow's status.

    Raises:
        NotFoundError: there is no such workflow.
    """
    row = tx.row(_STATUS, workflow_id)
    if row is None:
        raise NotFoundError("Workflow", workflow_id)
    run_id, is_canceled, is_archived, needs_completion_script = row
    return WorkflowStatusRecord(
        id=workflow_id,
        run_id=run_id,
        is_canceled=bool(is_canceled),
        is_archived=bool(is_archived),
        has_detected_need_to_run_completion_script=bool(needs_completion_script),
    )


def check_run(tx: Tx, workflow_id: int, run_id: int) -> None:
    """Check that a run is the present one.

    Raises:
        RuleError: it is another one.
    """
    now = workflow_status(tx, workflow_id).run_id
    if run_id != now:
        raise RuleError(f"Run ID mismatch: provided {run_id} but workflow status has {now}")


def put_status(tx: Tx, wanted: WorkflowStatusRecord) -> WorkflowStatusRecord:
    """Overwrite a workflow's status; return it.

    Raises:
        NotFoundError: there is no such workflow.
    """
    assert wanted.id is not None
    workflow_status(tx, wanted.id)
    tx.run(
        _PUT,
        wanted.run_id,
        wanted.is_canceled,
        wanted.is_archived,
        wanted.has_detected_need_to_run_completion_script,
        wanted.id,
    )
    tx.workflows_to_wake.add(wanted.id)
    return wanted


def job_counts(tx: Tx, workflow_id: int) -> dict[str, int]:
    """Return the number of jobs by status label; statuses without jobs are left out."""
    return {JobStatus(number_).label: count for number_, count in tx.rows(_COUNTS, workflow_id)}


def unfinished_counts(tx: Tx, workflow_id: int) -> dict[str, int]:
    """Return the number of unfinished jobs by status label; statuses without jobs are left out.

    At most `MOST_COUNTED_UNFINISHED` jobs of each status are counted, so that this takes the same time for a million.
    """
    return {JobStatus(number_).label: count for number_, count in tx.rows(_UNFINISHED, workflow_id) if count}


def workflow_completion(tx: Tx, workflow_id: int) -> WorkflowCompletion:
    """Return whether the workflow is over, which it is when it is canceled or has no unfinished job."""
    now = workflow_status(tx, workflow_id)
    return WorkflowCompletion(
        now.is_canceled or is_finished(tx, workflow_id),
        now.is_canceled,
        now.has_detected_need_to_run_completion_script,
    )


def is_uninitialized(tx: Tx, workflow_id: int) -> bool:
    """Return whether every job is uninitialized or disabled."""
    workflow_status(tx, workflow_id)
    return set(job_counts(tx, workflow_id)) <= {JobStatus.UNINITIALIZED.label, JobStatus.DISABLED.label}
