"""``torc user-data``: the JSON values that jobs read and write."""

import json
from typing import TYPE_CHECKING, Any

import typer

from torc_framework.cli.shared.app import CommandGroup
from torc_framework.cli.shared.arguments import WorkflowId, pick_workflow
from torc_framework.cli.shared.output import print_json
from torc_framework.cli.shared.record_commands import RecordCommands
from torc_framework.cli.shared.record_options import record_option
from torc_framework.cli.shared.session import session_of
from torc_framework.models.records import UserDataRecord

if TYPE_CHECKING:
    from torc_framework.client import TorcClient


def _store(client: "TorcClient", record: UserDataRecord, **links: int) -> UserDataRecord:
    return client.create_user_data(record, **links)


_FIELDS = (
    record_option("name", "--name", "-n"),
    record_option("data", "--data", "-d"),
    record_option("is_ephemeral", "--ephemeral"),
)
USER_DATA = RecordCommands(
    record=UserDataRecord,
    one="user data",
    several="user data",
    columns=[
        ("ID", "id"),
        ("Name", "name"),
        ("Data", lambda record: json.dumps(record.data)),
        ("Workflow ID", "workflow_id"),
    ],
    create=(
        *_FIELDS,
        record_option("consumer_job_id", kind=int, help="Job that reads it."),
        record_option("producer_job_id", kind=int, help="Job that writes it."),
    ),
    update=_FIELDS,
    filters=(
        record_option("name", help="Only names that contain this."),
        record_option("is_ephemeral", help="Only ephemeral user data, or only the others."),
        record_option("consumer_job_id", kind=int, help="Only what this job reads."),
        record_option("producer_job_id", kind=int, help="Only what this job writes."),
    ),
    short={"offset": "-o"},
    is_data=True,
    store=_store,
    examples={
        "create": "12 --name limits --data '{\"low\": 1}'",
        "update": "34 --data '{\"low\": 2}'",
        "list": "12 --name limits",
    },
)

app = CommandGroup("JSON values that jobs read and write.")
USER_DATA.add(app, "create", "list", "get", "update", "delete", "delete-all")


@app.command("list-missing")
def list_missing(ctx: typer.Context, workflow_id: WorkflowId = None) -> None:
    """List user data that must have a value before the workflow runs.

    Examples:
        torc user-data list-missing 12
    """
    session = session_of(ctx)
    found: list[Any] = list(session.client.missing_user_data(pick_workflow(session, workflow_id)))
    if session.wants_json:
        print_json({"user_data": found})
    else:
        print("\n".join(map(str, found)) if found else "No user data is missing.")
