"""Start, end and retry of one job by single calls, which Torc's own runners make.

The calls use the same transitions and the same propagation as the exchange, so that runners of both kinds can work on
one workflow. Every call names its run; a call of another run than the present one is refused.
"""

from collections.abc import Mapping
from typing import Any, Final, NamedTuple

import sqlalchemy as sa

from torc_framework.exits.failure_rules import attempts_allowed, choose_rule, covers_ending
from torc_framework.models.exits import ExitClass
from torc_framework.models.failures import SEPARATE_BUDGET_CLASSES
from torc_framework.models.statuses import END, UNBLOCKING, JobStatus
from torc_framework.store.database.sql import Statement, Tx, param
from torc_framework.store.errors import NotFoundError, RuleError
from torc_framework.store.exchange.reports import ends_badly
from torc_framework.store.job_state import transitions
from torc_framework.store.job_state.attempt_budgets import attempts_spent
from torc_framework.store.job_state.dependency_counters import (
    dependents_of,
    downstream,
    recount_dependents,
    recount_jobs,
)
from torc_framework.store.job_state.propagation import propagate
from torc_framework.store.record_kinds.jobs import JOBS
from torc_framework.store.record_kinds.nodes import COMPUTE_NODES
from torc_framework.store.record_kinds.requirements import FAILURE_HANDLERS
from torc_framework.store.record_kinds.results import RESULTS, status_number
from torc_framework.store.records.crud import create, get
from torc_framework.store.records.events import TransactionEvents, utc_text
from torc_framework.store.records.failure_rules import read_rules
from torc_framework.store.records.kind import Values
from torc_framework.store.runs.workflow_status import check_run
from torc_framework.store.tables import core as t

_JOB = Statement(
    sa.select(
        t.JOB.c.id,
        t.JOB.c.workflow_id,
        t.JOB.c.name,
        t.JOB.c.status,
        t.JOB.c.attempt_id,
        t.JOB.c.blockers,
        t.JOB.c.active_compute_node_id,
        t.JOB.c.failure_handler_id,
        t.JOB.c.result_id,
        t.JOB.c.failed_blockers,
        t.JOB.c.cancel_on_blocking_job_failure,
    ).where(t.JOB.c.id == param("job")),
    "job",
)
_RESULT: Final = sa.and_(
    t.RESULT.c.job_id == param("job"), t.RESULT.c.run_id == param("run"), t.RESULT.c.attempt_id == param("attempt")
)
_RECORDED = Statement(sa.select(t.RESULT.c.id).where(_RESULT), "job", "run", "attempt")
_FORGET = Statement(sa.delete(t.RESULT).where(_RESULT), "job", "run", "attempt")
_ENDING = Statement(
    sa.select(t.RESULT.c.return_code, t.RESULT.c.exit_class).where(t.RESULT.c.id == param("result")), "result"
)
RETRYABLE: Final = frozenset({JobStatus.RUNNING, JobStatus.FAILED, JobStatus.TERMINATED})
"""Statuses in which a runner may ask for another attempt."""
UNREPORTED_RETURN_CODE: Final = 1
"""Return code of an attempt whose runner asked for another one without a report of its end."""


class StepJob(NamedTuple):
    """A job before a step, a row of `_JOB`."""

    id: int
    workflow_id: int
    name: str
    status: JobStatus
    attempt_id: int
    blockers: int
    node_id: int | None
    failure_handler_id: int | None
    result_id: int | None
    failed_blockers: int
    cancel_on_blocking_job_failure: bool

    @property
    def was_canceled_by_failure(self) -> bool:
        """Whether it is canceled because a job that it waits for ended badly."""
        is_canceled = self.status is JobStatus.CANCELED
        return is_canceled and self.failed_blockers > 0 and self.cancel_on_blocking_job_failure


class _Ending(NamedTuple):
    """The end of an attempt, a row of `_ENDING`."""

    return_code: int
    exit_class: str | None


def find_job(tx: Tx, job_id: int, run_id: int) -> StepJob:
    """Return a job, if the run is the present one."""
    row = tx.row(_JOB, job_id)
    if row is None:
        raise NotFoundError(JOBS.title, job_id)
    job = StepJob(*row)
    check_run(tx, job.workflow_id, run_id)
    return job._replace(status=JobStatus(job.status))


