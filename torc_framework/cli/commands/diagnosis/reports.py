"""``torc reports``: use of resources, results with the paths of logs, summary."""

import sys
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Final

import typer

from torc_framework.cli.shared.app import CommandGroup
from torc_framework.cli.shared.arguments import WorkflowId, pick_workflow
from torc_framework.cli.shared.output import (
    Column,
    memory_text,
    print_json,
    print_json_list,
    print_table,
    requested_memory_text,
    requested_runtime_text,
)
from torc_framework.cli.shared.session import session_of
from torc_framework.errors import UserError
from torc_framework.models.resources import parse_duration, parse_memory
from torc_framework.text.quantities import (
    count_text,
    duration_text,
    exact_duration_text,
    exact_size_text,
    percent_text,
    size_text,
)
from torc_framework.text.status_text import status_glyph, symbol
from torc_framework.text.terminal import print_line

if TYPE_CHECKING:
    from torc_framework.reports.corrections import Correction
    from torc_framework.reports.results import ResultsReport
    from torc_framework.reports.summary import WorkflowSummary
    from torc_framework.reports.utilization import Utilization

app = CommandGroup("Reports on a workflow: use of resources, results with logs, summary.")


def _likely(row: dict[str, Any]) -> str:
    words = (("out of memory", row["likely_oom"]), ("out of time", row["likely_timeout"]))
    return ", ".join(word for word, holds in words if holds)


_AMOUNT_TEXTS: Final[Mapping[str, tuple[Callable[[float], str], Callable[[float], str]]]] = {
    "Memory": (exact_size_text, size_text),
    "Runtime": (exact_duration_text, duration_text),
    "CPU": (percent_text, percent_text),
}
"""Text of a requirement and of a use, by resource; 100% of CPU is one core."""
USE_COLUMNS: Final[list[Column]] = [
    ("Job ID", "job_id"),
    ("Job Name", "job_name"),
    ("Resource", lambda use: use.resource.value),
    ("Specified", lambda use: _AMOUNT_TEXTS[use.resource][0](use.asked)),
    ("Peak Used", lambda use: _AMOUNT_TEXTS[use.resource][1](use.used)),
    ("Over-Utilization", lambda use: f"{use.over_percent:+.1f}%"),
]
FAILED_COLUMNS: Final[list[Column]] = [
    ("Job ID", "job_id"),
    ("Job Name", "job_name"),
    ("Attempt", "attempt_id"),
    ("Return Code", "return_code"),
    ("Peak Mem", lambda row: memory_text(row["peak_memory_bytes"])),
    ("Memory", lambda row: exact_size_text(parse_memory(row["configured_memory"]))),
    ("Runtime", lambda row: exact_duration_text(parse_duration(row["configured_runtime"]))),
    ("Likely", _likely),
]
CORRECTION_COLUMNS: Final[list[Column]] = [
    ("Requirements", "name"),
    ("Field", "field"),
    ("Now", lambda row: _amount_text(row["field"], row["from"])),
    ("New", lambda row: _amount_text(row["field"], row["to"])),
    ("Jobs Over", "jobs"),
]


RunId = Annotated[int | None, typer.Option("--run-id", "-r", help="This run (default: the latest).")]
All = Annotated[bool, typer.Option("--all", "-a", help="Also show uses within the requirements.")]
IncludeFailed = Annotated[bool, typer.Option("--include-failed", help="Failed and terminated attempts too.")]
MinOver = Annotated[
    float,
    typer.Option(
        "--min-over-utilization",
        metavar="PERCENT",
        min=0,
        help="Ignore uses above the requirements by less than this.",
    ),
]
Correct = Annotated[bool, typer.Option("--correct", help="Raise the requirements of jobs that exceeded them.")]
DryRun = Annotated[bool, typer.Option("--dry-run", help="With --correct: only show the new values.")]
MemoryFactor = Annotated[
    float, typer.Option("--memory-multiplier", min=1, help="New memory, as a multiple of the peak.")
]
RuntimeFactor = Annotated[
    float, typer.Option("--runtime-multiplier", min=1, help="New run time, as a multiple of the longest.")
]


@app.command("check-resource-utilization")
def check_resource_utilization(
    ctx: typer.Context,
    workflow_id: WorkflowId = None,
    *,
    run_id: RunId = None,
    all_: All = False,
    include_failed: IncludeFailed = False,
    min_over_utilization: MinOver = 0.0,
    correct: Correct = False,
    dry_run: DryRun = False,
    memory_multiplier: MemoryFactor = 1.2,
    runtime_multiplier: RuntimeFactor = 1.3,
) -> None:
    """Compare use of resources with requirements.

    Jobs without resource requirements of their own are left out. --correct raises memory and run time to
    the peak times a multiplier, rounded up, and CPUs to whole cores. Requirements that several jobs share
    change for all of them.

    Examples:
        torc reports check-resource-utilization 12
        torc reports check-resource-utilization 12 --all --include-failed
        torc reports check-resource-utilization 12 --correct --dry-run
    """
    from torc_framework.reports.corrections import apply, corrections
    from torc_framework.reports.utilization import analyze

    if dry_run and not correct:
        raise UserError("--dry-run shows what --correct would do; give both")
    session = session_of(ctx)
    report = analyze(
        session.client,
        pick_workflow(session, workflow_id),
        run_id=run_id,
        include_failed=include_failed,
        min_over_percent=min_over_utilization,
        only_violations=not all_,
    )
    wanted = corrections(report, memory_multiplier=memory_multiplier, runtime_multiplier=runtime_multiplier)
    if correct and not dry_run:
        apply(session.client, wanted)
    if not session.wants_json:
        _print_utilization(report, wanted if correct else None, all_=all_, dry_run=dry_run)
        return
    document = report.as_dict()
    if all_:
        document["figures"] = [use.as_dict() for use in report.figures]
    if include_failed:
        document["failed_jobs_count"] = len(report.failed)
        document["failed_jobs"] = [failed.as_dict() for failed in report.failed]
    if correct:
        document["dry_run"] = dry_run
        document["corrections"] = [correction.as_dict() for correction in wanted]
    print_json(document)


