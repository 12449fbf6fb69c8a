"""``torc compute-nodes``: the runners that worked on a workflow."""

from typing import Annotated

import typer

from torc_framework.cli.app import App
from torc_framework.cli.common import (
    Limit,
    RecordId,
    ReverseSort,
    SortBy,
    WorkflowId,
    pick_workflow,
    session_of,
    show_many,
    show_one,
)
from torc_framework.cli.output import Column, seconds_text
from torc_framework.models.records import ComputeNodeRecord

app = App("Runners that worked on a workflow.")

COLUMNS: list[Column] = [
    ("ID", "id"),
    ("Hostname", "hostname"),
    ("PID", "pid"),
    ("Type", "compute_node_type"),
    ("CPUs", "num_cpus"),
    ("Memory GB", lambda node: f"{node.memory_gb:.1f}"),
    ("GPUs", "num_gpus"),
    ("Active", lambda node: "yes" if node.is_active else "no"),
    ("Start Time", "start_time"),
    ("Duration", lambda node: seconds_text(node.duration_seconds)),
]


@app.command("list")
def list_(
    ctx: typer.Context,
    workflow_id: WorkflowId = None,
    *,
    scheduled_compute_node: Annotated[int | None, typer.Option(help="Only those of this allocation.")] = None,
    limit: Limit = 10_000,
    offset: Annotated[int, typer.Option("--offset", "-o", min=0, help="Records to skip.")] = 0,
    sort_by: SortBy = None,
    reverse_sort: ReverseSort = False,
) -> None:
    """List compute nodes."""
    session = session_of(ctx)
    chosen = pick_workflow(session, workflow_id)
    found = session.client.find(
        ComputeNodeRecord,
        workflow_id=chosen,
        scheduled_compute_node_id=scheduled_compute_node,
        limit=limit,
        offset=offset,
        sort_by=sort_by,
        reverse_sort=reverse_sort or None,
    )
    show_many(session, "compute_nodes", f"compute nodes of workflow {chosen}", COLUMNS, found)


@app.command("get")
def get(ctx: typer.Context, id_: RecordId) -> None:
    """Show one compute node."""
    session = session_of(ctx)
    show_one(session, f"Compute node {id_}", session.client.get(ComputeNodeRecord, id_))
