"""``torc resource-requirements``: what jobs ask for."""

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
    changes,
    created,
    deleted,
    pick_workflow,
    session_of,
    show_many,
    show_one,
)
from torc_framework.cli.output import Column
from torc_framework.models.records import ResourceRequirementsRecord

app = App("What jobs ask for: CPUs, memory, GPUs, nodes, run time.")

COLUMNS: list[Column] = [
    ("ID", "id"),
    ("Name", "name"),
    ("CPUs", "num_cpus"),
    ("GPUs", "num_gpus"),
    ("Nodes", "num_nodes"),
    ("Memory", "memory"),
    ("Runtime", "runtime"),
]


@app.command("create")
def create(
    ctx: typer.Context,
    workflow_id: WorkflowId = None,
    *,
    name: Annotated[str, typer.Option("--name", "-n", help="Name.")],
    num_cpus: Annotated[int, typer.Option(min=1, help="CPU cores.")] = 1,
    num_gpus: Annotated[int, typer.Option(min=0, help="GPUs.")] = 0,
    num_nodes: Annotated[int, typer.Option(min=1, help="Nodes.")] = 1,
    memory: Annotated[str, typer.Option("--memory", "-m", help="Memory, such as 20g.")] = "1m",
    runtime: Annotated[str, typer.Option("--runtime", "-r", help="Longest run time, such as PT1H.")] = "P0DT1M",
) -> None:
    """Add resource requirements to a workflow."""
    session = session_of(ctx)
    record = ResourceRequirementsRecord(
        workflow_id=pick_workflow(session, workflow_id),
        name=name,
        num_cpus=num_cpus,
        num_gpus=num_gpus,
        num_nodes=num_nodes,
        memory=memory,
        runtime=runtime,
    )
    created(session, "resource requirements", session.client.create(record))


@app.command("list")
def list_(
    ctx: typer.Context,
    workflow_id: WorkflowId = None,
    *,
    limit: Limit = 10_000,
    offset: Offset = 0,
    sort_by: SortBy = None,
    reverse_sort: ReverseSort = False,
) -> None:
    """List resource requirements."""
    session = session_of(ctx)
    chosen = pick_workflow(session, workflow_id)
    found = session.client.find(
        ResourceRequirementsRecord,
        workflow_id=chosen,
        limit=limit,
        offset=offset,
        sort_by=sort_by,
        reverse_sort=reverse_sort or None,
    )
    show_many(session, "resource_requirements", f"resource requirements of workflow {chosen}", COLUMNS, found)


@app.command("get")
def get(ctx: typer.Context, id_: RecordId) -> None:
    """Show one record."""
    session = session_of(ctx)
    show_one(session, f"Resource requirements {id_}", session.client.get(ResourceRequirementsRecord, id_))


@app.command("update")
def update(
    ctx: typer.Context,
    id_: RecordId,
    *,
    name: Annotated[str | None, typer.Option("--name", "-n", help="New name.")] = None,
    num_cpus: Annotated[int | None, typer.Option(min=1, help="CPU cores.")] = None,
    num_gpus: Annotated[int | None, typer.Option(min=0, help="GPUs.")] = None,
    num_nodes: Annotated[int | None, typer.Option(min=1, help="Nodes.")] = None,
    memory: Annotated[str | None, typer.Option(help="Memory, such as 20g.")] = None,
    runtime: Annotated[str | None, typer.Option(help="Longest run time, such as PT1H.")] = None,
) -> None:
    """Change resource requirements."""
    session = session_of(ctx)
    wanted = changes(
        name=name, num_cpus=num_cpus, num_gpus=num_gpus, num_nodes=num_nodes, memory=memory, runtime=runtime
    )
    stored = session.client.update(ResourceRequirementsRecord, id_, wanted)
    show_one(session, f"Resource requirements {id_}", stored)


@app.command("delete")
def delete(ctx: typer.Context, id_: RecordId) -> None:
    """Delete resource requirements."""
    session = session_of(ctx)
    deleted(session, "resource requirements", session.client.delete(ResourceRequirementsRecord, id_))
