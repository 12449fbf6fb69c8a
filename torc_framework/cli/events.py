"""``torc events``: what happened to a workflow."""

import json
from datetime import UTC, datetime
from typing import Annotated

import typer

from torc_framework.cli.app import App
from torc_framework.cli.common import Limit, ReverseSort, SortBy, WorkflowId, pick_workflow, session_of, show_many
from torc_framework.cli.output import Column
from torc_framework.models.records import EventRecord

app = App("What happened to a workflow.")


def _when(event: EventRecord) -> str | None:
    if event.timestamp is None:
        return None
    return datetime.fromtimestamp(event.timestamp / 1000, UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


COLUMNS: list[Column] = [("ID", "id"), ("Timestamp", _when), ("Data", lambda event: json.dumps(event.data))]


@app.command("list")
def list_(
    ctx: typer.Context,
    workflow_id: WorkflowId = None,
    *,
    category: Annotated[str | None, typer.Option("--category", "-c", help="Only this category.")] = None,
    limit: Limit = 10_000,
    offset: Annotated[int, typer.Option("--offset", "-o", min=0, help="Records to skip.")] = 0,
    sort_by: SortBy = None,
    reverse_sort: ReverseSort = False,
) -> None:
    """List events, oldest first."""
    session = session_of(ctx)
    chosen = pick_workflow(session, workflow_id)
    found = session.client.find(
        EventRecord,
        workflow_id=chosen,
        category=category,
        limit=limit,
        offset=offset,
        sort_by=sort_by,
        reverse_sort=reverse_sort or None,
    )
    show_many(session, "events", f"events of workflow {chosen}", COLUMNS, found)
