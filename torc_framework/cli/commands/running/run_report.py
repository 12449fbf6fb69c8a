"""The report that ``torc run`` prints at its end."""

import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Final

from attrs import frozen

from torc_framework.cli.shared.output import print_json
from torc_framework.cli.shared.session import Session
from torc_framework.client import TorcClient
from torc_framework.errors import ApiError, ExitStatus, ServerUnreachableError, TorcError
from torc_framework.models.records import JobRecord, ResultRecord
from torc_framework.models.statuses import UNSUCCESSFUL, JobStatus
from torc_framework.next_step import NextStep, executor_option, next_step
from torc_framework.reports.status import run_duration_s
from torc_framework.runner import RunOutcome
from torc_framework.runner.connection.retries import is_away, retry_until_answered
from torc_framework.text.headline import headline
from torc_framework.text.quantities import count_text, duration_text
from torc_framework.text.terminal import print_line

if TYPE_CHECKING:  # most runs have no failures, and then need no module that examines them
    from torc_framework.forensics.run_failures import FailureExample, FailureSummary

MAX_ROWS: Final = 20
"""Jobs in the JSON document of a run; ``torc results list`` shows all."""
_ORDER: Final = (*UNSUCCESSFUL, *(status for status in JobStatus if status not in UNSUCCESSFUL))
"""Statuses in the order of these jobs: those that did not succeed come first."""


@frozen
class ReportDetails:
    """What a report shows besides the outcome of the run.

    Attributes:
        rows: Some jobs with their latest result; those that did not succeed come first.
        failures: The failures in short; None if there are none.
        next: The next command; None if nothing is left to do.
        worked_s: Seconds from the first start to the last end of an attempt, as `torc status` shows them; None while
            jobs are left.
    """

    rows: Sequence[tuple[JobRecord, ResultRecord | None]] = ()
    failures: "FailureSummary | None" = None
    next: NextStep | None = None
    worked_s: float | None = None


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
        f"{count_text(outcome.cut_logs, 'attempt')} ended while the disk of the logs was full: these may lack what was "
        "written last; make room ('torc reports results' marks them with log_disk_full)"
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
    if outcome.is_drained and not outcome.is_complete:
        return "drained"
    if not outcome.is_complete:
        return "incomplete"
    return "completed" if _is_successful(outcome) else "failed"


def report(session: Session, workflow_id: int, outcome: RunOutcome, seen: "Sequence[FailureExample]" = ()) -> None:
    """Print the failures, the headline and the next command; or one JSON document.

    Args:
        session: The session of the command.
        workflow_id: The workflow.
        outcome: How the run ended.
        seen: Failures that were printed on this terminal while the workflow ran.
    """
    try:
        details = retry_until_answered(lambda: _details(session, workflow_id, outcome))
    except TorcError as error:
        if not is_away(error):
            raise
        details = ReportDetails()  # the outcome of the run is known without the server
        outcome.troubles.append(f"no report on single jobs: {error}")
    if session.wants_json:
        print_json(_document(workflow_id, outcome, details))
        return
    lines = _failure_lines(details, seen)
    if lines or seen:
        print("\n".join([*lines, ""]))
    print(_headline(workflow_id, outcome, details))
    for trouble in _warnings(outcome):
        print(f"Warning: {trouble}", file=sys.stderr)
    if outcome.unfit:
        print_line(f"What is left cannot run here: {outcome.unfit}")
    if outcome.interrupted_jobs:
        count = outcome.interrupted_jobs
        print("The interrupted job runs again." if count == 1 else f"The {count:,} interrupted jobs run again.")
    if details.next is not None:
        print(f"Next: {details.next.command}")


def _failure_lines(details: ReportDetails, seen: "Sequence[FailureExample]") -> list[str]:
    if details.failures is None:
        return []
    from torc_framework.cli.commands.running.failure_lines import summary_lines

    return [*summary_lines(details.failures, seen)]


