"""Changes of a job's status by users: which changes are possible, and what follows from each."""

from collections.abc import Callable, Mapping
from typing import Final

import sqlalchemy as sa

from torc_framework.models.statuses import LIVE, UNBLOCKING, JobStatus
from torc_framework.store.database.sql import Statement, Tx, ids_param, numbers
from torc_framework.store.errors import RuleError
from torc_framework.store.exchange.single_steps import StepJob, find_job
from torc_framework.store.job_state import transitions
from torc_framework.store.job_state.dependency_counters import dependents_of
from torc_framework.store.job_state.jobs_to_stop import request_stops
from torc_framework.store.job_state.propagation import announce_completion, propagate
from torc_framework.store.job_state.resets import reset_without_dependents
from torc_framework.store.record_kinds.jobs import JOBS
from torc_framework.store.record_kinds.results import status_number
from torc_framework.store.records.crud import get
from torc_framework.store.records.events import TransactionEvents, record_user_action
from torc_framework.store.records.kind import Values
from torc_framework.store.tables import core as t

_RAN = Statement(
    sa.select(t.JOB.c.id).where(
        t.JOB.c.id.in_(ids_param()), t.JOB.c.status.in_(numbers({JobStatus.COMPLETED, JobStatus.FAILED}))
    )
)


def change_status(tx: Tx, job_id: int, label: str, run_id: int, user: str | None = None) -> Values:
    """Set a job's status for a user, if `_STATUS_CHANGES` allows it; return the job.

    A runner that holds the job, and no longer does with its new status, is told to stop it.

    Raises:
        NotFoundError: there is no such job.
        RuleError: a job gets the status only when it ends, or cannot get it in its present status.
    """
    job = find_job(tx, job_id, run_id)
    target = status_number(label)
    if target in UNBLOCKING:
        raise RuleError(
            f"Cannot set completion status '{label}' via manage_status_change. Use complete_job API instead."
        )
    if target is not job.status:
        change = _STATUS_CHANGES.get((job.status, target))
        if change is None:
            sources = ", ".join(source.label for source, reached in _STATUS_CHANGES if reached is target)
            raise RuleError(f"Job {job_id} is {job.status.label}: only a job that is {sources} can be set to {label}")
        if job.status in LIVE and target not in LIVE:
            request_stops(tx, job.workflow_id, [job_id])
        change(tx, job)
        record_user_action(
            tx,
            job.workflow_id,
            "manage_status_change",
            user,
            job_id=job_id,
            old_status=job.status.label,
            new_status=label,
        )
        tx.workflows_to_wake.add(job.workflow_id)
    return get(tx, JOBS, job_id)


def _reset(tx: Tx, job: StepJob) -> None:
    transitions.reset(tx, [job.id])


def _reset_ended(tx: Tx, job: StepJob) -> None:
    """Reset a job that is over, and its direct dependents that have run."""
    dependents = dependents_of(tx, [job.id]).job_ids
    ran = [dependent for (dependent,) in tx.rows_for(_RAN, dependents)]
    reset_without_dependents(tx, job.workflow_id, [job.id, *ran])


def _make_ready(tx: Tx, job: StepJob) -> None:
    if job.blockers:
        raise RuleError(f"Job {job.id} waits for others (jobs or groups of jobs: {job.blockers}): it cannot be ready")
    transitions.found_ready_alone(tx, job.id)
    _propagate_ready(tx, job)


def _propagate_ready(tx: Tx, job: StepJob) -> None:
    events = TransactionEvents(job.workflow_id)
    propagate(tx, events, {}, [job.id])
    events.write(tx)


def _claim(tx: Tx, job: StepJob) -> None:
    transitions.claimed(tx, job.node_id, [job.id])


def _start(tx: Tx, job: StepJob) -> None:
    transitions.attempt_started(tx, job.node_id, [job.id])


def _release(tx: Tx, job: StepJob) -> None:
    transitions.released(tx, [job.id])
    _propagate_ready(tx, job)


def _make_lost(tx: Tx, job: StepJob) -> None:
    transitions.attempt_lost(tx, [job.id])
    _propagate_ready(tx, job)


def _give_verdict(target: JobStatus) -> Callable[[Tx, StepJob], None]:
    def give_verdict(tx: Tx, job: StepJob) -> None:
        transitions.judged(tx, job.id, target)
        if target is JobStatus.READY:
            _propagate_ready(tx, job)

    return give_verdict


def _make_blocked(tx: Tx, job: StepJob) -> None:
    if not job.blockers:
        raise RuleError(f"Job {job.id} waits for nothing: it cannot be blocked")
    transitions.found_blocked(tx, [job.id])


def _make_pending_failed(tx: Tx, job: StepJob) -> None:
    transitions.recorded(tx, job.id, JobStatus.PENDING_FAILED, badly=False, result_id=None)


def _disable(tx: Tx, job: StepJob) -> None:
    transitions.disabled(tx, job.id)
    events = TransactionEvents(job.workflow_id)
    announce_completion(tx, events)
    events.write(tx)


def _enable(tx: Tx, job: StepJob) -> None:
    transitions.enabled(tx, job.id)


def _all(*changes: Callable[[Tx, StepJob], None]) -> Callable[[Tx, StepJob], None]:
    """Return a function that carries out several changes, one after the other."""

    def carry_out(tx: Tx, job: StepJob) -> None:
        for change in changes:
            change(tx, job)

    return carry_out


_Status: Final = JobStatus
_STATUS_CHANGES: Final[Mapping[tuple[JobStatus, JobStatus], Callable[[Tx, StepJob], None]]] = {
    **{
        (status, _Status.UNINITIALIZED): _reset
        for status in (_Status.BLOCKED, _Status.READY, _Status.PENDING, _Status.RUNNING)
    },
    **{(status, _Status.UNINITIALIZED): _reset_ended for status in sorted(UNBLOCKING)},
    (_Status.PENDING_FAILED, _Status.UNINITIALIZED): _give_verdict(_Status.UNINITIALIZED),
    (_Status.DISABLED, _Status.UNINITIALIZED): _enable,
    (_Status.UNINITIALIZED, _Status.BLOCKED): _make_blocked,
    (_Status.READY, _Status.BLOCKED): _make_blocked,
    (_Status.UNINITIALIZED, _Status.READY): _make_ready,
    (_Status.BLOCKED, _Status.READY): _make_ready,
    (_Status.PENDING, _Status.READY): _release,
    (_Status.RUNNING, _Status.READY): _make_lost,
    (_Status.PENDING_FAILED, _Status.READY): _give_verdict(_Status.READY),
    (_Status.UNINITIALIZED, _Status.PENDING): _all(_make_ready, _claim),
    (_Status.READY, _Status.PENDING): _claim,
    (_Status.UNINITIALIZED, _Status.RUNNING): _all(_make_ready, _claim, _start),
    (_Status.READY, _Status.RUNNING): _all(_claim, _start),
    (_Status.PENDING, _Status.RUNNING): _start,
    **{
        (status, _Status.PENDING_FAILED): _make_pending_failed
        for status in (_Status.READY, _Status.PENDING, _Status.RUNNING)
    },
    (_Status.UNINITIALIZED, _Status.DISABLED): _disable,
    **{(status, _Status.DISABLED): _all(_reset, _disable) for status in (_Status.BLOCKED, _Status.READY)},
}
"""The function that carries out a change of status by a user, by present and wanted status."""
