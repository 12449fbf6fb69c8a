"""``torc user-data``: the JSON values that jobs read and write."""

import json
from typing import Annotated, Any

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
from torc_framework.cli.output import Column, print_json
from torc_framework.errors import UserError
from torc_framework.models.records import UserDataRecord

app = App("JSON values that jobs read and write.")

COLUMNS: list[Column] = [
    ("ID", "id"),
    ("Name", "name"),
    ("Data", lambda record: json.dumps(record.data)),
    ("Workflow ID", "workflow_id"),
]

_Data = Annotated[str | None, typer.Option("--data", "-d", metavar="JSON", help="Any JSON value.")]


@app.command("create")
def create(
    ctx: typer.Context,
    workflow_id: WorkflowId = None,
    *,
    name: Annotated[str, typer.Option("--name", "-n", help="Name.")],
    data: _Data = None,
    ephemeral: Annotated[bool, typer.Option("--ephemeral", help="Clear it at each initialize.")] = False,
    consumer_job_id: Annotated[int | None, typer.Option(help="Job that reads it.")] = None,
    producer_job_id: Annotated[int | None, typer.Option(help="Job that writes it.")] = None,
) -> None:
    """Add user data to a workflow."""
    session = session_of(ctx)
    value = _parse(data)
    record = UserDataRecord(
        workflow_id=pick_workflow(session, workflow_id), name=name, data=value, is_ephemeral=ephemeral
    )
    stored = session.client.create_user_data(record, consumer_job_id=consumer_job_id, producer_job_id=producer_job_id)
    created(session, "user data", stored)


@app.command("list")
def list_(
    ctx: typer.Context,
    workflow_id: WorkflowId = None,
    *,
    name: Annotated[str | None, typer.Option(help="Only names that contain this.")] = None,
    is_ephemeral: Annotated[str | None, typer.Option(metavar="true|false", help="Only of this kind.")] = None,
    consumer_job_id: Annotated[int | None, typer.Option(help="Only what this job reads.")] = None,
    producer_job_id: Annotated[int | None, typer.Option(help="Only what this job writes.")] = None,
    limit: Limit = 10_000,
    offset: Offset = 0,
    sort_by: SortBy = None,
    reverse_sort: ReverseSort = False,
) -> None:
    """List user data."""
    session = session_of(ctx)
    chosen = pick_workflow(session, workflow_id)
    found = session.client.find(
        UserDataRecord,
        workflow_id=chosen,
        name=name,
        is_ephemeral=_truth(is_ephemeral, "--is-ephemeral"),
        consumer_job_id=consumer_job_id,
        producer_job_id=producer_job_id,
        limit=limit,
        offset=offset,
        sort_by=sort_by,
        reverse_sort=reverse_sort or None,
    )
    show_many(session, "user_data", f"user data of workflow {chosen}", COLUMNS, found)


@app.command("get")
def get(ctx: typer.Context, id_: RecordId) -> None:
    """Show one record, as JSON in either format: it is read by programs."""
    print_json(session_of(ctx).client.get(UserDataRecord, id_))


@app.command("update")
def update(
    ctx: typer.Context,
    id_: RecordId,
    *,
    name: Annotated[str | None, typer.Option("--name", "-n", help="New name.")] = None,
    data: _Data = None,
    ephemeral: Annotated[str | None, typer.Option("--ephemeral", metavar="true|false", help="New kind.")] = None,
) -> None:
    """Change user data."""
    session = session_of(ctx)
    wanted = changes(name=name, data=data, ephemeral=ephemeral)
    if data is not None:
        wanted["data"] = _parse(data)
    if ephemeral is not None:
        wanted["is_ephemeral"] = _truth(wanted.pop("ephemeral"), "--ephemeral")
    show_one(session, f"User data {id_}", session.client.update(UserDataRecord, id_, wanted))


@app.command("delete")
def delete(ctx: typer.Context, id_: RecordId) -> None:
    """Delete user data."""
    session = session_of(ctx)
    deleted(session, "user data", session.client.delete(UserDataRecord, id_))


@app.command("list-missing")
def list_missing(ctx: typer.Context, workflow_id: WorkflowId = None) -> None:
    """List user data that must have a value before the workflow runs."""
    session = session_of(ctx)
    found = session.client.missing_user_data(pick_workflow(session, workflow_id))
    if session.wants_json:
        print_json({"user_data": found})
    else:
        print("\n".join(str(item) for item in found) if found else "No user data is missing.")


def _truth(text: str | None, flag: str) -> bool | None:
    """Return the truth value that a text names."""
    try:
        return None if text is None else {"true": True, "false": False}[text.lower()]
    except KeyError:
        raise UserError(f"{flag} is {text!r}; expected true or false") from None


def _parse(text: str | None) -> Any:
    """Return the value of a JSON text."""
    if text is None:
        return None
    try:
        return json.loads(text)
    except ValueError as error:
        raise UserError(f"--data is no JSON: {error}; a text needs quotes of its own, such as '\"hello\"'") from None