def _details(session: Session, workflow_id: int, outcome: RunOutcome) -> ReportDetails:
    client = session.client
    rows = _rows(client, workflow_id, outcome.counts) if session.wants_json else ()
    worked_s = _worked_s(client, workflow_id) if outcome.is_complete else None
    if _is_successful(outcome):
        return ReportDetails(rows, worked_s=worked_s)
    from torc_framework.forensics.run_failures import summarize_failures

    # The server takes a runner that left jobs for a living one as long as this process lives.
    sites, continues = [each.site for each in outcome.sites if each.site], None
    if outcome.left_jobs:
        chosen = executor_option(client, workflow_id, session.executors, sites)
        continues = NextStep(f"torc run {workflow_id}{chosen}", "continues it")
    return ReportDetails(
        rows,
        summarize_failures(client, workflow_id, outcome.counts, interrupted=outcome.interrupted_jobs),
        continues or next_step(client, workflow_id, session.executors, sites=sites),
        worked_s,
    )


def _worked_s(client: TorcClient, workflow_id: int) -> float | None:
    """Return how long the jobs took, as `torc status` says it; None if the server is gone, which is no trouble now."""
    try:
        return run_duration_s(client.progress(workflow_id))
    except (ApiError, ServerUnreachableError):
        return None


def _headline(workflow_id: int, outcome: RunOutcome, details: ReportDetails) -> str:
    state = verdict(outcome).replace(" ", "_")
    if state == "incomplete" and outcome.counts.get(JobStatus.PENDING_FAILED.label):
        state = JobStatus.PENDING_FAILED.label
    return headline(
        outcome.workflow_name,
        workflow_id,
        state,
        outcome.counts,
        interrupted=outcome.interrupted_jobs,
        duration_s=outcome.duration_s if details.worked_s is None else details.worked_s,
    )


def report_worker(session: Session, workflow_id: int, outcome: RunOutcome) -> None:
    """Print what one of several runners did; the others may still work on the workflow."""
    if session.wants_json:
        print_json(_document(workflow_id, outcome, ReportDetails()))
        return
    has_left = outcome.interrupted or outcome.out_of_time or outcome.is_canceled or outcome.is_drained
    why = verdict(outcome) if has_left else "nothing left to do"
    failed = f", {outcome.failed_attempts:,} failed" if outcome.failed_attempts else ""
    print(
        f"Runner of workflow {workflow_id}: {count_text(outcome.attempts, 'attempt')}{failed}, "
        f"in {duration_text(outcome.duration_s)}; {why}"
    )
    for trouble in _warnings(outcome):
        print(f"Warning: {trouble}", file=sys.stderr)
    if outcome.unfit:
        print_line(f"What is left cannot run here: {outcome.unfit}")


def _rows(client: TorcClient, workflow_id: int, counts: dict[str, int]) -> list[tuple[JobRecord, ResultRecord | None]]:
    """Return jobs with their latest result; those that did not succeed come first."""
    jobs: list[JobRecord] = []
    for status in _ORDER:
        if counts.get(status.label) and len(jobs) < MAX_ROWS:
            jobs += client.find(JobRecord, workflow_id=workflow_id, status=status.label, limit=MAX_ROWS - len(jobs))
    ids = [job.id for job in jobs]
    results = client.find(ResultRecord, workflow_id=workflow_id, job_ids=ids, limit=MAX_ROWS) if ids else []
    by_job = {result.job_id: result for result in results}
    return [(job, by_job.get(job.id or 0)) for job in jobs]


def _document(workflow_id: int, outcome: RunOutcome, details: ReportDetails) -> dict[str, Any]:
    """Return the run as JSON values; ``jobs`` holds some of the jobs, ``failures`` the first failure of each cause."""
    rows = details.rows
    return {
        "workflow_id": workflow_id,
        "status": verdict(outcome).replace(" ", "_"),
        "exit_status": int(exit_status(outcome)),
        "is_complete": outcome.is_complete,
        "resumed_jobs": outcome.resumed_jobs,
        "interrupted_jobs": outcome.interrupted_jobs,
        "is_canceled": outcome.is_canceled,
        "is_drained": outcome.is_drained,
        "interrupted": outcome.interrupted,
        "job_count": sum(outcome.counts.values()),
        "counts": outcome.counts,
        "attempts": outcome.attempts,
        "duration_s": outcome.duration_s,
        "sites": [
            {
                "hostname": site.hostname,
                "site": site.site or None,
                "attempts": site.attempts,
                "failed": site.failed_attempts,
                "trouble": site.trouble,
            }
            for site in outcome.sites
        ],
        "unfit": outcome.unfit,
        "troubles": _warnings(outcome),
        "next_command": details.next and details.next.command,
        "failures": [cause.example.as_dict() for cause in details.failures.causes] if details.failures else [],
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
