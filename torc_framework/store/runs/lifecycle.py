"""Begins, initializes, resets and cancels the runs of a workflow."""

from collections.abc import Mapping, Sequence
from typing import Final

import sqlalchemy as sa

from torc_framework.models.records import WorkflowStatusRecord
from torc_framework.models.statuses import LIVE, UNBLOCKING, UNFINISHED, UNSUCCESSFUL, JobStatus
from torc_framework.store.database.sql import Statement, Tx, number, numbers, param
from torc_framework.store.errors import RuleError
from torc_framework.store.job_state import changed_inputs, interruptions, transitions
from torc_framework.store.job_state.dependency_counters import count_endings, downstream, recount
from torc_framework.store.job_state.implied_dependencies import add_implied_dependencies
from torc_framework.store.job_state.jobs_to_stop import request_stops
from torc_framework.store.job_state.triggers import rearm_actions
from torc_framework.store.records.events import TransactionEvents, record_user_action
from torc_framework.store.runs.workflow_status import is_uninitialized, workflow_status
from torc_framework.store.tables import core as t
from torc_framework.store.tables.allocations import SCHEDULED_COMPUTE_NODE

_THIS = t.WORKFLOW_STATUS.c.id == param("workflow")
_NEXT_RUN = Statement(
    sa.update(t.WORKFLOW_STATUS).where(_THIS).values(run_id=t.WORKFLOW_STATUS.c.run_id + number(1)), "workflow"
)
_CLEAR = Statement(
    sa.update(t.WORKFLOW_STATUS)
    .where(_THIS)
    .values(
        is_canceled=number(0),
        is_archived=number(0),
        has_detected_need_to_run_completion_script=number(0),
    ),
    "workflow",
)
_CANCEL = Statement(sa.update(t.WORKFLOW_STATUS).where(_THIS).values(is_canceled=number(1)), "workflow")
_HELD = Statement(
    sa.select(sa.func.count())
    .select_from(t.JOB.join(t.COMPUTE_NODE, t.COMPUTE_NODE.c.id == t.JOB.c.active_compute_node_id))
    .where(
        t.JOB.c.workflow_id == param("workflow"),
        t.JOB.c.status.in_(numbers(LIVE)),
        t.COMPUTE_NODE.c.is_active == number(1),
    ),
    "workflow",
)
_LIVE_JOBS: Final = Statement(
    sa.select(t.JOB.c.id, t.JOB.c.name, t.JOB.c.attempt_id).where(
        t.JOB.c.workflow_id == param("workflow"), t.JOB.c.status.in_(numbers(LIVE))
    ),
    "workflow",
)
_JOBS_IN: Final = {
    name: Statement(
        sa.select(t.JOB.c.id).where(t.JOB.c.workflow_id == param("workflow"), t.JOB.c.status.in_(numbers(statuses))),
        "workflow",
    )
    for name, statuses in {
        "uninitialized": {JobStatus.UNINITIALIZED},
        "live": LIVE,
        "to_reset": frozenset(UNSUCCESSFUL),
        "to_run": frozenset(JobStatus) - UNBLOCKING,
    }.items()
}
_MTIME = Statement(
    sa.update(t.FILE)
    .where(t.FILE.c.id == param("file"), t.FILE.c.workflow_id == param("workflow"))
    .values(st_mtime=param("mtime")),
    "mtime",
    "file",
    "workflow",
)
_FORGET_RESULTS = Statement(
    sa.update(t.JOB)
    .where(
        t.JOB.c.workflow_id == param("workflow"),
        t.JOB.c.status.in_(numbers(UNFINISHED)),
        t.JOB.c.result_id.is_not(None),
    )
    .values(result_id=sa.null()),
    "workflow",
)
_CLEAR_EPHEMERAL = Statement(
    sa.update(t.USER_DATA)
    .where(t.USER_DATA.c.workflow_id == param("workflow"), t.USER_DATA.c.is_ephemeral == number(1))
    .values(data=sa.null()),
    "workflow",
)
_CLEAR_REWRITTEN = Statement(
    sa.update(t.USER_DATA)
    .where(
        t.USER_DATA.c.workflow_id == param("workflow"),
        t.USER_DATA.c.is_ephemeral == number(1),
        sa.exists().where(
            t.JOB_OUTPUT_USER_DATA.c.user_data_id == t.USER_DATA.c.id,
            t.JOB_OUTPUT_USER_DATA.c.job_id == t.JOB.c.id,
            t.JOB.c.status.in_(numbers(UNFINISHED)),
        ),
    )
    .values(data=sa.null()),
    "workflow",
)
"""Ephemeral user data that unfinished jobs write; that of finished jobs stays, because it would not be written again.
"""


