"""What the commands on records share: arguments, options, and the ways to show one record or many."""

import sys
from collections.abc import Sequence
from typing import Annotated, Any, TypeVar

import typer

from torc_framework.cli.shared import completion
from torc_framework.cli.shared.output import Column, print_json, print_paged, print_pairs, print_table, table_text
from torc_framework.cli.shared.session import Session
from torc_framework.errors import UserError
from torc_framework.models.records import Record, WorkflowRecord, field_names
from torc_framework.text.terminal import print_line

_R = TypeVar("_R", bound=Record)

WorkflowId = Annotated[
    int | None,
    typer.Argument(
        metavar="[WORKFLOW_ID]", help="The workflow; asked for if left out.", autocompletion=completion.workflow_ids
    ),
]
RecordId = Annotated[int, typer.Argument(metavar="ID", help="Its id.")]
Force = Annotated[bool, typer.Option("--force", help="Also pending and running jobs: their runners stop them.")]
Limit = Annotated[int, typer.Option("--limit", "-l", min=0, help="Most records to return.")]
Offset = Annotated[int, typer.Option("--offset", min=0, help="Records to skip.")]
SortBy = Annotated[str | None, typer.Option("--sort-by", metavar="FIELD", help="Field to sort by.")]
ReverseSort = Annotated[bool, typer.Option("--reverse-sort", help="Sort from high to low.")]
User = Annotated[str | None, typer.Option("--user", "-u", help="Owner (default: you).")]


def session_of(ctx: typer.Context) -> Session:
    """Return the session of the call."""
    session = ctx.find_root().obj
    assert isinstance(session, Session)
    return session


def show_many(session: Session, key: str | None, title: str, columns: Sequence[Column], records: Sequence[Any]) -> None:
    """Print records: a titled table, or JSON wrapped in ``key`` (None: a bare array)."""
    if session.wants_json:
        print_json(records if key is None else {key: records})
        return
    if not records:
        print(f"No {title} found.")
        return
    text = f"{title[:1].upper()}{title[1:]}:\n{table_text(columns, records)}Total: {len(records)}\n"
    print_paged(text) if session.wants_pager else sys.stdout.write(text)


def show_one(session: Session, title: str, record: Record, **more: Any) -> None:
    """Print one record: its fields line by line, or as a JSON object; ``more`` joins them."""
    values = {name: getattr(record, name) for name in field_names(type(record))} | more
    if session.wants_json:
        print_json(values)
    else:
        print_pairs(f"{title}:", {_label(name): value for name, value in values.items()})


def _label(name: str) -> str:
    return " ".join(word.upper() if word in {"id", "cpus", "gpus"} else word.capitalize() for word in name.split("_"))


def created(session: Session, what: str, record: Record) -> None:
    """Say that a record was created."""
    if session.wants_json:
        show_one(session, what, record)
        return
    shown = {_label(name): getattr(record, name) for name in ("id", "workflow_id", "name") if hasattr(record, name)}
    print_pairs(f"Successfully created {what}:", shown)


def deleted(session: Session, what: str, record: Record) -> None:
    """Say that a record was deleted."""
    if session.wants_json:
        show_one(session, what, record)
    else:
        name = getattr(record, "name", None)
        print_line(f"Deleted {what} {getattr(record, 'id', '')}{f' ({name})' if name else ''}")


def changes(**given: Any) -> dict[str, Any]:
    """Return the options that were given.

    Raises:
        UserError: none was.
    """
    found = {name: value for name, value in given.items() if value is not None}
    if not found:
        raise UserError(f"nothing to change; give one of {', '.join('--' + name.replace('_', '-') for name in given)}")
    return found


def ids(texts: Sequence[str] | None, flag: str) -> list[int] | None:
    """Return the numbers of an option that may be repeated and may hold commas."""
    if not texts:
        return None
    try:
        return [int(part) for text in texts for part in text.split(",")]
    except ValueError:
        raise UserError(f"{flag} is {','.join(texts)!r}; expected ids such as 1,2,3") from None


def is_interactive() -> bool:
    """Say whether a person sits at both ends."""
    return sys.stdin.isatty() and sys.stdout.isatty()


def confirm(question: str, *, assume_yes: bool) -> None:
    """Ask a person; without one at the terminal the answer is yes.

    Raises:
        UserError: the answer was no.
    """
    if assume_yes or not is_interactive():
        return
    if not typer.confirm(question):
        raise UserError("nothing was changed")


def pick_workflow(session: Session, workflow_id: int | None, user: str | None = None, *, archived: bool = False) -> int:
    """Return the workflow that was named, or the one that a person picks from a list.

    Args:
        user: Whose workflows are listed; by default one's own.
        archived: List the archived ones instead of the others.

    Raises:
        UserError: none was named, and nobody is there to ask or nothing to pick.
    """
    if workflow_id is not None:
        return workflow_id
    if not is_interactive() or session.wants_json:
        raise UserError("which workflow? give its id as WORKFLOW_ID; 'torc workflows list' shows them")
    owner = user or session.user
    found = session.client.find(WorkflowRecord, user=owner, is_archived=archived)
    if not found:
        kind = "archived workflows" if archived else "workflows"
        raise UserError(f"{owner} has no {kind}; give an id, or create one with 'torc workflows create SPEC'")
    print_table([("ID", "id"), ("Name", "name"), ("Description", "description")], found)
    known = {workflow.id for workflow in found}
    while (answer := typer.prompt("Workflow ID", type=int)) not in known:
        print(f"{answer} is not in the list", file=sys.stderr)
    return int(answer)
