"""What a runner reports: attempts that started and ended, jobs given back.

Reports name attempts. An attempt that is over, or that the server never handed out, changes
nothing; so every report may be sent again. A report is believed whoever sends it, except that a job
is started or given back only in the name of the runner that holds it, or when that runner is gone:
a late copy must not take a job from the runner that has it now.
"""

import time
from collections.abc import Sequence
from typing import Final

import msgspec
import sqlalchemy as sa
from attrs import Factory, define, evolve

from torc_framework.models.exchange import EndedReport, StartedReport
from torc_framework.models.exits import ORPHANED_RETURN_CODE, ExitClass
from torc_framework.models.failures import SEPARATE_BUDGET_CLASSES
from torc_framework.models.statuses import END, LIVE, UNBLOCKING, JobStatus
from torc_framework.store.database.sql import Row, Statement, Tx, ids_param, insertion, param
from torc_framework.store.errors import RuleError
from torc_framework.store.exchange.claims import delay_jobs
from torc_framework.store.job_state import transitions
from torc_framework.store.job_state.attempt_budgets import attempts_spent
from torc_framework.store.records.events import EventLog, utc_text
from torc_framework.store.tables.core import COMPUTE_NODE, FILE, JOB, RESULT

MAX_DELAY_S: Final = 366 * 86_400.0
"""Longest wait between attempts, whatever a report asks for."""
MAX_LOST_ATTEMPTS: Final = 3
"""Lost attempts after which a job fails, if the report names no other number."""

_JOBS = Statement(
    sa.select(
        JOB.c.id,
        JOB.c.status,
        JOB.c.attempt_id,
        JOB.c.name,
        JOB.c.active_compute_node_id,
        COMPUTE_NODE.c.is_active,
        JOB.c.workflow_id,
    )
    .select_from(JOB.outerjoin(COMPUTE_NODE, COMPUTE_NODE.c.id == JOB.c.active_compute_node_id))
    .where(JOB.c.id.in_(ids_param()))
)
_RECORDED = Statement(
    sa.select(RESULT.c.job_id, RESULT.c.attempt_id).where(
        RESULT.c.job_id.in_(ids_param()), RESULT.c.run_id == param("run")
    ),
    "run",
)
_FORGET = Statement(
    sa.delete(RESULT).where(
        RESULT.c.job_id == param("job"), RESULT.c.run_id == param("run"), RESULT.c.attempt_id == param("attempt")
    ),
    "job",
    "run",
    "attempt",
)
_INSERT_RESULTS = insertion(
    RESULT,
    "id",
    "job_id",
    "workflow_id",
    "run_id",
    "attempt_id",
    "compute_node_id",
    "return_code",
    "exec_time_minutes",
    "completion_time",
    "status",
    "peak_memory_bytes",
    "avg_memory_bytes",
    "peak_cpu_percent",
    "avg_cpu_percent",
    "exit_code",
    "signal",
    "exit_class",
    "reason",
    "cpu_time_s",
    "observation",
)
_MTIME = Statement(
    sa.update(FILE)
    .where(FILE.c.id == param("file"), FILE.c.workflow_id == param("workflow"))
    .values(st_mtime=param("mtime")),
    "mtime",
    "file",
    "workflow",
)
_encode: Final = msgspec.json.Encoder().encode


@define
class ReportedJob:
    """A job that a report names, as the transaction sees it."""

    id: int
    status: JobStatus
    attempt_id: int
    name: str
    holder: int | None
    holder_active: bool

    def held_by(self, node_id: int) -> bool:
        """Say whether that runner may speak for the job."""
        return self.holder == node_id or not self.holder_active


@define
class ExchangeState:
    """One exchange under way: who asks, and what has come of it so far."""

    tx: Tx
    workflow_id: int
    node_id: int
    run_id: int
    is_canceled: bool
    events: EventLog
    jobs: dict[int, ReportedJob]
    endings: dict[int, bool] = Factory(dict)
    ready: list[int] = Factory(list)
    held: list[int] = Factory(list)
    delayed: dict[int, float] = Factory(dict)
    continued: list[int] = Factory(list)
    has_interrupted: bool = False


