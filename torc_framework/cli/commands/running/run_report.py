"""The report that ``torc run`` prints at its end."""

import sys
from typing import Any, Final

from torc_framework.cli.commands.running.progress_line import summary
from torc_framework.cli.shared.output import Column, peak_memory_text, print_json, print_table, seconds_text
from torc_framework.cli.shared.session import Session
from torc_framework.client import TorcClient
from torc_framework.errors import ExitStatus, ServerUnreachableError
from torc_framework.models.records import JobRecord, ResultRecord
from torc_framework.models.statuses import UNSUCCESSFUL, JobStatus
from torc_framework.next_step import next_step_text
from torc_framework.runner import RunOutcome
from torc_framework.runner.connection.retries import retry_until_answered

MAX_ROWS: Final = 20
"""Rows of the result table of a run; ``torc results list`` shows all."""
_ORDER: Final = (*UNSUCCESSFUL, *(status for status in JobStatus if status not in UNSUCCESSFUL))
"""Statuses in the order of the table: jobs that did not succeed come first."""

COLUMNS: Final[list[Column]] = [
    ("ID", lambda row: row[0].id),
    ("Job", lambda row: row[0].name),
    ("Status", lambda row: row[0].status),
    ("Return Code", lambda row: row[1] and row[1].return_code),
    ("Time", lambda row: row[1] and seconds_text(row[1].exec_time_minutes * 60)),
    ("Peak Mem", lambda row: row[1] and peak_memory_text(row[1])),
    ("Reason", lambda row: row[1] and row[1].reason if row[0].status != "completed" else None),
]


def exit_status(outcome: RunOutcome) -> ExitStatus:
    """Return the exit code of the program after a run."""
    if outcome.interrupted:
        return ExitStatus.INTERRUPTED
    return ExitStatus.OK if _is_successful(outcome) and not outcome.cut_logs else ExitStatus.FAILED


def _is_successful(outcome: RunOutcome) -> bool:
    """Return whether every job completed."""
    troubled = any(outcome.counts.get(status.label) for status in UNSUCCESSFUL)
    return outcome.is_complete and not troubled and not outcome.is_canceled


def _warnings(outcome: RunOutcome) -> list[str]:
    """Return troubles of the run that do not change the jobs' outcomes."""
    if not outcome.cut_logs:
        return outcome.troubles
    cut = (
        f"{outcome.cut_logs} attempt(s) ended while the disk of their logs was full: these may lack what was written "
        "last; make room ('torc reports results' marks them with log_disk_full)"
    )
    return [*outcome.troubles, cut]


def verdict(outcome: RunOutcome) -> str:
    """Return the outcome of the run in a word or two."""
    if outcome.interrupted:
        return "interrupted"
    if outcome.is_canceled:
        return "canceled"
    if outcome.out_of_time:
        return "out of time"
    if not outcome.is_complete:
        return "incomplete"
    return "completed" if _is_successful(outcome) else "failed"


def report(session: Session, workflow_id: int, outcome: RunOutcome) -> None:
    """Print the result table and the summary, or one JSON document."""
    try:
        rows = retry_until_answered(lambda: _rows(session.client, workflow_id, outcome.counts))
    except ServerUnreachableError as error:
        rows = []  # the outcome of the run is known without them
        outcome.troubles.append(f"no table of jobs: {error}")
    if session.wants_json:
        print_json(_document(workflow_id, outcome, rows))
        return
    if rows:
        print_table(COLUMNS, rows)
    hidden = sum(outcome.counts.values()) - len(rows)
    if hidden > 0:
        print(f"... and {hidden} more: torc results list {workflow_id}")
    text = summary(outcome.counts, interrupted=outcome.interrupted_jobs)
    print(f"Workflow {workflow_id} {verdict(outcome)}: {text}, in {seconds_text(outcome.duration_s)}")
    for trouble in _warnings(outcome):
        print(f"Warning: {trouble}", file=sys.stderr)
    if outcome.unfit:
        print(f"What is left cannot run here: {outcome.unfit}")
    if outcome.is_canceled:
        print(f"It was canceled; 'torc workflows initialize {workflow_id}' makes it ready to run from the start")
    elif not outcome.is_complete:
        print(next_step_text(session.client, workflow_id, session.executors, outcome.interrupted_jobs))


def report_worker(session: Session, workflow_id: int, outcome: RunOutcome) -> None:
    """Print what one of several runners did; the others may still work on the workflow."""
    if session.wants_json:
        print_json(_document(workflow_id, outcome, []))
        return
    why = (
        verdict(outcome) if outcome.interrupted or outcome.out_of_time or outcome.is_canceled else "nothing left to do"
    )
    print(
        f"Runner of workflow {workflow_id}: {outcome.attempts} attempt(s), {outcome.failed_attempts} failed, "
        f"in {seconds_text(outcome.duration_s)}; {why}"
    )
    for trouble in _warnings(outcome):
        print(f"Warning: {trouble}", file=sys.stderr)
    if outcome.unfit:
        print(f"What is left cannot run here: {outcome.unfit}")


def _rows(client: TorcClient, workflow_id: int, counts: dict[str, int]) -> list[tuple[JobRecord, ResultRecord | None]]:
    """Return jobs with their latest result; those that did not succeed come first."""
    jobs: list[JobRecord] = []
    for status in _ORDER:
        if counts.get(status.label) and len(jobs) < MAX_ROWS:
            jobs += client.find(JobRecord, workflow_id=workflow_id, status=status.label, limit=MAX_ROWS - len(jobs))
    if sum(counts.values()) <= MAX_ROWS:
        results = client.find(ResultRecord, workflow_id=workflow_id)
    else:
        results = [
            result for job in jobs for result in client.find(ResultRecord, workflow_id=workflow_id, job_id=job.id)
        ]
    by_job = {result.job_id: result for result in results}
    return [(job, by_job.get(job.id or 0)) for job in jobs]


def _document(
    workflow_id: int, outcome: RunOutcome, rows: list[tuple[JobRecord, ResultRecord | None]]
) -> dict[str, Any]:
    """Return the run as JSON values; ``jobs`` holds the rows of the table."""
    return {
        "workflow_id": workflow_id,
        "status": verdict(outcome).replace(" ", "_"),
        "exit_status": int(exit_status(outcome)),
        "is_complete": outcome.is_complete,
        "resumed_jobs": outcome.resumed_jobs,
        "interrupted_jobs": outcome.interrupted_jobs,
        "is_canceled": outcome.is_canceled,
        "interrupted": outcome.interrupted,
        "job_count": sum(outcome.counts.values()),
        "counts": outcome.counts,
        "attempts": outcome.attempts,
        "duration_s": outcome.duration_s,
        "unfit": outcome.unfit,
        "troubles": _warnings(outcome),
        "jobs_omitted": sum(outcome.counts.values()) - len(rows),
        "jobs": [
            {
                "id": job.id,
                "name": job.name,
                "status": job.status,
                "attempt_id": job.attempt_id,
                "return_code": result.return_code if result else None,
                "exec_time_minutes": result.exec_time_minutes if result else None,
                "peak_memory_bytes": result.peak_memory_bytes if result else None,
                "exit_class": result.exit_class if result else None,
                "reason": result.reason if result else None,
            }
            for job, result in rows
        ],
    }
