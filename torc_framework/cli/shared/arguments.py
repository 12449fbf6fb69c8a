"""Arguments and options that several commands take, and the questions that replace an argument that is missing."""

import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated, Any

import typer

from torc_framework.cli.shared import completion
from torc_framework.cli.shared.help_pages import UNIT_PLACEHOLDERS
from torc_framework.cli.shared.output import print_table
from torc_framework.cli.shared.session import Session
from torc_framework.errors import UserError
from torc_framework.models.settings import setting_entries
from torc_framework.text.quantities import setting_text

if TYPE_CHECKING:
    from torc_framework.client import TorcClient
    from torc_framework.models.records import JobRecord

WorkflowId = Annotated[
    int | None,
    typer.Argument(
        metavar="[WORKFLOW_ID]", help="The workflow; asked for if left out.", autocompletion=completion.workflow_ids
    ),
]
SpecOrId = Annotated[
    str,
    typer.Argument(
        metavar="SPEC|ID", help="A spec file, or the id of a workflow.", autocompletion=completion.spec_or_id
    ),
]
SkipChecks = Annotated[bool, typer.Option("--skip-checks", help="Skip the checks of scheduler nodes.")]
NoPrompts = Annotated[bool, typer.Option("--no-prompts", "--yes", "-y", help="Do not ask; the answer is yes.")]
RecordId = Annotated[int, typer.Argument(metavar="ID", help="Its id.")]
Force = Annotated[bool, typer.Option("--force", help="Also pending and running jobs: their runners stop them.")]
Limit = Annotated[int, typer.Option("--limit", "-l", min=0, help="Most records to return; 0 is all.")]
Offset = Annotated[int, typer.Option("--offset", min=0, help="Records to skip.")]
SortBy = Annotated[str | None, typer.Option("--sort-by", metavar="FIELD", help="Field to sort by.")]
ReverseSort = Annotated[bool, typer.Option("--reverse-sort", help="Sort from high to low.")]
User = Annotated[str | None, typer.Option("--user", "-u", help="Owner (default: you).")]


def option_of_setting(section: type[Any], name: str, *short: str, **facts: Any) -> Any:
    """Return the option of a command that overrides a setting of the configuration.

    Help, unit, least value and default are those of the setting's declaration.
    """
    (entry,) = (each for each in setting_entries(section) if each.path == (name,))
    flag = "--" + name.replace("_", "-")
    flags = f"{flag}/--no-{flag[2:]}" if entry.kind is bool else flag
    if entry.facts.unit in UNIT_PLACEHOLDERS:
        facts.setdefault("metavar", UNIT_PLACEHOLDERS[entry.facts.unit])
    has_default = entry.default is not None and entry.kind is not bool
    default = setting_text(entry.default, entry.facts.unit) if has_default else False
    return typer.Option(flags, *short, min=entry.facts.low, help=entry.facts.doc, show_default=default, **facts)


def parse_ids(texts: Sequence[str] | None, flag: str) -> list[int] | None:
    """Return the ids of an option that may be repeated and whose values may be lists such as ``1,2``."""
    if not texts:
        return None
    try:
        return [int(part) for text in texts for part in text.split(",")]
    except ValueError:
        raise UserError(f"{flag} is {','.join(texts)!r}; expected ids such as 1,2,3") from None


def is_interactive() -> bool:
    """Return whether standard input and standard output are terminals."""
    return sys.stdin.isatty() and sys.stdout.isatty()


def confirm(question: str, *, assume_yes: bool) -> None:
    """Ask a question at the terminal; without a terminal the answer is yes.

    Raises:
        UserError: the answer was no.
    """
    if assume_yes or not is_interactive():
        return
    if not typer.confirm(question):
        raise UserError("nothing was changed")


def job_of_workflow(client: "TorcClient", job_id: int, workflow_id: int | None) -> "JobRecord":
    """Return a job.

    Raises:
        ApiError: there is no such job.
        UserError: a workflow was named, and the job is in another one.
    """
    from torc_framework.models.records import JobRecord

    job = client.get(JobRecord, job_id)
    if workflow_id not in (None, job.workflow_id):
        raise UserError(f"job {job_id} is in workflow {job.workflow_id}, not in {workflow_id}")
    return job


def pick_workflow(session: Session, workflow_id: int | None, user: str | None = None, *, archived: bool = False) -> int:
    """Return the workflow that was named, or the one that the user picks from a list.

    Args:
        user: Whose workflows are listed; by default the user's own.
        archived: List the archived ones instead of the others.

    Raises:
        UserError: no workflow was named, and there is no terminal to ask at or no workflow to pick.
    """
    from torc_framework.models.records import WorkflowRecord

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
