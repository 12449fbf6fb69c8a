"""Stores what a runner reports: attempts that started, attempts that ended, and jobs that it releases.

Every report names an attempt. A report on an attempt that is over, or that no runner has claimed, changes nothing, so
a runner may send a report again. Any runner may report the end of an attempt. Only the runner that holds a job may
report its start or release it, or any runner if the holder has ended: a repeated report that arrives late must not
take a job from the runner that holds it now.
"""

import time
from collections.abc import Callable, Sequence
from typing import Final

import msgspec
import sqlalchemy as sa
from attrs import Factory, define, evolve

from torc_framework.models.exchange import EndedReport, StartedReport, WaitingReport
from torc_framework.models.exits import ORPHANED_RETURN_CODE, ExitClass
from torc_framework.models.failures import SEPARATE_BUDGET_CLASSES
from torc_framework.models.statuses import END, LIVE, UNBLOCKING, JobStatus
from torc_framework.store.database.sql import Row, Statement, Tx, ids_param, insertion, param
from torc_framework.store.errors import RuleError
from torc_framework.store.exchange.claims import delay_jobs
from torc_framework.store.job_state import transitions
from torc_framework.store.job_state.attempt_budgets import attempts_spent
from torc_framework.store.records.events import TransactionEvents, utc_text
from torc_framework.store.tables.core import COMPUTE_NODE, FILE, JOB, RESULT

MAX_DELAY_S: Final = 366 * 86_400.0
"""Longest delay between two attempts; a longer one in a report is shortened to this."""
MAX_REASON: Final = 1000
"""Most characters of a reason for which an attempt waits that are stored."""
MAX_LOST_ATTEMPTS: Final = 3
"""Number of lost attempts after which a job fails, if the report has no number."""