def reported_jobs(tx: Tx, workflow_id: int, job_ids: Sequence[int]) -> dict[int, ReportedJob]:
    """Return those of the jobs that the workflow has."""
    return {
        row[0]: ReportedJob(row[0], JobStatus(row[1]), row[2], row[3], row[4], bool(row[5]))
        for row in tx.rows_for(_JOBS, job_ids)
        if row[6] == workflow_id
    }


def record_started(now: ExchangeState, reports: Sequence[StartedReport]) -> None:
    """Record attempts that began."""
    started: list[int] = []
    for report in reports:
        job = now.jobs.get(report.job_id)
        if (
            job is not None
            and job.status is JobStatus.PENDING
            and job.attempt_id == report.attempt_id
            and job.held_by(now.node_id)
        ):
            job.status = JobStatus.RUNNING
            started.append(job.id)
            now.events.add(
                "job_started",
                job_id=job.id,
                job_name=job.name,
                compute_node_id=now.node_id,
                run_id=now.run_id,
                attempt_id=job.attempt_id,
            )
    transitions.attempt_started(now.tx, now.node_id, started)


def record_ended(now: ExchangeState, reports: Sequence[EndedReport]) -> None:
    """Record attempts that ended, and what becomes of their jobs."""
    recorded = set(now.tx.rows_for(_RECORDED, [report.job_id for report in reports], now.run_id))
    next_result = now.tx.new_ids(RESULT, len(reports))
    results: list[Row] = []
    stale: list[Row] = []
    mtimes: list[Row] = []
    outcomes = _EndingsByOutcome()
    for report in map(_as_recorded, reports):
        job, key = now.jobs.get(report.job_id), (report.job_id, report.attempt_id)
        if job is None or not _is_unrecorded_ending(job, report, key in recorded):
            continue
        if key in recorded:
            stale.append((job.id, now.run_id, report.attempt_id))
        recorded.add(key)
        mtimes += [(mtime, file_id, now.workflow_id) for file_id, mtime in (report.file_mtimes or {}).items()]
        result_id = next_result + len(results)
        results.append(_result_row(result_id, report, now))
        if job.status is not JobStatus.CANCELED:
            _apply_ending(now, job, report, result_id, outcomes)
    now.tx.run_each(_FORGET, stale)
    now.tx.run_each(_INSERT_RESULTS, results)
    transitions.attempt_ended(now.tx, outcomes.ended)
    transitions.attempt_interrupted(now.tx, outcomes.interrupted)
    transitions.attempt_retried(now.tx, outcomes.retried)
    transitions.attempt_lost(now.tx, outcomes.lost)
    delay_jobs(now.tx, now.delayed)
    now.tx.run_each(_MTIME, mtimes)


_CLASSES_OF_LOST_ATTEMPTS: Final = SEPARATE_BUDGET_CLASSES | {ExitClass.CANCELED}
"""Classes that say what became of the allocation of an attempt whose end nobody saw."""


def _as_recorded(report: EndedReport) -> EndedReport:
    """Return the report; of an attempt whose end nobody saw, what is recorded instead."""
    if not report.lost:
        return report
    known = report.exit_class if report.exit_class in _CLASSES_OF_LOST_ATTEMPTS else str(ExitClass.ORPHANED)
    return evolve(report, status=JobStatus.FAILED.label, return_code=ORPHANED_RETURN_CODE, exit_class=known)


def _is_unrecorded_ending(job: ReportedJob, report: EndedReport, recorded: bool) -> bool:
    """Say whether a report tells of an attempt whose end is not known yet.

    A recorded result of an attempt that is under way again comes from before a reset within the same
    run; it is replaced. A canceled job may still get the result of its last attempt. So may one that was
    given back and yet ran to its end; if it wants another attempt, it has that already.
    """
    if job.attempt_id != report.attempt_id:
        return False
    if job.status in LIVE:
        return True
    if job.status is JobStatus.READY and (report.lost or report.retry is not None):
        return False
    return job.status in (JobStatus.READY, JobStatus.CANCELED) and not recorded


@define
class _EndingsByOutcome:
    """Attempts by what becomes of their jobs."""

    ended: list[tuple[int, int, int | None, int]] = Factory(list)
    interrupted: list[tuple[int, int]] = Factory(list)
    retried: list[int] = Factory(list)
    lost: list[int] = Factory(list)


