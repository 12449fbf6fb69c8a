"""Gives new schedulers to jobs that still have to run, and replaces the actions that request nodes."""

from typing import Final

import sqlalchemy as sa

from torc_framework.models.plan import SchedulerOrder
from torc_framework.models.responses import Rescheduled
from torc_framework.store.database.sql import Statement, Tx, number, param
from torc_framework.store.errors import ConflictError, RuleError
from torc_framework.store.job_state.triggers import recount_triggers
from torc_framework.store.record_kinds.actions import check_action
from torc_framework.store.records.events import utc_text
from torc_framework.store.records.references import check_references
from torc_framework.store.runs.workflow_status import workflow_status
from torc_framework.store.tables import core as t
from torc_framework.store.workflows.plans import insert_actions, insert_records

_SCHEDULE_NODES: Final = "schedule_nodes"
_ON_WORKFLOW_START: Final = "on_workflow_start"
_BIND = Statement(
    sa.update(t.JOB).where(t.JOB.c.id == param("job")).values(scheduler_id=param("scheduler")), "scheduler", "job"
)
_TRIGGER_ONCE = Statement(
    sa.update(t.WORKFLOW_ACTION).where(t.WORKFLOW_ACTION.c.id == param("action")).values(trigger_count=number(1)),
    "action",
)


def reschedule(tx: Tx, workflow_id: int, order: SchedulerOrder) -> Rescheduled:
    """Store the schedulers and the actions of an order, bind the jobs, and retire all earlier actions that request
    nodes.

    The actions belong to a recovery: they are deleted when a new run begins. Those that watch no jobs are due at once;
    for the others, jobs that are ready already count.

    Raises:
        NotFoundError: the workflow does not exist.
        ConflictError: another run has begun, or a scheduler has one of the names.
        RuleError: the order is inconsistent, or names jobs that the workflow does not have.
    """
    present = workflow_status(tx, workflow_id).run_id
    if order.run_id != present:
        raise ConflictError(f"Run {order.run_id} of workflow {workflow_id} is over: it is in run {present}")
    _check(tx, workflow_id, order)
    retired = _retire_schedule_actions(tx, workflow_id)
    first = insert_records(tx, "slurm_schedulers", order.schedulers, workflow_id)
    tx.run_each(_BIND, [(first + n, job_id) for n, job_ids in enumerate(order.job_ids) for job_id in job_ids])
    action_ids = insert_actions(tx, workflow_id, order.actions, first_job=0, first_scheduler=first, is_recovery=True)
    if action_ids:
        recount_triggers(tx, workflow_id, action_ids)
        at_once = [each for each, action in zip(action_ids, order.actions, strict=True) if not action.jobs]
        tx.run_each(_TRIGGER_ONCE, [(action_id,) for action_id in at_once])
    return Rescheduled([first + n for n in range(len(order.schedulers))], action_ids, retired)


def _check(tx: Tx, workflow_id: int, order: SchedulerOrder) -> None:
    if len(order.job_ids) != len(order.schedulers):
        raise RuleError(f"job_ids: {len(order.job_ids)} lists for {len(order.schedulers)} schedulers")
    for action in order.actions:
        check_action(action.trigger_type, action.action_type, action.config)
        if action.action_type != _SCHEDULE_NODES or action.scheduler is None:
            raise RuleError(f"actions: only {_SCHEDULE_NODES} actions that name a scheduler may be ordered")
        if not 0 <= action.scheduler < len(order.schedulers):
            raise RuleError(f"actions: there is no scheduler number {action.scheduler}")
        if action.trigger_type != ("on_jobs_ready" if action.jobs else _ON_WORKFLOW_START):
            raise RuleError(f"actions: with jobs their trigger is on_jobs_ready, without {_ON_WORKFLOW_START}")
    named = [*order.job_ids, *(action.jobs or [] for action in order.actions)]
    check_references(tx, "jobs", workflow_id, [{"depends_on_job_ids": job_ids} for job_ids in named])
    names = [scheduler.name for scheduler in order.schedulers if scheduler.name is not None]
    if len(set(names)) < len(names):
        raise RuleError("schedulers: each name may be used once")
    taken = sa.select(t.SLURM_SCHEDULER.c.name).where(t.SLURM_SCHEDULER.c.workflow_id == workflow_id)
    if there := set(names).intersection(tx.connection.execute(taken).scalars()):
        raise ConflictError(f"Slurm scheduler {min(there)!r} exists already in workflow {workflow_id}")


def _retire_schedule_actions(tx: Tx, workflow_id: int) -> list[int]:
    """Mark the actions that request nodes as claimed and finished; return their ids.

    A claimed action that is not finished counts as a submission that was killed, and would be executed again.
    """
    action = t.WORKFLOW_ACTION
    due = sa.and_(
        action.c.workflow_id == workflow_id,
        action.c.action_type == _SCHEDULE_NODES,
        sa.or_(sa.not_(action.c.executed), action.c.error.is_not(None)),  # a failed action would be executed again
        sa.not_(action.c.persistent),
    )
    ids = list(tx.connection.execute(sa.select(action.c.id).where(due).order_by(action.c.id)).scalars())
    if ids:
        now = utc_text()
        ended = {"executed_by": None, "finished_at": now, "is_open": False, "error": None}
        changes = {"executed": True, "executed_at": now, **ended}
        tx.connection.execute(sa.update(action).where(due).values(**changes))
    return ids
