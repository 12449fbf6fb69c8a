"""``torc files``: the files that jobs read and write."""

from typing import TYPE_CHECKING, Any

import attrs
import typer

from torc_framework.cli.shared.app import CommandGroup
from torc_framework.cli.shared.arguments import WorkflowId, pick_workflow
from torc_framework.cli.shared.output import print_json
from torc_framework.cli.shared.record_commands import RecordCommands
from torc_framework.cli.shared.record_options import record_option
from torc_framework.cli.shared.session import session_of
from torc_framework.models.records import FileRecord

if TYPE_CHECKING:
    from torc_framework.client import TorcClient


def _keep_time(client: "TorcClient", file_id: int, changes: dict[str, Any]) -> dict[str, Any]:
    """Add the stored modification time: an update without it would clear it."""
    return {"st_mtime": client.get(FileRecord, file_id).st_mtime, **changes}


_FIELDS = (record_option("name", "--name", "-n"), record_option("path", "--path", "-p"))
FILES = RecordCommands(
    record=FileRecord,
    one="a file",
    several="files",
    columns=[("ID", "id"), ("Name", "name"), ("Path", "path"), ("Modified", "st_mtime")],
    create=_FIELDS,
    update=_FIELDS,
    filters=(
        record_option("name", help="Only the file of this name."),
        record_option("path", help="Only files of this path."),
        record_option("produced_by_job_id", kind=int, help="Only files that this job writes."),
        record_option("is_output", kind=bool, help="true: only files that a job writes; false: only the others."),
    ),
    notes={"delete": "The file itself stays."},
    complete=_keep_time,
    examples={
        "create": "12 --name raw --path data/raw.csv",
        "update": "34 --path data/new.csv",
        "list": "12 --is-output true",
    },
)

app = CommandGroup("Files that jobs read and write.")
FILES.add(app, "create", "list", "get", "update", "delete")


@app.command("list-required-existing")
def list_required_existing(ctx: typer.Context, workflow_id: WorkflowId = None) -> None:
    """List files that must exist before the workflow runs.

    Examples:
        torc files list-required-existing 12
    """
    session = session_of(ctx)
    chosen = pick_workflow(session, workflow_id)
    wanted = set(session.client.required_existing_files(chosen))
    found = [file for file in session.client.iterate(FileRecord, workflow_id=chosen) if file.id in wanted]
    if session.wants_json:
        print_json({"files": sorted(wanted), "records": [attrs.asdict(file) for file in found]})
        return
    FILES.show_many(ctx, found, f"required files of workflow {chosen}")
