"""``torc results``: how jobs ended."""

from typing import Annotated

import typer

from torc_framework.cli.app import App
from torc_framework.cli.common import (
    Limit,
    Offset,
    RecordId,
    ReverseSort,
    SortBy,
    WorkflowId,
    pick_workflow,
    session_of,
    show_many,
    show_one,
)
from torc_framework.cli.jobs import known_status
from torc_framework.cli.output import Column, peak_memory_text
from torc_framework.models.records import ResultRecord

app = App("How jobs ended.")

COLUMNS: list[Column] = [
    ("ID", "id"),
    ("Job ID", "job_id"),
    ("WF ID", "workflow_id"),
    ("Run ID", "run_id"),
    ("Return Code", "return_code"),
    ("Exec Time", lambda result: f"{result.exec_time_minutes:.2f}"),
    ("Peak Mem", peak_memory_text),
    ("Peak CPU %", lambda result: None if result.peak_cpu_percent is None else f"{result.peak_cpu_percent:.1f}%"),
    ("Completion Time", "completion_time"),
    ("Status", "status"),
]


@app.command("list")
def list_(
    ctx: typer.Context,
    workflow_id: WorkflowId = None,
    *,
    job_id: Annotated[int | None, typer.Option("--job-id", "-j", help="Only this job's.")] = None,
    run_id: Annotated[int | None, typer.Option("--run-id", "-r", help="Only this run's.")] = None,
    return_code: Annotated[int | None, typer.Option(help="Only this return code.")] = None,
    failed: Annotated[bool, typer.Option("--failed", help="Only return codes other than 0.")] = False,
    status: Annotated[str | None, typer.Option("--status", "-s", help="Only this status.")] = None,
    compute_node: Annotated[int | None, typer.Option(help="Only of this compute node.")] = None,
    all_runs: Annotated[bool, typer.Option("--all-runs", help="Also results of earlier runs and attempts.")] = False,
    limit: Limit = 10_000,
    offset: Offset = 0,
    sort_by: SortBy = None,
    reverse_sort: ReverseSort = False,
) -> None:
    """List results: the latest of each job."""
    session = session_of(ctx)
    chosen = pick_workflow(session, workflow_id)
    found = session.client.find(
        ResultRecord,
        workflow_id=chosen,
        job_id=job_id,
        run_id=run_id,
        return_code=return_code,
        status=known_status(status),
        compute_node_id=compute_node,
        all_runs=all_runs or None,
        limit=None if failed else limit,
        offset=0 if failed else offset,
        sort_by=sort_by,
        reverse_sort=reverse_sort or None,
    )
    if failed:  # the server has no such filter
        found = [result for result in found if result.return_code != 0][offset : offset + limit]
    show_many(session, "results", f"results for workflow ID {chosen}", COLUMNS, found)


@app.command("get")
def get(ctx: typer.Context, id_: RecordId) -> None:
    """Show one result, with all that was observed."""
    session = session_of(ctx)
    show_one(session, f"Result {id_}", session.client.get(ResultRecord, id_))
