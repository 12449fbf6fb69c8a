"""``torc files``: the files that jobs read and write."""

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
from torc_framework.models.records import FileRecord

app = App("Files that jobs read and write.")

COLUMNS: list[Column] = [("ID", "id"), ("Name", "name"), ("Path", "path"), ("Modified", "st_mtime")]


@app.command("create")
def create(
    ctx: typer.Context,
    workflow_id: WorkflowId = None,
    *,
    name: Annotated[str, typer.Option("--name", "-n", help="Name of the file.")],
    path: Annotated[str, typer.Option("--path", "-p", help="Path of the file.")],
) -> None:
    """Add a file to a workflow."""
    session = session_of(ctx)
    record = FileRecord(workflow_id=pick_workflow(session, workflow_id), name=name, path=path)
    created(session, "file", session.client.create(record))


@app.command("list")
def list_(
    ctx: typer.Context,
    workflow_id: WorkflowId = None,
    *,
    produced_by_job_id: Annotated[int | None, typer.Option(help="Only files that this job writes.")] = None,
    limit: Limit = 10_000,
    offset: Offset = 0,
    sort_by: SortBy = None,
    reverse_sort: ReverseSort = False,
) -> None:
    """List files."""
    session = session_of(ctx)
    chosen = pick_workflow(session, workflow_id)
    found = session.client.find(
        FileRecord,
        workflow_id=chosen,
        produced_by_job_id=produced_by_job_id,
        limit=limit,
        offset=offset,
        sort_by=sort_by,
        reverse_sort=reverse_sort or None,
    )
    show_many(session, "files", f"files of workflow {chosen}", COLUMNS, found)


@app.command("get")
def get(ctx: typer.Context, id_: RecordId) -> None:
    """Show one file."""
    session = session_of(ctx)
    show_one(session, f"File {id_}", session.client.get(FileRecord, id_))


@app.command("update")
def update(
    ctx: typer.Context,
    id_: RecordId,
    *,
    name: Annotated[str | None, typer.Option("--name", "-n", help="New name.")] = None,
    path: Annotated[str | None, typer.Option("--path", "-p", help="New path.")] = None,
) -> None:
    """Change a file."""
    session = session_of(ctx)
    wanted = changes(name=name, path=path)
    kept = session.client.get(FileRecord, id_).st_mtime  # an update without it would clear it
    show_one(session, f"File {id_}", session.client.update(FileRecord, id_, {"st_mtime": kept, **wanted}))


@app.command("delete")
def delete(ctx: typer.Context, id_: RecordId) -> None:
    """Delete a file's record; the file itself stays."""
    session = session_of(ctx)
    deleted(session, "file", session.client.delete(FileRecord, id_))


@app.command("list-required-existing")
def list_required_existing(ctx: typer.Context, workflow_id: WorkflowId = None) -> None:
    """List the files that must exist before the workflow runs."""
    session = session_of(ctx)
    chosen = pick_workflow(session, workflow_id)
    wanted = set(session.client.required_existing_files(chosen))
    found = [file for file in session.client.iterate(FileRecord, workflow_id=chosen) if file.id in wanted]
    show_many(session, "files", f"required files of workflow {chosen}", COLUMNS, found)