_JOBS = Statement(
    sa.select(
        JOB.c.workflow_id,
        JOB.c.id,
        JOB.c.status,
        JOB.c.attempt_id,
        JOB.c.name,
        JOB.c.active_compute_node_id,
        COMPUTE_NODE.c.is_active,
    )
    .select_from(JOB.outerjoin(COMPUTE_NODE, COMPUTE_NODE.c.id == JOB.c.active_compute_node_id))
    .where(JOB.c.id.in_(ids_param()))
)
_RECORDED = Statement(
    sa.select(RESULT.c.job_id, RESULT.c.attempt_id, RESULT.c.run_id).where(RESULT.c.job_id.in_(ids_param()))
)
"""It has no condition on ``run_id``: PostgreSQL would read all results of the run while the table is small."""
_FORGET = Statement(
    sa.delete(RESULT).where(
        RESULT.c.job_id == param("job"), RESULT.c.run_id == param("run"), RESULT.c.attempt_id == param("attempt")
    ),
    "job",
    "run",
    "attempt",
)
_WAITS = Statement(
    sa.update(JOB).where(JOB.c.id == param("job")).values(waiting_reason=param("reason")), "reason", "job"
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
    """A job that a report names, in its state within the transaction.

    Attributes:
        holder: The runner that holds it.
        holder_active: That runner has not ended.
    """

    id: int
    status: JobStatus
    attempt_id: int
    name: str
    holder: int | None
    holder_active: bool

    def held_by(self, node_id: int) -> bool:
        """Return whether a runner may report the start of the job or release it."""
        return self.holder == node_id or not self.holder_active


@define
class ExchangeState:
    """One exchange: its runner, and what the reports that have been stored so far change.

    Attributes:
        jobs: The jobs that the reports name, by id.
        recorded: The attempts of these jobs in the present run that have a result, as (job, attempt).
        next_result: The id for the next result; there are as many as reports of ends.
        endings: Jobs that have reached an unblocking status, and whether they ended badly.
        ready: Jobs that have become ready.
        held: Jobs whose next attempt the server claims for the same runner.
        delayed: When the next attempt of a job may begin, seconds since the epoch.
        continued: Jobs that the runner has started before it reported the end of the job before.
        has_interrupted: The workflow has interrupted jobs.
    """

    tx: Tx
    workflow_id: int
    node_id: int
    run_id: int
    is_canceled: bool
    events: TransactionEvents
    jobs: dict[int, ReportedJob]
    recorded: set[tuple[int, int]]
    next_result: int
    endings: dict[int, bool] = Factory(dict)
    ready: list[int] = Factory(list)
    held: list[int] = Factory(list)
    delayed: dict[int, float] = Factory(dict)
    continued: list[int] = Factory(list)
    has_interrupted: bool = False


def reported_jobs_later(tx: Tx, workflow_id: int, job_ids: Sequence[int]) -> Callable[[], dict[int, ReportedJob]]:
    """Return a function that returns those of the jobs that the workflow has, by id (`Tx.rows_later`)."""
    rows = tx.rows_for_later(_JOBS, job_ids)
    return lambda: {
        id_: ReportedJob(id_, JobStatus(status), attempt_id, name, holder, bool(holder_active))
        for owner, id_, status, attempt_id, name, holder, holder_active in rows()
        if owner == workflow_id
    }


def recorded_later(tx: Tx, reports: Sequence[EndedReport], run_id: int) -> Callable[[], set[tuple[int, int]]]:
    """Return a function that returns the recorded attempts of the jobs that reports name, as (job, attempt)."""
    rows = tx.rows_for_later(_RECORDED, [report.job_id for report in reports])
    return lambda: {(job_id, attempt_id) for job_id, attempt_id, run in rows() if run == run_id}


def record_started(state: ExchangeState, reports: Sequence[StartedReport]) -> None:
    """Store that attempts began; those of ``continued`` jobs, on the runners for which these were claimed."""
    started: dict[int, list[int]] = {}
    for report in reports:
        job = state.jobs.get(report.job_id)
        if job is None or job.status is not JobStatus.PENDING or job.attempt_id != report.attempt_id:
            continue
        holder = job.holder if job.id in state.continued else state.node_id
        if holder is not None and (holder == job.holder or job.held_by(state.node_id)):
            job.status = JobStatus.RUNNING
            started.setdefault(holder, []).append(job.id)
            state.events.add(
                "job_started",
                job_id=job.id,
                job_name=job.name,
                compute_node_id=holder,
                run_id=state.run_id,
                attempt_id=job.attempt_id,
            )
    for holder, job_ids in started.items():
        transitions.attempt_started(state.tx, holder, job_ids)


def record_ended(state: ExchangeState, reports: Sequence[EndedReport]) -> None:
    """Store that attempts ended, and end or retry their jobs."""
    results: list[Row] = []
    stale: list[Row] = []
    mtimes: list[Row] = []
    outcomes = _EndingsByOutcome()
    for report in map(_as_recorded, reports):
        job, key = state.jobs.get(report.job_id), (report.job_id, report.attempt_id)
        if job is None or not _is_unrecorded_ending(job, report, key in state.recorded):
            continue
        if key in state.recorded:
            stale.append((job.id, state.run_id, report.attempt_id))
        state.recorded.add(key)
        mtimes += [(mtime, file_id, state.workflow_id) for file_id, mtime in (report.file_mtimes or {}).items()]
        result_id, state.next_result = state.next_result, state.next_result + 1
        results.append(_result_row(result_id, report, state))
        if job.status is not JobStatus.CANCELED:
            _apply_ending(state, job, report, result_id, outcomes)
    state.tx.run_each(_FORGET, stale)
    state.tx.run_each(_INSERT_RESULTS, results)
    transitions.attempt_ended(state.tx, outcomes.ended)
    transitions.attempt_interrupted(state.tx, outcomes.interrupted)
    transitions.attempt_retried(state.tx, outcomes.retried)
    transitions.attempt_lost(state.tx, outcomes.lost)
    delay_jobs(state.tx, state.delayed)
    state.tx.run_each(_MTIME, mtimes)


_CLASSES_OF_LOST_ATTEMPTS: Final = SEPARATE_BUDGET_CLASSES | {ExitClass.CANCELED}
"""Classes that a lost attempt may have: they are known from its allocation, not from the attempt."""


def _as_recorded(report: EndedReport) -> EndedReport:
    """Return a report as it is stored; for a lost attempt, one with status, return code and class of a lost attempt."""
    if not report.lost:
        return report
    known = report.exit_class if report.exit_class in _CLASSES_OF_LOST_ATTEMPTS else str(ExitClass.ORPHANED)
    return evolve(report, status=JobStatus.FAILED.label, return_code=ORPHANED_RETURN_CODE, exit_class=known)


def _is_unrecorded_ending(job: ReportedJob, report: EndedReport, recorded: bool) -> bool:
    """Return whether a report is of an attempt whose end is not stored yet.

    If a result of an attempt that is under way is stored, it is from before a reset within the same run, and is
    replaced. A canceled job may still get the result of its last attempt. So may a job that was released and ran to
    its end all the same; if its report asks for a retry, it changes nothing, because the job is ready already.
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
    """Endings by what happens to their jobs; each list is the argument of the transition of that name."""

    ended: list[tuple[int, int, int | None, int]] = Factory(list)
    interrupted: list[tuple[int, int]] = Factory(list)
    retried: list[int] = Factory(list)
    lost: list[int] = Factory(list)


def _apply_ending(
    state: ExchangeState, job: ReportedJob, report: EndedReport, result_id: int, outcomes: _EndingsByOutcome
) -> None:
    """Decide whether a job gets another attempt or ends, and note the result."""
    if not state.is_canceled and _may_retry(state, job, report):
        _note_retry(state, job, report)
        (outcomes.lost if report.lost else outcomes.retried).append(job.id)
        return
    status = _end_status(report.status)
    job.status = status
    if report.interrupted and status is JobStatus.TERMINATED:
        outcomes.interrupted.append((result_id, job.id))
        state.has_interrupted = True
        state.tx.workflows_with_ready_jobs.add(state.workflow_id)  # another runner may go on with it
    else:
        badly = ends_badly(status, report.return_code)
        outcomes.ended.append((int(status), int(badly), result_id, job.id))
        if status in UNBLOCKING:
            state.endings[job.id] = badly
    state.events.job_ended(
        job.id,
        job.name,
        status,
        report.return_code,
        attempt_id=job.attempt_id,
        run_id=state.run_id,
        exit_class=report.exit_class,
        reason=report.reason,
    )


def _note_retry(state: ExchangeState, job: ReportedJob, report: EndedReport) -> None:
    """Note that a job gets another attempt, its delay, and whether the same runner claims it."""
    state.events.add(
        "job_lost" if report.lost else "job_retried",
        job_id=job.id,
        job_name=job.name,
        previous_attempt=job.attempt_id,
        new_attempt=job.attempt_id + 1,
        run_id=state.run_id,
        return_code=report.return_code,
        reason=(report.retry.reason if report.retry else "") or report.reason,
    )
    state.ready.append(job.id)
    if report.retry is not None and report.retry.hold and not report.lost:
        state.held.append(job.id)
    if report.retry is not None and report.retry.delay_s > 0:
        state.delayed[job.id] = time.time() + min(report.retry.delay_s, MAX_DELAY_S)
    job.attempt_id += 1
    job.status = JobStatus.READY


def _may_retry(state: ExchangeState, job: ReportedJob, report: EndedReport) -> bool:
    """Return whether a report asks for another attempt that the budget of its ending allows."""
    if report.retry is None and not report.lost:
        return False
    limit = report.retry.max_attempts if report.retry else MAX_LOST_ATTEMPTS
    return attempts_spent(state.tx, job.id, state.run_id, job.attempt_id, report.exit_class) < limit


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
    """Return whether such an ending cancels dependents that have ``cancel_on_blocking_job_failure``."""
    return status in (JobStatus.FAILED, JobStatus.CANCELED) or (status is JobStatus.TERMINATED and return_code != 0)


def _result_row(result_id: int, report: EndedReport, state: ExchangeState) -> Row:
    observation = None if report.observation is None else _encode(report.observation).decode()
    return (
        result_id,
        report.job_id,
        state.workflow_id,
        state.run_id,
        report.attempt_id,
        state.node_id,
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
        _storable(report.reason),
        report.cpu_time_s,
        observation,
    )


def _storable(reason: str | None) -> str | None:
    """Return a text as PostgreSQL can store it: without NUL."""
    return reason and reason.replace("\0", "\ufffd")


def record_waiting(state: ExchangeState, reports: Sequence[WaitingReport]) -> None:
    """Store what attempts wait for that the runner holds and that have not begun."""
    rows = [
        (_storable(report.reason and report.reason[:MAX_REASON]), job.id)
        for report in reports
        if (job := state.jobs.get(report.job_id))
        and job.status is JobStatus.PENDING
        and job.attempt_id == report.attempt_id
        and job.holder == state.node_id
    ]
    state.tx.run_each(_WAITS, rows)


def record_released(state: ExchangeState, job_ids: Sequence[int]) -> None:
    """Store that the runner releases jobs that it has not started."""
    released = [
        job.id
        for job_id in job_ids
        if (job := state.jobs.get(job_id)) and job.status is JobStatus.PENDING and job.held_by(state.node_id)
    ]
    transitions.released(state.tx, released)
    state.ready += released
