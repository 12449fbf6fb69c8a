"""``torc jobs list-by-status``: the jobs of a workflow, grouped by status."""

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, Final

import typer

from torc_framework.cli.shared.arguments import WorkflowId, pick_workflow
from torc_framework.cli.shared.listing import ListColumn, list_text
from torc_framework.cli.shared.output import print_json
from torc_framework.cli.shared.session import session_of
from torc_framework.models.records import JobRecord, WorkflowRecord
from torc_framework.models.statuses import JobStatus

if TYPE_CHECKING:
    from torc_framework.client import TorcClient

SHOWN_NAMES: Final = 3
"""Most names that the text output shows of one status; JSON has all jobs."""

_COLUMNS: Final = (
    ListColumn("STATUS", lambda row: row["status"]),
    ListColumn("JOBS", lambda row: str(row["count"]), right=True),
    ListColumn("NAMES", lambda row: row["names"], shrinks="end"),
)


def list_by_status(ctx: typer.Context, workflow_id: WorkflowId = None) -> None:
    """List the jobs of a workflow by status: how many, and which.

    Examples:
        torc jobs list-by-status 12
        torc jobs list-by-status 12 -f json
    """
    session = session_of(ctx)
    chosen = pick_workflow(session, workflow_id)
    session.client.get(WorkflowRecord, chosen)  # an unknown workflow is an error, not a workflow without jobs
    if session.wants_json:
        groups = [*_groups(session.client.iterate(JobRecord, workflow_id=chosen))]
        print_json({"workflow_id": chosen, "total": sum(group["count"] for group in groups), "statuses": groups})
    elif rows := [*_rows(session.client, chosen)]:
        print(list_text(_COLUMNS, rows), end="")
    else:
        print(f"No jobs of workflow {chosen} found.")


def _rows(client: "TorcClient", workflow_id: int) -> Iterator[dict[str, Any]]:
    """Yield each status that a job has, with the number of its jobs and the first names."""
    counts = client.progress(workflow_id).overview.counts
    for label in (status.label for status in JobStatus):
        if count := counts.get(label, 0):
            jobs = client.find(JobRecord, workflow_id=workflow_id, status=label, limit=SHOWN_NAMES)
            shown = ", ".join(job.name for job in jobs)
            more = count - SHOWN_NAMES
            yield {"status": label, "count": count, "names": f"{shown} and {more} more" if more > 0 else shown}


def _groups(jobs: Iterator[JobRecord]) -> Iterator[dict[str, Any]]:
    """Yield each status that a job has, with its jobs, in the order of the statuses."""
    found: dict[str, list[dict[str, Any]]] = {status.label: [] for status in JobStatus}
    for job in jobs:
        found[str(job.status)].append({"id": job.id, "name": job.name, "attempt_id": job.attempt_id})
    for label, of_status in found.items():
        if of_status:
            yield {"status": label, "count": len(of_status), "jobs": of_status}
