"""The life of one job in single steps, for runners that tell of each by itself.

The steps go through the same transitions and consequences as the exchange, so that runners of both
kinds can work on one workflow. Every step names the run it belongs to; another run's is refused.
"""

from collections.abc import Callable, Mapping
from typing import Any, Final

import sqlalchemy as sa
from attrs import frozen

from torc_framework.models.exits import ExitClass
from torc_framework.models.failures import DEFAULT_MAX_RETRIES, SEPARATE_BUDGET_CLASSES
from torc_framework.models.statuses import END, UNBLOCKING, JobStatus
from torc_framework.store.database.sql import Row, Statement, Tx, ids_param, numbers, param
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
from torc_framework.store.job_state.propagation import announce_completion, propagate
from torc_framework.store.job_state.resets import reset_without_dependents
from torc_framework.store.record_kinds.jobs import JOBS
from torc_framework.store.record_kinds.nodes import COMPUTE_NODES
from torc_framework.store.record_kinds.requirements import FAILURE_HANDLERS
from torc_framework.store.record_kinds.results import RESULTS, status_number
from torc_framework.store.records.crud import create, get
from torc_framework.store.records.events import EventLog, record_user_action, utc_text
from torc_framework.store.records.failure_rules import read_rules
from torc_framework.store.records.kind import Values
from torc_framework.store.runs.lifecycle import check_run
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
_RAN = Statement(
    sa.select(t.JOB.c.id).where(
        t.JOB.c.id.in_(ids_param()), t.JOB.c.status.in_(numbers({JobStatus.COMPLETED, JobStatus.FAILED}))
    )
)
RETRYABLE: Final = frozenset({JobStatus.RUNNING, JobStatus.FAILED, JobStatus.TERMINATED})
"""Statuses from which a runner may ask for another attempt."""
UNREPORTED_RETURN_CODE: Final = 1
"""Return code of an attempt that was given up for another before anybody told how it ended."""


@frozen
class _StepJob:
    """A job as a step finds it."""

    id: int
    workflow_id: int
    name: str
    status: JobStatus
    attempt_id: int
    blockers: int
    node_id: int | None
    failure_handler_id: int | None
    result_id: int | None


def _job(tx: Tx, job_id: int, run_id: int) -> _StepJob:
    """Return a job of the present run."""
    row = tx.row(_JOB, job_id)
    if row is None:
        raise NotFoundError(JOBS.title, job_id)
    job = _StepJob(row[0], row[1], row[2], JobStatus(row[3]), *row[4:])
    check_run(tx, job.workflow_id, run_id)
    return job


# --- start and end ---------------------------------------------------------------------------------


def start_job(tx: Tx, job_id: int, run_id: int, node_id: int) -> Values:
    """Note that a claimed job runs on a compute node; return it.

    Raises:
        NotFoundError: there is no such job or compute node.
        RuleError: the job is not pending, the node is another workflow's, or the run is over.
    """
    job = _job(tx, job_id, run_id)
    if get(tx, COMPUTE_NODES, node_id)["workflow_id"] != job.workflow_id:
        raise RuleError(f"Compute node {node_id} is not in workflow {job.workflow_id}")
    if job.status is not JobStatus.PENDING:
        raise RuleError(f"Job {job_id} cannot be started: status is {job.status.label}, expected pending")
    transitions.attempt_started(tx, node_id, [job_id])
    events = EventLog(job.workflow_id)
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
    """Record how a job ended, and do all that follows; return it.

    The job takes the status that is named, its result the one that was sent. A job that was canceled
    under its runner keeps its status and gets the result.

    Raises:
        NotFoundError: there is no such job.
        RuleError: the status is no end, the job is over, or the result is of another job, run or attempt.
    """
    job = _job(tx, job_id, run_id)
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
    if job.status is not JobStatus.CANCELED:
        _end(tx, job, status, result)
    return get(tx, JOBS, job_id)


def _attempt(job: _StepJob, run_id: int, sent: Mapping[str, Any]) -> int:
    """Return the attempt that a result is of; runners that know nothing of attempts always send 1."""
    expected = {"job_id": job.id, "workflow_id": job.workflow_id, "run_id": run_id}
    if wrong := [f"{name} {sent[name]}, expected {value}" for name, value in expected.items() if sent[name] != value]:
        raise RuleError(f"The result is another job's or run's: {'; '.join(wrong)}")
    attempt = sent.get("attempt_id")
    by_holder = job.node_id is not None and job.node_id == sent["compute_node_id"]
    if attempt not in (None, job.attempt_id) and not by_holder:
        raise RuleError(f"The result is of attempt {attempt}, but job {job.id} is at attempt {job.attempt_id}")
    return job.attempt_id


