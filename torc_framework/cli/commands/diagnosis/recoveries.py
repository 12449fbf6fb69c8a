"""``torc recoveries``: the list of recoveries of failed jobs."""

from typing import TYPE_CHECKING, Annotated, Final

import typer

from torc_framework.cli.shared.app import CommandGroup
from torc_framework.cli.shared.arguments import Limit, Offset, WorkflowId, pick_workflow
from torc_framework.cli.shared.output import Column
from torc_framework.cli.shared.record_commands import DEFAULT_LIMIT
from torc_framework.cli.shared.record_output import show_many
from torc_framework.cli.shared.session import session_of

if TYPE_CHECKING:
    from torc_framework.recovery.history import RecoveredJob

app = CommandGroup(
    "The ledger of recoveries: what failed, what it asked for then and since, who decided, whether it helped."
)


def _ending(each: "RecoveredJob") -> str:
    failed = each.failed
    return "" if failed is None else failed.exit_class or f"code {failed.return_code}"


RECOVERIES: Final[list[Column]] = [
    ("ID", lambda each: each.entry.id),
    ("Job ID", lambda each: each.entry.job_id),
    ("Name", lambda each: each.entry.job_name),
    ("Run", lambda each: f"{each.entry.run_id} -> {each.entry.new_run_id}"),
    ("Attempt", lambda each: each.entry.attempt_id),
    ("Ending", _ending),
    ("Request", lambda each: ", ".join(each.changes) or "as before"),
    ("By", lambda each: each.entry.decided_by),
    ("Since", lambda each: each.after.status if each.after else "not run yet"),
    ("When", lambda each: each.entry.recovered_at),
    ("Reason", lambda each: each.entry.reason),
]


@app.command("list")
def list_(
    ctx: typer.Context,
    workflow_id: WorkflowId = None,
    *,
    job_id: Annotated[int | None, typer.Option("--job-id", "--job", "-j", help="Only this job's.")] = None,
    limit: Limit = DEFAULT_LIMIT,
    offset: Offset = 0,
) -> None:
    """List the recoveries of failed jobs, oldest first.

    Each entry has the failed attempt and how it ended, the job's requirements before and after, the policy or person
    that decided and the time, and how the job ended in the run that followed. JSON also has evidence and confidence.

    Examples:
        torc recoveries list 12
        torc recoveries list 12 --job-id 345
    """
    from torc_framework.recovery.history import recovery_history

    session = session_of(ctx)
    chosen = pick_workflow(session, workflow_id)
    found = recovery_history(session.client, chosen, job_id)[offset : offset + limit]
    rows = [each.as_dict() for each in found] if session.wants_json else found
    show_many(session, "recoveries", f"recoveries of workflow {chosen}", RECOVERIES, rows)