# --- start and end ---------------------------------------------------------------------------------


def start_job(tx: Tx, job_id: int, run_id: int, node_id: int) -> Values:
    """Store that a claimed job runs on a compute node; return it.

    Raises:
        NotFoundError: there is no such job or compute node.
        RuleError: the job is not pending, the node is another workflow's, or the run is not the present one.
    """
    job = find_job(tx, job_id, run_id)
    if get(tx, COMPUTE_NODES, node_id)["workflow_id"] != job.workflow_id:
        raise RuleError(f"Compute node {node_id} is not in workflow {job.workflow_id}")
    if job.status is not JobStatus.PENDING:
        raise RuleError(f"Job {job_id} cannot be started: status is {job.status.label}, expected pending")
    transitions.attempt_started(tx, node_id, [job_id])
    events = TransactionEvents(job.workflow_id)
    events.add(
        "job_started",
        job_id=job_id,
        job_name=job.name,
        compute_node_id=node_id,
        run_id=run_id,
        attempt_id=job.attempt_id,
    )
    events.write(tx)
    return get(tx, JOBS, job_id)


def complete_job(tx: Tx, job_id: int, label: str, run_id: int, sent: Mapping[str, Any]) -> Values:
    """Store how a job ended, and do all that follows; return it.

    The job takes the status ``label``; ``sent`` becomes its result. A job that was canceled while it ran keeps its
    status and gets the result. A job that was canceled because another failed takes the status all the same, because
    the sender of the result has run it: jobs that wait for it go on.

    Raises:
        NotFoundError: there is no such job.
        RuleError: no attempt ends in this status, the job is over, or the result is of another job, run or attempt.
    """
    job = find_job(tx, job_id, run_id)
    status = status_number(label)
    if status not in END:
        ends = ", ".join(end.label for end in sorted(END))
        raise RuleError(f"Job {job_id} cannot be completed with status {label!r}; expected one of {ends}")
    attempt = _attempt(job, run_id, sent)
    recorded = tx.value(_RECORDED, job_id, run_id, attempt) is not None
    if job.status in UNBLOCKING and (recorded or job.status is not JobStatus.CANCELED):
        raise RuleError(f"Job {job_id} is already complete with status {job.status.label}")
    if job.status is JobStatus.DISABLED:
        raise RuleError(f"Job {job_id} is disabled: it cannot be completed")
    if recorded:  # from before a reset within the same run
        tx.run(_FORGET, job_id, run_id, attempt)
    result = create(tx, RESULTS, {**sent, "attempt_id": attempt})
    if job.was_canceled_by_failure:
        transitions.found_blocked(tx, [job_id])
        _block_dependents_again(tx, job_id)
        _end(tx, job, status, result)
    elif job.status is not JobStatus.CANCELED:
        _end(tx, job, status, result)
    return get(tx, JOBS, job_id)


def _attempt(job: StepJob, run_id: int, sent: Mapping[str, Any]) -> int:
    """Return the attempt to which a result belongs; Torc's own runners always send 1."""
    expected = {"job_id": job.id, "workflow_id": job.workflow_id, "run_id": run_id}
    if wrong := [f"{name} {sent[name]}, expected {value}" for name, value in expected.items() if sent[name] != value]:
        raise RuleError(f"The result is another job's or run's: {'; '.join(wrong)}")
    attempt = sent.get("attempt_id")
    by_holder = job.node_id is not None and job.node_id == sent["compute_node_id"]
    if attempt not in (None, job.attempt_id) and not by_holder:
        raise RuleError(f"The result is of attempt {attempt}, but job {job.id} is at attempt {job.attempt_id}")
    return job.attempt_id


def _end(tx: Tx, job: StepJob, status: JobStatus, result: Values) -> None:
    badly = ends_badly(status, result["return_code"])
    transitions.recorded(tx, job.id, status, badly=badly, result_id=result["id"])
    events = TransactionEvents(job.workflow_id)
    events.job_ended(
        job.id,
        job.name,
        status,
        result["return_code"],
        attempt_id=job.attempt_id,
        run_id=result["run_id"],
        exit_class=result.get("exit_class"),
        reason=result.get("reason"),
    )
    propagate(tx, events, {job.id: badly} if status in UNBLOCKING else {})
    events.write(tx)


