"""What follows from jobs that ended: dependents, triggers, completion. Same transaction, no sweep.

`propagate_endings` works level by level: all jobs that ended are one set, their dependents the next. Its cost
is the number of dependency rows it touches, whatever the depth or shape of the graph.
"""

from collections.abc import Iterable, Mapping, Sequence

import sqlalchemy as sa
from attrs import Factory, define

from torc_framework.models.statuses import JobStatus
from torc_framework.store.database.sql import Statement, Tx, ids_param, number
from torc_framework.store.job_state import transitions
from torc_framework.store.job_state.dependency_counters import Dependents, count_endings, recount_dependents
from torc_framework.store.job_state.interruptions import IS_UNFINISHED
from torc_framework.store.job_state.triggers import count_triggers, trigger_completion
from torc_framework.store.records.events import EventLog
from torc_framework.store.tables.core import JOB

_FREE = Statement(
    sa.select(JOB.c.id, JOB.c.name, JOB.c.failed_blockers, JOB.c.cancel_on_blocking_job_failure).where(
        JOB.c.id.in_(ids_param()), JOB.c.blockers == number(0), JOB.c.status == number(JobStatus.BLOCKED)
    )
)


_UNFINISHED = Statement(sa.select(IS_UNFINISHED), "workflow")


@define
class PropagatedChanges:
    """What `propagate_endings` did: jobs made ready, and jobs canceled."""

    ready: list[int] = Factory(list)
    canceled: list[int] = Factory(list)


def propagate_endings(tx: Tx, events: EventLog, endings: Mapping[int, bool]) -> PropagatedChanges:
    """Let the dependents of jobs that reached an unblocking status go on, or cancel them.

    Args:
        endings: Jobs that have just reached an unblocking status, and whether they ended badly.
    """
    done = PropagatedChanges()
    while endings:
        canceled = _release_or_cancel(tx, events, count_endings(tx, endings), done)
        endings = dict.fromkeys(canceled, True)
    return done


def _release_or_cancel(tx: Tx, events: EventLog, job_ids: Sequence[int], done: PropagatedChanges) -> list[int]:
    """Make those of the jobs ready, or cancel them, that wait for nothing any more; return the canceled ones."""
    ready, canceled = [], []
    for job_id, name, failed, cancel in sorted(tx.rows_for(_FREE, job_ids)):
        if failed and cancel:
            canceled.append(job_id)
            events.job_ended(job_id, name, JobStatus.CANCELED, None, reason="a dependency failed")
        else:
            ready.append(job_id)
    transitions.unblocked(tx, ready)
    transitions.blocker_failed(tx, canceled)
    done.ready += ready
    done.canceled += canceled
    return canceled


def propagate_deletion(tx: Tx, events: EventLog, waiting: Dependents) -> PropagatedChanges:
    """Let those go on that waited for jobs that were deleted."""
    recount_dependents(tx, waiting)
    done = PropagatedChanges()
    canceled = _release_or_cancel(tx, events, waiting.job_ids, done)
    further = propagate_endings(tx, events, dict.fromkeys(canceled, True))
    ready = [*done.ready, *further.ready]
    events.jobs_ready(ready)
    return PropagatedChanges(ready, [*done.canceled, *further.canceled])


def is_finished(tx: Tx, workflow_id: int) -> bool:
    """Say whether no job of the workflow is unfinished."""
    return not tx.value(_UNFINISHED, workflow_id)


def propagate(
    tx: Tx, events: EventLog, endings: Mapping[int, bool], ready: Iterable[int] = (), *, has_actions: bool = True
) -> bool:
    """Do everything that follows from jobs that were just given a status.

    Args:
        endings: Jobs that reached an unblocking status, and whether they ended badly.
        ready: Jobs that became ready otherwise, such as by a retry.

    Returns:
        Whether the workflow is finished by this.
    """
    done = propagate_endings(tx, events, endings)
    events.jobs_ready(done.ready)
    now_ready = [*ready, *done.ready]
    if now_ready:
        tx.workflows_to_wake.add(events.workflow_id)
    if has_actions:
        count_triggers(tx, now_ready, [*endings, *done.canceled])
    return bool(endings) and not now_ready and announce_completion(tx, events)


def announce_completion(tx: Tx, events: EventLog) -> bool:
    """Tell everybody if no job of the workflow is unfinished; return whether that is so."""
    if not is_finished(tx, events.workflow_id):
        return False
    tx.workflows_to_wake.add(events.workflow_id)
    trigger_completion(tx, events.workflow_id)
    events.add("workflow_completed")
    return True
