"""``torc workflows export|import``: writes a workflow to a JSON document, and creates one from such a document."""

import codecs
import json
import sys
from pathlib import Path
from typing import Annotated, Any, Final

import typer

from torc_framework.cli.shared.app import CommandGroup
from torc_framework.cli.shared.arguments import User, WorkflowId, pick_workflow
from torc_framework.cli.shared.output import print_json, print_pairs
from torc_framework.cli.shared.session import session_of
from torc_framework.errors import UserError
from torc_framework.models.records import WorkflowRecord
from torc_framework.system.whole_files import open_whole

_HISTORY: Final = {"skip_results": ("results",), "skip_events": ("events",)}


def add(app: CommandGroup) -> None:
    """Add the commands of this module."""
    app.command("export")(export)
    app.command("import")(import_)


def export(
    ctx: typer.Context,
    workflow_id: WorkflowId = None,
    *,
    output: Annotated[
        Path | None, typer.Option("--output", "-o", metavar="FILE", help="File to write (default: standard output).")
    ] = None,
    include_results: Annotated[bool, typer.Option("--include-results", help="Results of all runs, too.")] = False,
    include_events: Annotated[bool, typer.Option("--include-events", help="Events, too.")] = False,
) -> None:
    """Write a workflow as one JSON document; 'import' reads it on this or any other server.

    The document has jobs, files (their paths, not their contents), user data, resource requirements,
    schedulers, failure handlers and actions. The file gets its name when it is complete.

    Examples:
        torc workflows export 12 --output sweep.json
        torc workflows export 12 --include-results --output sweep.json
    """
    session = session_of(ctx)
    chosen = pick_workflow(session, workflow_id)
    history = {"include_results": include_results, "include_events": include_events}
    if output is None:
        decode = codecs.getincrementaldecoder("utf-8")().decode
        session.client.save_export(chosen, lambda part: sys.stdout.write(decode(part)), **history)
        sys.stdout.write("\n")
        return
    name = session.client.get(WorkflowRecord, chosen).name
    try:
        with open_whole(output) as file:
            lengths = session.client.save_export(chosen, file.write, **history)
            file.write(b"\n")
    except OSError as error:
        raise UserError(f"cannot write {output}: {error.strerror}; see --output") from None
    kinds = ("jobs", "files", "user_data", "results", "events")
    counts = {kind: lengths.get(kind, 0) for kind in kinds}
    if session.wants_json:
        head = {"success": True, "workflow_id": chosen, "workflow_name": name, "output_file": str(output)}
        print_json({**head, **counts})
        return
    shown = {"Name": name, **{_label(kind): count for kind, count in counts.items() if count}}
    print_pairs(f"Exported workflow {chosen} to {output}:", shown)


def import_(
    ctx: typer.Context,
    file: Annotated[Path, typer.Argument(metavar="FILE", help="Document that 'export' wrote; - is standard input.")],
    *,
    name: Annotated[str | None, typer.Option("--name", help="Another name for the workflow.")] = None,
    user: User = None,
    skip_results: Annotated[bool, typer.Option("--skip-results", help="Leave the document's results out.")] = False,
    skip_events: Annotated[bool, typer.Option("--skip-events", help="Leave the document's events out.")] = False,
) -> None:
    """Create a workflow from a document that 'export' wrote.

    All ids are new, the jobs are uninitialized, and you own the workflow. If the document is wrong, the
    error names the place and nothing is created.

    Examples:
        torc workflows import sweep.json
        torc workflows import sweep.json --name copy --skip-results
    """
    session = session_of(ctx)
    session.start_server()  # it starts up while the document is read
    document = _read(file)
    workflow = document["workflow"]
    if name is not None:
        workflow["name"] = name
    workflow["user"] = user or session.user
    for skipped, keys in ((skip_results, _HISTORY["skip_results"]), (skip_events, _HISTORY["skip_events"])):
        for key in keys if skipped else ():
            document.pop(key, None)
    made = session.client.import_workflow(_without_nulls(document))
    if session.wants_json:
        import msgspec

        values = msgspec.to_builtins(made)
        print_json({"success": True, "workflow_name": values.pop("name"), **values})
        return
    shown = {"Workflow ID": made.workflow_id, "Name": made.name, "Jobs": made.jobs, "Files": made.files or None}
    more = {"User data": made.user_data or None, "Results": made.results or None, "Events": made.events or None}
    print_pairs("Successfully imported workflow:", {**shown, **more})


def _read(path: Path) -> dict[str, Any]:
    """Return the document in a file.

    Raises:
        UserError: it cannot be read, is no exported workflow, or is one of an unknown version.
    """
    from torc_framework.models.export_document import EXPORT_VERSION

    where = "standard input" if str(path) == "-" else str(path)
    try:
        raw = sys.stdin.buffer.read() if str(path) == "-" else path.read_bytes()
        document = json.loads(raw)
    except OSError as error:
        raise UserError(f"cannot read {where}: {error.strerror}") from None
    except (ValueError, RecursionError) as error:
        raise UserError(f"{where} is no JSON: {error}") from None
    if not isinstance(document, dict) or "export_version" not in document:
        raise UserError(f"{where} is no exported workflow: it has no export_version")
    if document["export_version"] != EXPORT_VERSION:
        version = document["export_version"]
        raise UserError(f"{where}: export_version is {version!r}; this program reads {EXPORT_VERSION!r}")
    if not isinstance(document.get("workflow"), dict):
        raise UserError(f"{where}: workflow is missing, or no object")
    return document


def _without_nulls(document: dict[str, Any]) -> dict[str, Any]:
    """Leave out fields of records that are null, as other programs write fields without a value."""

    def trimmed(record: Any) -> Any:
        return (
            {name: value for name, value in record.items() if value is not None} if isinstance(record, dict) else record
        )

    parts = {name: part for name, part in document.items() if part is not None}
    return {
        name: [trimmed(record) for record in part] if isinstance(part, list) else trimmed(part)
        for name, part in parts.items()
    }


def _label(kind: str) -> str:
    return kind.replace("_", " ").capitalize()
