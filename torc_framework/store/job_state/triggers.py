"""Counts the triggers of actions: an action is due when its count has reached the number that it requires."""

from collections import Counter
from collections.abc import Collection, Sequence
from typing import Final

import sqlalchemy as sa

from torc_framework.models.statuses import LIVE, UNBLOCKING, JobStatus
from torc_framework.store.database.sql import Statement, Tx, ids_param, number, param
from torc_framework.store.tables.core import ACTION_JOB, JOB, WORKFLOW_ACTION

_WATCHERS = Statement(
    sa.select(ACTION_JOB.c.action_id, ACTION_JOB.c.job_id, WORKFLOW_ACTION.c.trigger_type)
    .select_from(ACTION_JOB.join(WORKFLOW_ACTION, WORKFLOW_ACTION.c.id == ACTION_JOB.c.action_id))
    .where(ACTION_JOB.c.job_id.in_(ids_param()), ACTION_JOB.c.counted == number(0))
)
_COUNTED = Statement(
    sa.update(ACTION_JOB)
    .where(ACTION_JOB.c.job_id == param("job"), ACTION_JOB.c.action_id == param("action"))
    .values(counted=number(1)),
    "job",
    "action",
)
_TRIGGERED = Statement(
    sa.update(WORKFLOW_ACTION)
    .where(WORKFLOW_ACTION.c.id == param("action"))
    .values(trigger_count=WORKFLOW_ACTION.c.trigger_count + param("count")),
    "count",
    "action",
)
_COMPLETE_TRIGGER = Statement(
    sa.update(WORKFLOW_ACTION)
    .where(
        WORKFLOW_ACTION.c.workflow_id == param("workflow"),
        WORKFLOW_ACTION.c.trigger_type == sa.literal_column("'on_workflow_complete'"),
    )
    .values(trigger_count=WORKFLOW_ACTION.c.trigger_count + number(1)),
    "workflow",
)


def count_triggers(tx: Tx, ready: Collection[int], over: Collection[int]) -> None:
    """Count jobs for the actions whose triggers watch them; each job counts once for an action.

    Args:
        ready: Jobs that have become ready.
        over: Jobs that have reached an unblocking status; they count as ready, too.
    """
    counts = {"on_jobs_ready": {*ready, *over}, "on_jobs_complete": set(over)}
    watchers = tx.rows_for(_WATCHERS, sorted(counts["on_jobs_ready"]))
    hits = [(job_id, action) for action, job_id, trigger in watchers if job_id in counts.get(trigger, ())]
    tx.run_each(_COUNTED, hits)
    tx.run_each(_TRIGGERED, [(count, action) for action, count in Counter(action for _, action in hits).items()])


def trigger_completion(tx: Tx, workflow_id: int) -> None:
    """Trigger the actions with ``on_workflow_complete``."""
    tx.run(_COMPLETE_TRIGGER, workflow_id)


_OF_WORKERS: Final = ("on_worker_start", "on_worker_complete")
_DUE = Statement(
    sa.select(sa.func.count()).where(
        WORKFLOW_ACTION.c.workflow_id == param("workflow"),
        WORKFLOW_ACTION.c.trigger_count >= WORKFLOW_ACTION.c.required_triggers,
        sa.not_(WORKFLOW_ACTION.c.executed),
        WORKFLOW_ACTION.c.trigger_type.not_in([sa.literal_column(f"'{name}'") for name in _OF_WORKERS]),
    ),
    "workflow",
)


def count_due_actions(tx: Tx, workflow_id: int) -> int:
    """Return how many actions are due, without those for the start and end of each worker."""
    return int(tx.value(_DUE, workflow_id))


def reopen_actions(tx: Tx, compute_node_id: int) -> None:
    """Make those actions due again that a runner had begun and not finished when it ended."""
    tx.connection.execute(
        sa.update(WORKFLOW_ACTION)
        .where(WORKFLOW_ACTION.c.executed_by == compute_node_id, WORKFLOW_ACTION.c.is_open)
        .values(executed=False, executed_at=None, executed_by=None, is_open=False)
    )


_TRIGGERED_AT_START: Final = ("on_workflow_start", "on_worker_start", "on_worker_complete")
_WATCHED: Final = {
    "on_jobs_ready": UNBLOCKING | LIVE | {JobStatus.READY, JobStatus.PENDING_FAILED},
    "on_jobs_complete": UNBLOCKING,
}


def rearm_actions(tx: Tx, workflow_id: int) -> None:
    """Reset all actions to not executed, delete those of recoveries, and count the triggers again."""
    action, execute = WORKFLOW_ACTION, tx.connection.execute
    mine = action.c.workflow_id == workflow_id
    if execute(sa.select(action.c.id).where(mine).limit(1)).first() is None:
        return
    execute(sa.delete(action).where(mine, action.c.is_recovery))
    execute(
        sa.update(action)
        .where(mine)
        .values(
            executed=False,
            executed_at=None,
            executed_by=None,
            finished_at=None,
            error=None,
            is_open=False,
            trigger_count=sa.case((action.c.trigger_type.in_(_TRIGGERED_AT_START), 1), else_=0),
        )
    )
    recount_triggers(tx, workflow_id)


def recount_triggers(tx: Tx, workflow_id: int, only: Sequence[int] | None = None) -> None:
    """Set the trigger counts of actions that watch jobs from the present statuses of the jobs.

    Args:
        only: These actions; None means all of the workflow.
    """
    action, watched = WORKFLOW_ACTION, ACTION_JOB
    mine = action.c.workflow_id == workflow_id
    if only is not None:
        mine = sa.and_(mine, action.c.id.in_(only))
    execute = tx.connection.execute
    for trigger, statuses in _WATCHED.items():
        mine_of_kind = sa.select(action.c.id).where(mine, action.c.trigger_type == trigger)
        reached = sa.select(JOB.c.id).where(JOB.c.workflow_id == workflow_id, JOB.c.status.in_(list(statuses)))
        if trigger == "on_jobs_complete":
            reached = reached.where(sa.not_(JOB.c.is_interrupted))
        execute(
            sa.update(watched)
            .where(watched.c.action_id.in_(mine_of_kind))
            .values(counted=sa.case((watched.c.job_id.in_(reached), True), else_=False))
        )
        counted = sa.select(sa.func.count()).where(watched.c.action_id == action.c.id, watched.c.counted)
        execute(
            sa.update(action)
            .where(mine, action.c.trigger_type == trigger)
            .values(trigger_count=counted.scalar_subquery())
        )


def required_triggers(trigger_type: str, jobs: Sequence[int] | None) -> int:
    """Return how many triggers make an action due: one for each job that it watches, otherwise one."""
    return len(jobs or ()) or 1 if trigger_type in ("on_jobs_ready", "on_jobs_complete") else 1