def _end(tx: Tx, job: _StepJob, status: JobStatus, result: Values) -> None:
    badly = ends_badly(status, result["return_code"])
    transitions.recorded(tx, job.id, status, badly=badly, result_id=result["id"])
    events = EventLog(job.workflow_id)
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

    Dependents that were canceled for its failure, or that wait to be claimed after it, wait for it again.

    Args:
        max_attempts: Attempts in all that draw on one budget; by default what the job's failure handler allows,
            without limit if none does.

    Raises:
        NotFoundError: there is no such job.
        RuleError: it is in no status to be retried from, or its attempts are used up.
    """
    job = _job(tx, job_id, run_id)
    if job.status not in RETRYABLE:
        raise RuleError(f"Job cannot be retried: status is {job.status.label}")
    ending = None if job.result_id is None else tx.row(_ENDING, job.result_id)
    exit_class = None if ending is None else ending[1]
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
    events = EventLog(job.workflow_id)
    events.add(
        "job_retried",
        job_id=job_id,
        job_name=job.name,
        previous_attempt=job.attempt_id,
        new_attempt=job.attempt_id + 1,
        run_id=run_id,
    )
    propagate(tx, events, {}, [job_id])
    events.write(tx)
    return get(tx, JOBS, job_id)


def _handlers_limit(tx: Tx, job: _StepJob, ending: Row | None) -> int | None:
    """Return the attempts that the job's failure handler allows, None if it has nothing to say.

    Return code and class of the ending pick the rule. While the attempt runs nobody has told them; whoever asks has
    found a rule.
    """
    if job.failure_handler_id is None:
        return None
    rules = read_rules(get(tx, FAILURE_HANDLERS, job.failure_handler_id)["rules"])
    if ending is None:
        return max(map(_limit, rules), default=None)
    code, exit_class = ending
    named = [rule for rule in rules if "exit_classes" not in rule or exit_class in (rule["exit_classes"] or ())]
    listing = (rule for rule in named if code in (rule.get("exit_codes") or ()) or _only_names_classes(rule))
    matching_all = (rule for rule in named if rule.get("match_all_exit_codes"))
    rule = next(listing, None) or next(matching_all, None)
    return None if rule is None else _limit(rule)


def _only_names_classes(rule: Mapping[str, Any]) -> bool:
    return "exit_classes" in rule and not rule.keys() & {"exit_codes", "match_all_exit_codes"}


def _limit(rule: Mapping[str, Any]) -> int:
    limit: int | None = rule.get("max_retries")
    return limit if limit is not None else DEFAULT_MAX_RETRIES


def _store_unreported_result(tx: Tx, job: _StepJob, run_id: int) -> None:
    """Keep a result of the attempt that is given up, so that every attempt has one."""
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
        "reason": "its runner asked for another attempt and did not say how this one ended",
    }
    create(tx, RESULTS, result)


def _block_dependents_again(tx: Tx, job_id: int) -> None:
    """Let those wait for a job again that its end had canceled or made ready."""
    again = downstream(tx, [job_id], through={JobStatus.CANCELED, JobStatus.READY})
    transitions.found_blocked(tx, again)
    recount_dependents(tx, dependents_of(tx, [job_id, *again]))
    recount_jobs(tx, again)


# --- by hand ---------------------------------------------------------------------------------------


def change_status(tx: Tx, job_id: int, label: str, run_id: int, user: str | None = None) -> Values:
    """Set a job's status as a person asks, if there is a way there; return the job.

    Raises:
        NotFoundError: there is no such job.
        RuleError: the status is one that only an end gives, or cannot be reached from the present one.
    """
    job = _job(tx, job_id, run_id)
    target = status_number(label)
    if target in UNBLOCKING:
        raise RuleError(
            f"Cannot set completion status '{label}' via manage_status_change. Use complete_job API instead."
        )
    if target is not job.status:
        way = _STATUS_CHANGES.get((job.status, target))
        if way is None:
            sources = ", ".join(source.label for source, reached in _STATUS_CHANGES if reached is target)
            raise RuleError(f"Job {job_id} is {job.status.label}: only a job that is {sources} can be set to {label}")
        way(tx, job)
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


def _reset(tx: Tx, job: _StepJob) -> None:
    transitions.reset(tx, [job.id])


def _undo(tx: Tx, job: _StepJob) -> None:
    """Reset a job that is over and the direct dependents that ran on its account."""
    dependents = dependents_of(tx, [job.id]).job_ids
    ran = [row[0] for row in tx.rows_for(_RAN, dependents)]
    reset_without_dependents(tx, job.workflow_id, [job.id, *ran])


def _free(tx: Tx, job: _StepJob) -> None:
    if job.blockers:
        raise RuleError(f"Job {job.id} waits for others (jobs or groups of jobs: {job.blockers}): it cannot be ready")
    transitions.found_ready_alone(tx, job.id)
    _propagate_ready(tx, job)


def _propagate_ready(tx: Tx, job: _StepJob) -> None:
    events = EventLog(job.workflow_id)
    propagate(tx, events, {}, [job.id])
    events.write(tx)


def _take(tx: Tx, job: _StepJob) -> None:
    transitions.claimed(tx, job.node_id, [job.id])


def _run(tx: Tx, job: _StepJob) -> None:
    transitions.attempt_started(tx, job.node_id, [job.id])


def _release(tx: Tx, job: _StepJob) -> None:
    transitions.released(tx, [job.id])
    _propagate_ready(tx, job)


def _lose(tx: Tx, job: _StepJob) -> None:
    transitions.attempt_lost(tx, [job.id])
    _propagate_ready(tx, job)


def _judge(target: JobStatus) -> Callable[[Tx, _StepJob], None]:
    def judge(tx: Tx, job: _StepJob) -> None:
        transitions.judged(tx, job.id, target)
        if target is JobStatus.READY:
            _propagate_ready(tx, job)

    return judge


def _block(tx: Tx, job: _StepJob) -> None:
    if not job.blockers:
        raise RuleError(f"Job {job.id} waits for nothing: it cannot be blocked")
    transitions.found_blocked(tx, [job.id])


def _defer(tx: Tx, job: _StepJob) -> None:
    transitions.recorded(tx, job.id, JobStatus.PENDING_FAILED, badly=False, result_id=None)


def _disable(tx: Tx, job: _StepJob) -> None:
    transitions.disabled(tx, job.id)
    events = EventLog(job.workflow_id)
    announce_completion(tx, events)
    events.write(tx)


def _enable(tx: Tx, job: _StepJob) -> None:
    transitions.enabled(tx, job.id)


def _steps(*several: Callable[[Tx, _StepJob], None]) -> Callable[[Tx, _StepJob], None]:
    def take(tx: Tx, job: _StepJob) -> None:
        for step in several:
            step(tx, job)

    return take


_S: Final = JobStatus
_STATUS_CHANGES: Final[Mapping[tuple[JobStatus, JobStatus], Callable[[Tx, _StepJob], None]]] = {
    **{(status, _S.UNINITIALIZED): _reset for status in (_S.BLOCKED, _S.READY, _S.PENDING, _S.RUNNING)},
    **{(status, _S.UNINITIALIZED): _undo for status in sorted(UNBLOCKING)},
    (_S.PENDING_FAILED, _S.UNINITIALIZED): _judge(_S.UNINITIALIZED),
    (_S.DISABLED, _S.UNINITIALIZED): _enable,
    (_S.UNINITIALIZED, _S.BLOCKED): _block,
    (_S.READY, _S.BLOCKED): _block,
    (_S.UNINITIALIZED, _S.READY): _free,
    (_S.BLOCKED, _S.READY): _free,
    (_S.PENDING, _S.READY): _release,
    (_S.RUNNING, _S.READY): _lose,
    (_S.PENDING_FAILED, _S.READY): _judge(_S.READY),
    (_S.UNINITIALIZED, _S.PENDING): _steps(_free, _take),
    (_S.READY, _S.PENDING): _take,
    (_S.UNINITIALIZED, _S.RUNNING): _steps(_free, _take, _run),
    (_S.READY, _S.RUNNING): _steps(_take, _run),
    (_S.PENDING, _S.RUNNING): _run,
    **{(status, _S.PENDING_FAILED): _defer for status in (_S.READY, _S.PENDING, _S.RUNNING)},
    (_S.UNINITIALIZED, _S.DISABLED): _disable,
    **{(status, _S.DISABLED): _steps(_reset, _disable) for status in (_S.BLOCKED, _S.READY)},
}
"""How a person's wish is carried out, by present and wanted status."""