def _apply_ending(
    now: ExchangeState, job: ReportedJob, report: EndedReport, result_id: int, outcomes: _EndingsByOutcome
) -> None:
    """Find out what becomes of a job: another attempt, or an end."""
    if not now.is_canceled and _may_retry(now, job, report):
        _note_retry(now, job, report)
        (outcomes.lost if report.lost else outcomes.retried).append(job.id)
        return
    status = _end_status(report.status)
    job.status = status
    if report.interrupted and status is JobStatus.TERMINATED:
        outcomes.interrupted.append((result_id, job.id))
        now.has_interrupted = True
        now.tx.workflows_to_wake.add(now.workflow_id)  # another runner may go on with it
    else:
        badly = ends_badly(status, report.return_code)
        outcomes.ended.append((int(status), int(badly), result_id, job.id))
        if status in UNBLOCKING:
            now.endings[job.id] = badly
    now.events.job_ended(
        job.id,
        job.name,
        status,
        report.return_code,
        attempt_id=job.attempt_id,
        run_id=now.run_id,
        exit_class=report.exit_class,
        reason=report.reason,
    )


def _note_retry(now: ExchangeState, job: ReportedJob, report: EndedReport) -> None:
    """Note that a job gets another attempt, and whether its runner keeps it."""
    now.events.add(
        "job_lost" if report.lost else "job_retried",
        job_id=job.id,
        job_name=job.name,
        previous_attempt=job.attempt_id,
        new_attempt=job.attempt_id + 1,
        run_id=now.run_id,
        return_code=report.return_code,
        reason=(report.retry.reason if report.retry else "") or report.reason,
    )
    now.ready.append(job.id)
    if report.retry is not None and report.retry.hold and not report.lost:
        now.held.append(job.id)
    if report.retry is not None and report.retry.delay_s > 0:
        now.delayed[job.id] = time.time() + min(report.retry.delay_s, MAX_DELAY_S)
    job.attempt_id += 1
    job.status = JobStatus.READY


def _may_retry(now: ExchangeState, job: ReportedJob, report: EndedReport) -> bool:
    """Say whether the budget of this ending allows another attempt."""
    if report.retry is None and not report.lost:
        return False
    limit = report.retry.max_attempts if report.retry else MAX_LOST_ATTEMPTS
    return attempts_spent(now.tx, job.id, now.run_id, job.attempt_id, report.exit_class) < limit


def _end_status(label: str) -> JobStatus:
    try:
        status = JobStatus.from_label(label)
    except ValueError as error:
        raise RuleError(str(error)) from error
    if status not in END:
        raise RuleError(
            f"an attempt cannot end as {label!r}; expected one of {', '.join(s.label for s in sorted(END))}"
        )
    return status


def ends_badly(status: JobStatus, return_code: int) -> bool:
    """Say whether a job that ended so cancels the dependents that ask for it."""
    return status in (JobStatus.FAILED, JobStatus.CANCELED) or (status is JobStatus.TERMINATED and return_code != 0)


def _result_row(result_id: int, report: EndedReport, now: ExchangeState) -> Row:
    observation = None if report.observation is None else _encode(report.observation).decode()
    return (
        result_id,
        report.job_id,
        now.workflow_id,
        now.run_id,
        report.attempt_id,
        now.node_id,
        report.return_code,
        report.exec_time_s / 60,
        utc_text(report.ended_at),
        int(_end_status(report.status)),
        report.peak_memory_bytes,
        report.avg_memory_bytes,
        report.peak_cpu_percent,
        report.avg_cpu_percent,
        report.exit_code,
        report.signal,
        report.exit_class,
        report.reason and report.reason.replace("\0", "\ufffd"),  # PostgreSQL has no NUL; the rest must not be lost
        report.cpu_time_s,
        observation,
    )


def record_released(now: ExchangeState, job_ids: Sequence[int]) -> None:
    """Take back jobs that were not started."""
    given_back = [
        job.id
        for job_id in job_ids
        if (job := now.jobs.get(job_id)) and job.status is JobStatus.PENDING and job.held_by(now.node_id)
    ]
    transitions.released(now.tx, given_back)
    now.ready += given_back
