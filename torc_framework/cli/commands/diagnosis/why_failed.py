"""``torc why-failed``: explains the failure of a job, or of the jobs of a workflow."""

import sys
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Final

import typer

from torc_framework.cli.shared.app import single_command
from torc_framework.cli.shared.arguments import pick_workflow
from torc_framework.cli.shared.output import Column, print_json, print_table, seconds_text
from torc_framework.cli.shared.session import Session, session_of
from torc_framework.errors import ApiError, UserError
from torc_framework.models.exits import ExitClass
from torc_framework.models.records import JobRecord, WorkflowRecord
from torc_framework.models.statuses import UNSUCCESSFUL
from torc_framework.next_step import run_again_text
from torc_framework.text.terminal import print_line

if TYPE_CHECKING:
    from torc_framework.forensics import FailureGroup, JobReport, WorkflowReport

MAX_GROUPS: Final = 20
"""Most groups of failures that the text output shows; JSON has all."""
MAX_RANGES: Final = 5
"""Most ranges of ids that the text output shows of one group."""

ATTEMPT_COLUMNS: Final[list[Column]] = [
    ("Run", "run_id"),
    ("Attempt", "attempt_id"),
    ("Ended", lambda row: row["exit_class"] or row["status"]),
    ("Code", "return_code"),
    ("Memory", lambda row: _change(row, "memory")),
    ("Run Time", lambda row: _change(row, "runtime")),
    ("CPUs", lambda row: _change(row, "num_cpus")),
    ("Took", lambda row: seconds_text(row["exec_time_minutes"] * 60)),
    ("CPU-hours", lambda row: _hours(row["cost_cpu_hours"])),
    ("Changed By", "decided_by"),
    ("Paid", lambda row: {True: "yes", False: "no", None: ""}[row["paid"]]),
]


def why_failed(
    ctx: typer.Context,
    id_: Annotated[int | None, typer.Argument(metavar="[JOB_ID|WORKFLOW_ID]", help="A job or a workflow.")] = None,
    *,
    job: Annotated[bool, typer.Option("--job", "-j", help="The id is a job's.")] = False,
    workflow: Annotated[bool, typer.Option("--workflow", "-w", help="The id is a workflow's.")] = False,
    output_dir: Annotated[
        Path | None,
        typer.Option("--output-dir", "-o", help="Where the logs are (default: where the runner wrote them)."),
    ] = None,
) -> None:
    """Explain why a job failed, or why the jobs of a workflow failed.

    For a job: the class of its ending with its confidence, the evidence (the scheduler's state, memory and
    run time against the requirements, the decisive lines of its logs), its attempts with their cost, and
    the next command.

    For a workflow: failures with the same cause are one group, the largest group first, with the jobs that
    were canceled because of them and the CPU-hours that were lost.

    An id that both a job and a workflow have is taken for the workflow, unless no job of the workflow
    failed and that job did. --job and --workflow choose one of them.

    Examples:
        torc why-failed 12
        torc why-failed --job 345
        torc why-failed 12 -f json
    """
    if job and workflow:
        raise UserError("--job and --workflow exclude each other")
    if output_dir is not None and not output_dir.is_dir():
        raise UserError(f"output directory {output_dir} does not exist; leave out --output-dir, or name another")
    session = session_of(ctx)
    if id_ is None:
        id_, workflow = pick_workflow(session, None), True
    is_job = job or (not workflow and _is_job(session, id_))
    report = _explain(session, id_, output_dir, is_job=is_job)
    if session.wants_json:
        print_json(report.as_dict())


def _explain(session: Session, id_: int, output_dir: Path | None, *, is_job: bool) -> Any:
    """Return the report, after printing it as text unless JSON is wanted."""
    from torc_framework.forensics import explain_job, explain_workflow

    if is_job:
        report = explain_job(session.client, session.plugins(skip_untrusted=True), id_, output_dir=output_dir)
        if not session.wants_json:
            _print_job(report)
        return report
    of_workflow = explain_workflow(session.client, session.plugins(skip_untrusted=True), id_, output_dir=output_dir)
    if not session.wants_json:
        _print_workflow(of_workflow)
    return of_workflow


def _is_job(session: Session, id_: int) -> bool:
    """Return whether an id is taken for a job's.

    Raises:
        ApiError: neither a job nor a workflow has it.
    """
    client = session.client
    workflow, job = _get(session, WorkflowRecord, id_), _get(session, JobRecord, id_)
    if job is None:
        client.get(WorkflowRecord, id_)  # raises the error for an unknown workflow
        return False
    if workflow is None:
        return True
    troubled = {status.label for status in UNSUCCESSFUL}
    counts = client.job_counts(id_).counts
    if job.status in troubled and not any(counts.get(label) for label in troubled):
        return True
    if job.workflow_id != id_ or job.status in troubled:
        print(f"Note: taken for workflow {id_}; for job {id_} ({job.name}) say --job", file=sys.stderr)
    return False


def _get(session: Session, kind: Any, id_: int) -> Any:
    try:
        return session.client.get(kind, id_)
    except ApiError as error:
        if error.status in (403, 404):
            return None
        raise


# --- one job --------------------------------------------------------------------------------------


