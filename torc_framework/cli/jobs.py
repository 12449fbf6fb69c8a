"""``torc jobs``: the jobs of a workflow."""

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
    ids,
    pick_workflow,
    session_of,
    show_many,
    show_one,
)
from torc_framework.cli.mapped_jobs import run_function, run_postprocess
from torc_framework.cli.output import Column
from torc_framework.errors import UserError
from torc_framework.models.records import JobRecord
from torc_framework.models.statuses import JobStatus

app = App("Jobs of a workflow.")

COLUMNS: list[Column] = [
    ("ID", "id"),
    ("Name", "name"),
    ("Status", "status"),
    ("Attempt", "attempt_id"),
    ("Command", "command"),
]

_Ids = list[str] | None


@app.command("create")
def create(
    ctx: typer.Context,
    workflow_id: WorkflowId = None,
    *,
    name: Annotated[str, typer.Option("--name", "-n", help="Name of the job.")],
    command: Annotated[str, typer.Option("--command", "-c", help="Command line for /bin/sh.")],
    resource_requirements_id: Annotated[
        int | None, typer.Option("--resource-requirements-id", "-r", help="What it asks for.")
    ] = None,
    blocking_job_ids: Annotated[_Ids, typer.Option("--blocking-job-ids", "-b", help="Jobs it waits for.")] = None,
    input_file_ids: Annotated[_Ids, typer.Option("--input-file-ids", "-i", help="Files it reads.")] = None,
    output_file_ids: Annotated[_Ids, typer.Option("--output-file-ids", "-o", help="Files it writes.")] = None,
) -> None:
    """Add a job to a workflow. Lists of ids are given as 1,2,3 or by repeating the option."""
    session = session_of(ctx)
    record = JobRecord(
        workflow_id=pick_workflow(session, workflow_id),
        name=name,
        command=command,
        resource_requirements_id=resource_requirements_id,
        depends_on_job_ids=ids(blocking_job_ids, "--blocking-job-ids"),
        input_file_ids=ids(input_file_ids, "--input-file-ids"),
        output_file_ids=ids(output_file_ids, "--output-file-ids"),
    )
    created(session, "job", session.client.create(record))


@app.command("list")
def list_(
    ctx: typer.Context,
    workflow_id: WorkflowId = None,
    *,
    status: Annotated[str | None, typer.Option("--status", "-s", help="Only jobs of this status.")] = None,
    upstream_job_id: Annotated[int | None, typer.Option(help="Only jobs that wait for this one.")] = None,
    limit: Limit = 10_000,
    offset: Offset = 0,
    sort_by: SortBy = None,
    reverse_sort: ReverseSort = False,
    include_relationships: Annotated[bool, typer.Option(help="Also ids of dependencies, files, user data.")] = False,
) -> None:
    """List jobs."""
    session = session_of(ctx)
    chosen = pick_workflow(session, workflow_id)
    found = session.client.find(
        JobRecord,
        workflow_id=chosen,
        status=known_status(status),
        upstream_job_id=upstream_job_id,
        limit=limit,
        offset=offset,
        sort_by=sort_by,
        reverse_sort=reverse_sort or None,
        include_relationships=include_relationships or None,
    )
    show_many(session, "jobs", f"jobs of workflow {chosen}", COLUMNS, found)


@app.command("get")
def get(ctx: typer.Context, id_: RecordId) -> None:
    """Show one job."""
    session = session_of(ctx)
    show_one(session, f"Job {id_}", session.client.get(JobRecord, id_))


@app.command("update")
def update(
    ctx: typer.Context,
    id_: RecordId,
    *,
    name: Annotated[str | None, typer.Option("--name", "-n", help="New name.")] = None,
    command: Annotated[str | None, typer.Option("--command", "-c", help="New command line.")] = None,
) -> None:
    """Change a job."""
    session = session_of(ctx)
    show_one(session, f"Job {id_}", session.client.update(JobRecord, id_, changes(name=name, command=command)))


app.command("run-function")(run_function)
app.command("run-postprocess")(run_postprocess)


def known_status(label: str | None) -> str | None:
    """Return a status label that exists.

    Raises:
        UserError: no status is called so.
    """
    if label is None:
        return None
    try:
        return JobStatus.from_label(label.lower()).label
    except ValueError as error:
        raise UserError(str(error)) from None
