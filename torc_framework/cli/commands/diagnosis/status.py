"""``torc status``: is it well, how far is it, when is it done, what now; of one workflow or of all of the user's."""

import time
from typing import TYPE_CHECKING, Annotated, Final

import typer

from torc_framework.cli.commands.diagnosis.status_text import status_text
from torc_framework.cli.shared import completion
from torc_framework.cli.shared.app import single_command
from torc_framework.cli.shared.arguments import User
from torc_framework.cli.shared.listing import omitted_text
from torc_framework.cli.shared.output import print_json
from torc_framework.cli.shared.session import Session, session_of
from torc_framework.cli.shared.workflow_list import workflow_list
from torc_framework.errors import ExitStatus
from torc_framework.models.workflow_states import CANCELED, FAILED, INTERRUPTED, PENDING_FAILED, RUNNING, SILENT
from torc_framework.reports.job_texts import last_line, log_finder
from torc_framework.reports.status_document import overview_values, status_document
from torc_framework.text.terminal import print_line

if TYPE_CHECKING:
    from torc_framework.models.progress import WorkflowOverview

MOST_WORKFLOWS: Final = 30
"""Most workflows that the text shows; JSON has all."""
_NEEDS_ACTION: Final = (PENDING_FAILED, FAILED, INTERRUPTED, CANCELED, SILENT)
"""States that need an action of the user."""
_ENDED_WITHOUT_SUCCESS: Final = (FAILED, CANCELED, PENDING_FAILED)


def status(
    ctx: typer.Context,
    workflow_id: Annotated[
        int | None,
        typer.Argument(
            metavar="[ID]", help="The workflow (default: all of yours).", autocompletion=completion.workflow_ids
        ),
    ] = None,
    *,
    user: User = None,
    exit_status: Annotated[
        bool, typer.Option("--exit-status", help="Exit with 1 if a workflow failed or cannot go on.")
    ] = False,
) -> None:
    """Show how far a workflow is, what failed, when it is done, and what to do next.

    Without an id, a line for each of your workflows: those that need an action of yours first, then those
    that run, then the others, newest first.

    Examples:
        torc status 12
        torc status
        torc status 12 --exit-status -f json
    """
    session = session_of(ctx)
    is_well = _show_all(session, user or session.user) if workflow_id is None else _show_one(session, workflow_id)
    if exit_status and not is_well:
        raise typer.Exit(int(ExitStatus.FAILED))


app = single_command(status)


# --- one workflow ---------------------------------------------------------------------------------


def _show_one(session: Session, workflow_id: int) -> bool:
    """Print the status of a workflow; return whether it neither failed nor needs a person to go on."""
    from torc_framework.next_step import next_step
    from torc_framework.reports.status import read_status

    report = read_status(session.client, workflow_id)
    step = next_step(session.client, report.progress, session.executors)
    find_logs = log_finder(session.client)
    lines = {each.job.id or 0: last_line(find_logs(each.result)) for each in report.failed if each.result is not None}
    if session.wants_json:
        print_json(status_document(report, lines, None if step is None else step.as_dict()))
    else:
        print(status_text(report, lines, step), end="")
    is_stuck = step is not None and step.command.startswith("torc explain")
    return report.state not in _ENDED_WITHOUT_SUCCESS and not is_stuck


# --- all workflows --------------------------------------------------------------------------------


def _show_all(session: Session, user: str) -> bool:
    """Print a line for each workflow of a user; return whether none failed or waits for a person."""
    from torc_framework.next_step import next_step

    found, _ = session.client.overviews({"user": user, "is_archived": False})
    found.sort(key=_urgency)
    needy = next((each for each in found if each.state in _NEEDS_ACTION), None)
    step = None if needy is None else next_step(session.client, needy.id, session.executors)
    if session.wants_json:
        print_json(
            {
                "workflows": [overview_values(each) for each in found],
                "next": step and step.as_dict(),
                "next_command": step and step.command,
            }
        )
    elif not found:
        print_line(f"{user} has no workflows.")
        print("Next: torc run SPEC")
    else:
        print(workflow_list(found[:MOST_WORKFLOWS], time.time()), end="")
        print(omitted_text(min(len(found), MOST_WORKFLOWS), len(found), "torc workflows list shows all"), end="")
        if step is not None:
            print(f"\n{step.lines()}", end="")
    return not any(each.state in _ENDED_WITHOUT_SUCCESS for each in found)


def _urgency(overview: "WorkflowOverview") -> tuple[int, int]:
    """Return the place in the list: those that need an action, those that run, the others; each newest first."""
    return (0 if overview.state in _NEEDS_ACTION else 1 if overview.state == RUNNING else 2), -overview.id