def resume_workflow(tx: Tx, workflow_id: int) -> list[int]:
    """Make the interrupted jobs of a workflow ready, unless it was canceled; return their ids.

    Raises:
        NotFoundError: there is no such workflow.
    """
    if workflow_status(tx, workflow_id).is_canceled:
        return []
    events = TransactionEvents(workflow_id)
    job_ids = interruptions.resume_interrupted(tx, events)
    events.write(tx)
    return job_ids


def begin_run(
    tx: Tx,
    workflow_id: int,
    file_mtimes: Mapping[int, float | None] | None = None,
    *,
    only_uninitialized: bool = False,
    force: bool = False,
    dry_run: bool = False,
) -> WorkflowStatusRecord:
    """Begin the next run: reset the jobs, count the run, find which jobs are ready.

    Args:
        file_mtimes: Present modification times of files, by file id; None for a file that does not exist.
        only_uninitialized: Initialize uninitialized jobs and all jobs downstream of them; the others keep their status.
        force: Begin also if active runners hold jobs; these are taken from them.
        dry_run: Only check whether the run may begin.

    Raises:
        RuleError: the workflow is archived, or an active runner holds jobs of it.
    """
    check_may_begin(tx, workflow_id, force=force)
    if dry_run:
        return workflow_status(tx, workflow_id)
    changed = not only_uninitialized and transitions.all_reset(tx, workflow_id) > 0
    begin_planned_run(tx, workflow_id)
    _note_mtimes(tx, workflow_id, file_mtimes or {})
    _initialize(tx, workflow_id, only_uninitialized=only_uninitialized, changed=changed)
    return workflow_status(tx, workflow_id)


def check_may_begin(tx: Tx, workflow_id: int, *, force: bool = False) -> None:
    """Refuse to begin a run of a workflow that is archived or, without ``force``, has jobs that active runners hold.

    Raises:
        NotFoundError: there is no such workflow.
        RuleError: the run may not begin.
    """
    if workflow_status(tx, workflow_id).is_archived:
        raise RuleError("Cannot begin a run of an archived workflow. Unarchive it first.")
    held = tx.value(_HELD, workflow_id)
    if held and not force:
        raise RuleError(f"Cannot begin a run: {held} job(s) are held by active compute nodes. Use force to take them.")


def begin_rerun(
    tx: Tx, workflow_id: int, job_ids: Sequence[int], file_mtimes: Mapping[int, float | None]
) -> WorkflowStatusRecord:
    """Begin the next run; reset these jobs and all jobs downstream of them. All other jobs keep their status."""
    changed = transitions.reset(tx, job_ids) > 0
    begin_planned_run(tx, workflow_id)
    _note_mtimes(tx, workflow_id, file_mtimes)
    _initialize(tx, workflow_id, only_uninitialized=True, clear_ephemeral_user_data=False, changed=changed)
    tx.run(_CLEAR_REWRITTEN, workflow_id)
    return workflow_status(tx, workflow_id)


def _note_mtimes(tx: Tx, workflow_id: int, file_mtimes: Mapping[int, float | None]) -> None:
    tx.run_each(_MTIME, [(mtime, file_id, workflow_id) for file_id, mtime in file_mtimes.items()])


def begin_planned_run(tx: Tx, workflow_id: int) -> None:
    """Count a run of a workflow, and clear the flags of its status."""
    tx.run(_CLEAR, workflow_id)
    tx.run(_NEXT_RUN, workflow_id)


def initialize_jobs(
    tx: Tx, workflow_id: int, *, only_uninitialized: bool = False, clear_ephemeral_user_data: bool = True
) -> None:
    """Make jobs blocked or ready.

    Without ``only_uninitialized``, finished jobs become blocked, too, if they wait for a job that has to run.
    Terminated jobs and those in ``pending_failed`` become ready. Jobs that a runner holds keep their status.

    Raises:
        RuleError: the dependencies, with those implied by files and user data, have a cycle.
    """
    workflow_status(tx, workflow_id)
    _initialize(
        tx,
        workflow_id,
        only_uninitialized=only_uninitialized,
        clear_ephemeral_user_data=clear_ephemeral_user_data,
    )


