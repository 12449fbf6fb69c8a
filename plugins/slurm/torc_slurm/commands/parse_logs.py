"""``torc slurm parse-logs``: error lines in the logs of batch jobs and of the kernel, and the jobs that ran there."""

from pathlib import Path, PurePath
from typing import Annotated, Any, Final

import typer

from torc_framework.api import JobRecord, ScheduledComputeNodeRecord, Severity
from torc_framework.api.commands import (
    Column,
    CommandGroup,
    Session,
    WorkflowId,
    analyze_logs,
    jobs_of_allocation,
    pick_workflow,
    print_json,
    print_table,
    session_of,
)

LOG_KINDS: Final = frozenset({"slurm", "kernel"})
"""Kinds of logs that are searched: the output of batch jobs, and the kernel's messages."""
ERROR_SEVERITIES: Final = frozenset({Severity.ERROR, Severity.CRITICAL})
SHOWN_JOBS: Final = 5
"""Most jobs that a line of the table names."""


def register(app: CommandGroup) -> None:
    """Add the command to a group."""
    app.command("parse-logs")(parse_logs)


def parse_logs(
    ctx: typer.Context,
    workflow_id: WorkflowId = None,
    *,
    output_dir: Annotated[Path | None, typer.Option("--output-dir", "-o", help="Folder that the logs are in.")] = None,
    errors_only: Annotated[bool, typer.Option("--errors-only", help="Leave out warnings.")] = False,
) -> None:
    """Search logs of batch jobs for known errors; name the jobs that ran there.

    'torc logs analyze' searches the output of the jobs themselves.

    Examples:
        torc slurm parse-logs 12 --errors-only
    """
    session = session_of(ctx)
    chosen = pick_workflow(session, workflow_id)
    patterns = session.plugins(skip_untrusted=True).log_patterns()
    folder = output_dir or session.config.client.run.output_dir
    found = analyze_logs(folder, patterns, workflow_id=chosen, kinds=LOG_KINDS)
    hits = [each for each in found.findings if not errors_only or each.hit.pattern.severity in ERROR_SEVERITIES]
    affected = _affected_jobs(session, chosen, {each.name.slurm_job_id for each in hits})
    rows = [
        {
            "file": PurePath(each.file).name,
            "slurm_job_id": each.name.slurm_job_id,
            "line": each.hit.line,
            "text": each.hit.text,
            "pattern": each.hit.pattern.name,
            "severity": each.hit.pattern.severity.value,
            "hint": each.hit.pattern.hint,
            "more": each.more,
            "affected_jobs": [{"id": job.id, "name": job.name} for job in affected.get(each.name.slurm_job_id, [])],
        }
        for each in hits
    ]
    if session.wants_json:
        values = {"workflow_id": chosen, "output_dir": str(folder), "files_scanned": found.files_scanned}
        print_json({**values, "total": len(rows), "errors": rows})
        return
    print("Slurm Log Analysis Results")
    print("==========================")
    print(f"Found {len(rows)} error(s) in {found.files_scanned} log files")
    if rows:
        print_table(_COLUMNS, rows)


def _affected_jobs(
    session: Session, workflow_id: int, slurm_job_ids: set[int | None]
) -> dict[int | None, list[JobRecord]]:
    """Return the jobs that ran in allocations, by the allocations' ids in Slurm."""
    client = session.client
    nodes = client.find(ScheduledComputeNodeRecord, workflow_id=workflow_id)
    return {node.scheduler_id: jobs_of_allocation(client, node) for node in nodes if node.scheduler_id in slurm_job_ids}


def _names(row: dict[str, Any]) -> str:
    jobs = row["affected_jobs"]
    more = f" and {len(jobs) - SHOWN_JOBS} more" if len(jobs) > SHOWN_JOBS else ""
    return ", ".join(f"{job['name']} (ID: {job['id']})" for job in jobs[:SHOWN_JOBS]) + more


_COLUMNS: Final[list[Column]] = [
    ("File", "file"),
    ("Slurm Job ID", "slurm_job_id"),
    ("Line", "line"),
    ("Pattern", "pattern"),
    ("Severity", "severity"),
    ("Affected Torc Jobs", _names),
]