def _print_utilization(report: "Utilization", wanted: "list[Correction] | None", *, all_: bool, dry_run: bool) -> None:
    """Print the report, and the corrections unless these are None."""
    _print_uses(report, all_=all_)
    if report.failed:
        print(f"{len(report.failed)} failed attempts:")
        print_table(FAILED_COLUMNS, [failed.as_dict() for failed in report.failed])
    if wanted is not None:
        _print_corrections(wanted, dry_run=dry_run)


def _print_uses(report: "Utilization", *, all_: bool) -> None:
    violations = report.violations
    if violations:
        word = "violation" if len(violations) == 1 else "violations"
        print(f"{symbol('⚠', '!')} Found {len(violations)} resource over-utilization {word}:")
    elif not report.total_results:
        print(f"Workflow {report.workflow_id} has no results to check.")
    else:
        print(f"{status_glyph('completed')} None of {report.total_results} results exceeded what was asked for.")
    shown = report.figures if all_ else violations
    if shown:
        print_table(USE_COLUMNS, shown)


def _print_corrections(wanted: "list[Correction]", *, dry_run: bool) -> None:
    if not wanted:
        print("Nothing to correct.")
        return
    rows = [
        {"name": each.requirements.name, "field": name, "jobs": len(each.job_ids), **change}
        for each in wanted
        for name, change in each.as_dict()["changes"].items()
    ]
    print("New resource requirements, not stored (--dry-run):" if dry_run else "New resource requirements:")
    print_table(CORRECTION_COLUMNS, rows)


def _amount_text(field: str, value: Any) -> str:
    texts = {"memory": requested_memory_text, "runtime": requested_runtime_text}
    return texts[field]({field: value}) if field in texts else str(value)


@app.command("results")
def results(
    ctx: typer.Context,
    workflow_id: WorkflowId = None,
    *,
    output_dir: Annotated[
        Path, typer.Option("--output-dir", "-o", help="Folder that the logs are in, as given to 'torc run'.")
    ] = Path("output"),
    all_runs: Annotated[bool, typer.Option("--all-runs", help="Also results of earlier runs and attempts.")] = False,
    job_id: Annotated[int | None, typer.Option("--job-id", "-j", help="Only this job's.")] = None,
) -> None:
    """Print all results as JSON: with the paths of their logs.

    Log files that do not exist are named on standard error.

    Examples:
        torc reports results 12
        torc reports results 12 --all-runs --job-id 345
    """
    from torc_framework.reports.results import results_report

    session = session_of(ctx)
    chosen = pick_workflow(session, workflow_id)
    report = results_report(session.client, chosen, output_dir, all_runs=all_runs, job_id=job_id)
    if not output_dir.is_dir():
        raise UserError(f"output directory {output_dir} does not exist; name that of the run with --output-dir")
    print_json_list("results", _entries(report), before=report.head, after=lambda: {"total_results": report.total})


def _entries(report: "ResultsReport") -> Iterator[dict[str, Any]]:
    """Yield the results of a report, having printed their warnings."""
    for entry, warnings in report.results:
        if warnings:
            sys.stderr.write("".join(f"Warning: {warning}\n" for warning in warnings))
        yield entry


@app.command("summary")
def summary(ctx: typer.Context, workflow_id: WorkflowId = None) -> None:
    """Show jobs by status, and run times; also while the workflow runs.

    Examples:
        torc reports summary 12
        torc reports summary 12 -f json
    """
    from torc_framework.next_step import next_step
    from torc_framework.reports.summary import summarize

    session = session_of(ctx)
    found = summarize(session.client, pick_workflow(session, workflow_id))
    step = next_step(session.client, found.workflow.id or 0, session.executors)
    if session.wants_json:
        print_json({**found.as_dict(), "next_command": step and step.command})
        return
    _print_summary(found)
    if step is not None:
        print(f"\n{step.lines()}", end="")


def _print_summary(found: "WorkflowSummary") -> None:
    values = found.as_dict()
    print("Workflow Summary")
    print("================")
    print(f"Workflow ID: {values['workflow_id']}")
    print_line(f"Name: {values['workflow_name']}")
    print_line(f"User: {values['workflow_user']}")
    print(f"\nJob Status (total: {values['total_jobs']}):")
    counts = {label: count for label, count in values["jobs_by_status"].items() if count}
    for label, count in counts.items():
        print(f"  {label.replace('_', ' ').capitalize()}: {count_text(count)} {status_glyph(label)}")
    print(f"\nTotal Execution Time: {duration_text(found.exec_time_s)}")
    print(f"Walltime: {duration_text(found.walltime_s)}")
    if not found.is_complete:
        print("\nThe workflow is not complete.")
    elif set(counts) == {"completed"}:
        print(f"\n{status_glyph('completed')} All jobs completed successfully!")