# --- another attempt -------------------------------------------------------------------------------


def retry_job(tx: Tx, job_id: int, run_id: int, max_attempts: int | None = None) -> Values:
    """Give a failed job another attempt; return it.

    Dependents that its end had canceled or made ready become blocked again.

    Args:
        max_attempts: Largest number of attempts that count towards one budget (`attempts_spent`); by default the number
            that the job's failure handler allows, and no limit if no rule of it applies.

    Raises:
        NotFoundError: there is no such job.
        RuleError: it cannot be retried in its status, or its attempts are used up.
    """
    job = find_job(tx, job_id, run_id)
    if job.status not in RETRYABLE:
        raise RuleError(f"Job cannot be retried: status is {job.status.label}")
    row = None if job.result_id is None else tx.row(_ENDING, job.result_id)
    ending = None if row is None else _Ending(*row)
    exit_class = None if ending is None else ending.exit_class
    limit = _handlers_limit(tx, job, ending) if max_attempts is None else max_attempts
    if (
        limit is not None
        and exit_class != ExitClass.INTERRUPTED
        and (count := attempts_spent(tx, job_id, run_id, job.attempt_id, exit_class)) >= limit
    ):
        what = f"{exit_class} attempts" if exit_class in SEPARATE_BUDGET_CLASSES else "attempts"
        raise RuleError(f"Job {job_id} cannot be retried: it has had {count} {what} of at most {limit}")
    _store_unreported_result(tx, job, run_id)
    transitions.attempt_retried(tx, [job_id])
    if job.status in UNBLOCKING:
        _block_dependents_again(tx, job_id)
    events = TransactionEvents(job.workflow_id)
    events.add(
        "job_retried",
        job_id=job_id,
        job_name=job.name,
        previous_attempt=job.attempt_id,
        new_attempt=job.attempt_id + 1,
        run_id=run_id,
        return_code=None if ending is None else ending.return_code,
    )
    propagate(tx, events, {}, [job_id])
    events.write(tx)
    return get(tx, JOBS, job_id)


def _handlers_limit(tx: Tx, job: StepJob, ending: _Ending | None) -> int | None:
    """Return the number of attempts that the job's failure handler allows, None if it sets no limit.

    Return code and class of the ending choose the rule. While the attempt runs, these are not known: then the largest
    number of all rules is returned, because the runner that asks has chosen one of them.
    """
    if job.failure_handler_id is None:
        return None
    rules = read_rules(get(tx, FAILURE_HANDLERS, job.failure_handler_id)["rules"])
    if ending is None:
        return max(map(attempts_allowed, rules), default=None)
    code, exit_class = ending
    chosen = choose_rule(rules, code, lambda rule: covers_ending(rule, code, exit_class))
    return None if chosen is None else attempts_allowed(chosen[0])


def _store_unreported_result(tx: Tx, job: StepJob, run_id: int) -> None:
    """Store a result for an attempt whose end was not reported, so that every attempt has one."""
    if tx.value(_RECORDED, job.id, run_id, job.attempt_id) is not None:
        return
    result = {
        "job_id": job.id,
        "workflow_id": job.workflow_id,
        "run_id": run_id,
        "attempt_id": job.attempt_id,
        "compute_node_id": job.node_id or 0,
        "return_code": UNREPORTED_RETURN_CODE,
        "exec_time_minutes": 0.0,
        "completion_time": utc_text(),
        "status": JobStatus.FAILED.label,
        "exit_class": str(ExitClass.UNKNOWN),
        "reason": "its runner asked for another attempt and did not report how this one ended",
    }
    create(tx, RESULTS, result)


def _block_dependents_again(tx: Tx, job_id: int) -> None:
    """Block those dependents of a job again that its end had canceled or made ready."""
    again = downstream(tx, [job_id], through={JobStatus.CANCELED, JobStatus.READY})
    transitions.found_blocked(tx, again)
    recount_dependents(tx, dependents_of(tx, [job_id, *again]))
    recount_jobs(tx, again)
