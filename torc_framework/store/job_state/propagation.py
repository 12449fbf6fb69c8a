"""Does what follows from jobs that ended, in the same transaction: dependents, action triggers, completion of the
workflow.

`propagate_endings` works level by level: the jobs that ended are one set, their dependents the next. Its cost is
proportional to the number of dependency rows that it reads, in a graph of any depth.
"""

from collections.abc import Iterable, Mapping, Sequence

import sqlalchemy as sa
from attrs import Factory, define

from torc_framework.models.statuses import JobStatus
from torc_framework.store.database.sql import Statement, Tx, ids_param, number, param
from torc_framework.store.job_state import transitions
from torc_framework.store.job_state.dependency_counters import Dependents, count_endings, recount_dependents
from torc_framework.store.job_state.interruptions import IS_UNFINISHED
from torc_framework.store.job_state.triggers import count_triggers, trigger_completion
from torc_framework.store.records.events import TransactionEvents
from torc_framework.store.tables.core import JOB, WORKFLOW_STATUS

_UNBLOCKED = Statement(
    sa.select(JOB.c.id, JOB.c.name, JOB.c.failed_blockers, JOB.c.cancel_on_blocking_job_failure).where(
        JOB.c.id.in_(ids_param()), JOB.c.blockers == number(0), JOB.c.status == number(JobStatus.BLOCKED)
    )
)


_RUN_ID = Statement(sa.select(WORKFLOW_STATUS.c.run_id).where(WORKFLOW_STATUS.c.id == param("workflow")), "workflow")
_UNFINISHED = Statement(sa.select(IS_UNFINISHED), "workflow")


@define
class PropagatedChanges:
    """The jobs that a propagation made ready, and those that it canceled."""

    ready: list[int] = Factory(list)
    canceled: list[int] = Factory(list)


def propagate_endings(tx: Tx, events: TransactionEvents, endings: Mapping[int, bool]) -> PropagatedChanges:
    """Make dependents ready, or cancel them, after jobs have reached an unblocking status.

    Args:
        endings: Jobs that have reached an unblocking status in this transaction, and whether they ended badly.
    """
    changes = PropagatedChanges()
    while endings:
        canceled = _make_ready_or_cancel(tx, events, count_endings(tx, endings), changes)
        endings = dict.fromkeys(canceled, True)
    return changes


def _make_ready_or_cancel(
    tx: Tx, events: TransactionEvents, job_ids: Sequence[int], changes: PropagatedChanges
) -> list[int]:
    """Make those of the jobs that have no blockers left ready, or cancel them; return the canceled ones."""
    ready, canceled = [], []
    unblocked = sorted(tx.rows_for(_UNBLOCKED, job_ids))
    run_id = (
        tx.value(_RUN_ID, events.workflow_id) if any(failed and cancel for *_, failed, cancel in unblocked) else None
    )
    for job_id, name, failed, cancel in unblocked:
        if failed and cancel:
            canceled.append(job_id)
            events.job_ended(job_id, name, JobStatus.CANCELED, None, run_id=run_id, reason="a dependency failed")
        else:
            ready.append(job_id)
    transitions.unblocked(tx, ready)
    transitions.blocker_failed(tx, canceled)
    changes.ready += ready
    changes.canceled += canceled
    return canceled


def propagate_deletion(tx: Tx, events: TransactionEvents, waiting: Dependents) -> PropagatedChanges:
    """Make dependents of deleted jobs ready, or cancel them."""
    recount_dependents(tx, waiting)
    changes = PropagatedChanges()
    canceled = _make_ready_or_cancel(tx, events, waiting.job_ids, changes)
    further = propagate_endings(tx, events, dict.fromkeys(canceled, True))
    ready = [*changes.ready, *further.ready]
    events.jobs_ready(ready)
    return PropagatedChanges(ready, [*changes.canceled, *further.canceled])


def is_finished(tx: Tx, workflow_id: int) -> bool:
    """Return whether no job of the workflow is unfinished."""
    return not tx.value(_UNFINISHED, workflow_id)


def propagate(
    tx: Tx,
    events: TransactionEvents,
    endings: Mapping[int, bool],
    ready: Iterable[int] = (),
    *,
    has_actions: bool = True,
) -> bool:
    """Do everything that follows from changes of status: dependents, events, action triggers, completion.

    Args:
        endings: Jobs that have reached an unblocking status in this transaction, and whether they ended badly.
        ready: Jobs that have become ready in this transaction otherwise, such as by a retry.
        has_actions: The workflow has actions.

    Returns:
        Whether this has finished the workflow.
    """
    unfinished = tx.rows_later(_UNFINISHED, events.workflow_id)
    changes = propagate_endings(tx, events, endings)
    events.jobs_ready(changes.ready)
    now_ready = [*ready, *changes.ready]
    if now_ready:
        tx.workflows_with_ready_jobs.add(events.workflow_id)
    if has_actions:
        count_triggers(tx, now_ready, [*endings, *changes.canceled])
    if not endings or now_ready:
        return False
    if changes.canceled:
        return announce_completion(tx, events)
    ((is_unfinished,),) = unfinished()
    return not is_unfinished and _announce_completion(tx, events)


def announce_completion(tx: Tx, events: TransactionEvents) -> bool:
    """If the workflow is finished, trigger its actions, add the event and wake its runners; return whether it is."""
    return is_finished(tx, events.workflow_id) and _announce_completion(tx, events)


def _announce_completion(tx: Tx, events: TransactionEvents) -> bool:
    tx.workflows_to_wake.add(events.workflow_id)
    trigger_completion(tx, events.workflow_id)
    events.add("workflow_completed")
    return True