def _print_job(report: "JobReport") -> None:
    job, verdict = report.job, report.verdict
    print_line(f"Job {job.id} ({job.name}) of workflow {job.workflow_id}: {job.status}")
    if verdict is None:
        print("No attempt of it has failed.")
        return
    if report.failed is not None and not report.is_failed:
        failed = report.failed
        ended = "was interrupted" if verdict.exit_class is ExitClass.INTERRUPTED else "failed"
        print(f"Its attempt {failed.attempt_id} in run {failed.run_id} {ended}.")
    print()
    print_line(f"Verdict: {verdict.exit_class.value}: {verdict.reason} (confidence {verdict.confidence:.0%})")
    if report.decisive_line is not None:
        print_line(f"  {report.decisive_line.line.text}")
    if report.evidence or report.log_lines:
        print("\nEvidence:")
    for item in report.evidence:
        print_line(f"  {item['text']}")
    _print_lines(report)
    for path, reason in report.unreadable:
        print_line(f"  {path}: {reason}")
    for root in report.causes[:MAX_RANGES]:
        print_line(f"  job {root.id} ({root.name}) {root.status}: torc why-failed --job {root.id}")
    if report.attempts:
        print(f"\nAttempts ({_hours(report.lost_cpu_hours)} CPU-hours lost):")
        print_table(ATTEMPT_COLUMNS, [each.as_dict() for each in report.attempts])
    if report.verdicts:
        print("\nVerdicts given:")
    for given in report.verdicts:
        confidence = "" if given.confidence is None else f", confidence {given.confidence:.0%}"
        author = f"{given.judge} ({given.judge_kind}{confidence})"
        attempt = f"attempt {given.attempt_id} of run {given.run_id}"
        print_line(f"  {attempt}: {given.action} by {author}: {given.reason.strip()}")
    if report.next is not None:
        print(f"\nNext: {report.next.command}\n  {report.next.why}")


def _print_lines(report: "JobReport") -> None:
    path = None
    for each in report.log_lines:
        if each.path != path:
            path = each.path
            print(f"  {path}:")
        print_line(f"    line {each.line.number}: {each.line.text}")
    for hint in dict.fromkeys(each.line.hint for each in report.log_lines if each.line.hint):
        print(f"  Hint: {hint}")


def _change(row: dict[str, Any], name: str) -> str | None:
    new, before = row["request"][name], (row["request_before"] or {}).get(name)
    return f"{before} → {new}" if before not in (None, new) else new


def _hours(hours: float) -> str:
    return f"{hours:.2f}" if hours >= 0.1 or hours == 0 else f"{hours:.2g}"


# --- a workflow -----------------------------------------------------------------------------------


def _print_workflow(report: "WorkflowReport") -> None:
    workflow = report.workflow
    total = sum(report.counts.values())
    print_line(f"Workflow {workflow.id} ({workflow.name}): {_sentence(report, total)}")
    if report.lost_cpu_hours:
        line = f"{_hours(report.lost_cpu_hours)} CPU-hours were lost"
        if report.retried_cpu_hours:
            line += f", {_hours(report.retried_cpu_hours)} of them in jobs that are not failed now"
        print(line)
    if report.canceled_otherwise:
        print(f"{_jobs(report.canceled_otherwise)} canceled by a person, not because of a failure")
    if report.failed_jobs and not report.logs_read:
        print("None of their logs can be read from here; name their folder with --output-dir")
    if report.next is not None:
        print(f"{_jobs(report.interrupted_jobs)} interrupted, which is no failure: their runner had to end")
    for number, group in enumerate(report.groups[:MAX_GROUPS], 1):
        _print_group(number, group)
    if len(report.groups) > MAX_GROUPS:
        print(f"\n{len(report.groups) - MAX_GROUPS} smaller groups are not shown; -f json has all")
    if report.next is not None:
        print(f"\nNext: {report.next.command}\n  {report.next.why}; {run_again_text(report.interrupted_jobs)}")


def _sentence(report: "WorkflowReport", total: int) -> str:
    if not report.failed_jobs:
        return f"none of {_jobs(total)} failed"
    causes = len(report.groups)
    text = f"{report.failed_jobs} of {_jobs(total)} failed for {causes} reason{'s' if causes > 1 else ''}"
    if report.canceled_jobs:
        text += f", {report.canceled_jobs} more were canceled because of them"
    return text


def _print_group(number: int, group: "FailureGroup") -> None:
    print()
    print_line(f"{number}. {_jobs(len(group.job_ids))}: {group.signature.exit_class.value}: {group.reason}")
    job, example = group.example_job, group.example
    if example is not None:
        print_line(f"   {example.line.text}")
        print(f"   {example.path}, line {example.line.number}")
        if example.line.hint:
            print(f"   Hint: {example.line.hint}")
    print(f"   {'Job' if len(group.job_ids) == 1 else 'Jobs'} {_ranges(group.job_ids)}" + _requirements_text(group))
    if group.canceled_ids:
        print(f"   Canceled because of them: {_jobs(len(group.canceled_ids))} ({_ranges(group.canceled_ids)})")
    if group.lost_cpu_hours:
        print(f"   Cost: {_hours(group.lost_cpu_hours)} CPU-hours")
    if job is not None:
        print_line(f"   One of them: torc why-failed --job {job.id}  ({job.name})")
    print(f"   Next: {group.next.command}  ({group.next.why})")


def _requirements_text(group: "FailureGroup") -> str:
    if group.signature.request is None:
        return ""
    cpus, memory, runtime, _, _ = group.signature.request
    return f", each asking for {cpus} CPU{'s' if cpus > 1 else ''}, {memory}, {runtime}"


def _jobs(count: int) -> str:
    return "1 job" if count == 1 else f"{count} jobs"


def _ranges(ids: list[int]) -> str:
    """Return ids as ranges such as ``1-5, 9``, at most `MAX_RANGES` of them."""
    breaks = [0, *(at for at, (one, two) in enumerate(pairwise(ids), 1) if two != one + 1), len(ids)]
    ranges = [(ids[first], ids[last - 1]) for first, last in pairwise(breaks)]
    shown = ", ".join(str(first) if first == last else f"{first}-{last}" for first, last in ranges[:MAX_RANGES])
    return shown + (", ..." if len(ranges) > MAX_RANGES else "")


app = single_command(why_failed)