def _initialize(
    tx: Tx,
    workflow_id: int,
    *,
    only_uninitialized: bool,
    clear_ephemeral_user_data: bool = True,
    changed: bool = False,
) -> None:
    """Do the work of `initialize_jobs`.

    Args:
        changed: Statuses have changed before, so that the counters of blockers have to be computed again.
    """
    changed |= add_implied_dependencies(tx, workflow_id)
    interruptions.resume_interrupted(tx, TransactionEvents(workflow_id))
    changed |= transitions.found_ready_again(tx, workflow_id) > 0
    if only_uninitialized:
        new = [job_id for (job_id,) in tx.rows(_JOBS_IN["uninitialized"], workflow_id)]
        changed |= transitions.reset(tx, downstream(tx, new)) > 0
    elif not is_uninitialized(tx, workflow_id):
        to_run = [job_id for (job_id,) in tx.rows(_JOBS_IN["to_run"], workflow_id)]
        changed |= transitions.found_blocked(tx, downstream(tx, to_run)) > 0
    if changed:
        recount(tx, workflow_id)
    transitions.all_found_blocked(tx, workflow_id)
    transitions.found_ready(tx, workflow_id)
    tx.run(_FORGET_RESULTS, workflow_id)
    if clear_ephemeral_user_data:
        tx.run(_CLEAR_EPHEMERAL, workflow_id)
    changed_inputs.forget_inputs(tx, workflow_id)
    announce_run(tx, workflow_id, workflow_status(tx, workflow_id).run_id, again=only_uninitialized)


def announce_run(tx: Tx, workflow_id: int, run_id: int, *, again: bool = False) -> None:
    """Reset the workflow's actions for a new run, store the event that it began, and wake the runners."""
    rearm_actions(tx, workflow_id)
    events = TransactionEvents(workflow_id)
    events.add("workflow_reinitialized" if again else "workflow_started", run_id=run_id)
    events.write(tx)
    tx.workflows_to_wake.add(workflow_id)


def cancel_workflow(tx: Tx, workflow_id: int) -> None:
    """Cancel the workflow: jobs that runners hold are canceled, and no jobs are claimed any more."""
    run_id = workflow_status(tx, workflow_id).run_id
    held = sorted(tx.rows(_LIVE_JOBS, workflow_id))
    tx.run(_CANCEL, workflow_id)
    transitions.canceled(tx, workflow_id)
    count_endings(tx, dict.fromkeys([job_id for job_id, *_ in held], True))
    events = TransactionEvents(workflow_id)
    events.add("workflow_canceled", canceled_jobs=len(held))
    reason = "the workflow was canceled"
    for job_id, name, attempt_id in held:
        events.job_ended(job_id, name, JobStatus.CANCELED, None, attempt_id=attempt_id, run_id=run_id, reason=reason)
    events.write(tx)
    tx.workflows_to_wake.add(workflow_id)


def reset_status(tx: Tx, workflow_id: int, *, force: bool = False, user: str | None = None) -> None:
    """Clear the workflow's canceled, archived and completion-script flags.

    Raises:
        RuleError: it is archived; or, without ``force``, it has pending or running jobs or open allocations.
    """
    if workflow_status(tx, workflow_id).is_archived:
        raise RuleError("Cannot reset archived workflow status. Unarchive the workflow first.")
    if not force:
        _check_nothing_under_way(tx, workflow_id)
    tx.run(_CLEAR, workflow_id)
    record_user_action(tx, workflow_id, "reset_workflow_status", user)


def _check_nothing_under_way(tx: Tx, workflow_id: int) -> None:
    if held := tx.rows(_JOBS_IN["live"], workflow_id):
        raise RuleError(f"Cannot reset workflow status: {len(held)} job(s) are pending or running. Use force to reset.")
    node = SCHEDULED_COMPUTE_NODE
    asked = tx.connection.execute(
        sa.select(sa.func.count()).where(node.c.workflow_id == workflow_id, node.c.status.in_(("pending", "active")))
    ).scalar_one()
    if asked:
        raise RuleError(
            f"Cannot reset workflow status: {asked} scheduled compute node(s) are pending or active. "
            "Use force to reset."
        )


def reset_job_status(tx: Tx, workflow_id: int, *, failed_only: bool = False, user: str | None = None) -> int:
    """Make jobs uninitialized: all, or failed ones and all jobs downstream of them; return how many.

    Runners are told to stop those that they hold.
    """
    workflow_status(tx, workflow_id)
    if failed_only:
        to_reset = [job_id for (job_id,) in tx.rows(_JOBS_IN["to_reset"], workflow_id)]
        again = [*to_reset, *downstream(tx, to_reset)]
        request_stops(tx, workflow_id, again)
        count = transitions.reset(tx, again)
    else:
        request_stops(tx, workflow_id, [job_id for (job_id,) in tx.rows(_JOBS_IN["live"], workflow_id)])
        count = transitions.all_reset(tx, workflow_id)
    recount(tx, workflow_id)
    record_user_action(tx, workflow_id, "reset_job_status", user)
    return count
