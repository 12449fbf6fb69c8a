"""``torc workflows cancel|sync-status|list-actions``: cancels a workflow, fails orphaned jobs, lists actions."""

from typing import TYPE_CHECKING, Annotated, Any, Final

import attrs
import typer

from torc_framework.cli.shared.app import CommandGroup
from torc_framework.cli.shared.arguments import User, WorkflowId, pick_workflow
from torc_framework.cli.shared.output import Column, print_json
from torc_framework.cli.shared.record_output import show_many
from torc_framework.cli.shared.session import session_of
from torc_framework.text.terminal import print_line

if TYPE_CHECKING:
    from torc_framework.cli.shared.session import Session
    from torc_framework.models.records import WorkflowActionRecord


def add(app: CommandGroup) -> None:
    """Add the commands of this module."""
    app.command("cancel")(cancel)
    app.command("sync-status")(sync_status)
    app.command("list-actions")(list_actions)


def cancel(ctx: typer.Context, workflow_id: WorkflowId = None) -> None:
    """Cancel a workflow: its runners stop its jobs and start no others, and its allocations are released.

    'reinitialize' makes it ready to run again; completed jobs stay completed.

    Examples:
        torc workflows cancel 12
    """
    session = session_of(ctx)
    chosen = pick_workflow(session, workflow_id)
    session.client.cancel(chosen)
    released, notes = release_allocations(session, chosen)
    if session.wants_json:
        values = {"workflow_id": chosen, "is_canceled": True, "released_allocations": released, "notes": notes}
        outcome = {"status": "partial_success" if notes else "success", "errors": notes or None}
        print_json({**values, **outcome, "canceled_slurm_jobs": released})
        return
    print(f"Canceled workflow {chosen}")
    if released:
        print(f"  {len(released)} allocation(s) released")
    for note in notes:
        typer.echo(f"Warning: {note}", err=True)


def release_allocations(session: "Session", workflow_id: int) -> tuple[list[int | str], list[str]]:
    """Release a workflow's allocations; return their ids in the batch system, and notes on those that remain.

    Allocations of submissions that were interrupted are searched for first.
    """
    from torc_framework.allocations.records import open_records
    from torc_framework.allocations.release import release_all

    client = session.client
    if not open_records(client, workflow_id):
        return [], []
    plugins, options = _executors(session, skip_untrusted=True)
    done = release_all(client, plugins, options, workflow_id)
    return [node.scheduler_id or node.batch_id for node in done.released], done.notes


def _executors(session: "Session", *, skip_untrusted: bool = False) -> tuple[Any, Any]:
    """Return the plugins, and the options of their executors."""
    from torc_framework.cli.shared.plugin_flags import executor_options

    plugins = session.plugins(skip_untrusted=skip_untrusted)
    return plugins, executor_options(session, plugins, "")


def sync_status(
    ctx: typer.Context,
    workflow_id: WorkflowId = None,
    *,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Only print what was found.")] = False,
) -> None:
    """Fail running jobs whose runner is gone.

    A runner is gone if it reported its end, is a dead process of this machine, or ran in an allocation
    that the batch system has ended. Jobs that it had claimed and not started become ready again. Endings
    that a dead runner of this machine recorded are reported. Processes that it left running are taken
    over by the next 'torc run' on this machine.

    Examples:
        torc workflows sync-status 12 --dry-run
        torc workflows sync-status 12
    """
    from torc_framework.recovery import orphans

    session = session_of(ctx)
    chosen = pick_workflow(session, workflow_id)
    plugins, options = _executors(session)
    found = orphans.sync_status(session.client, plugins, options, chosen, dry_run=dry_run)
    if session.wants_json:
        failed = sum(job.status == "failed" for job in found.jobs)
        print_json({**attrs.asdict(found), "jobs_failed": failed})
        return
    for note in found.notes:
        typer.echo(f"Warning: {note}", err=True)
    _show(found)


def _show(found: Any) -> None:
    if not (found.jobs or found.compute_node_ids or found.allocation_ids):
        print(f"Workflow {found.workflow_id}: nothing is orphaned")
        return
    print("Dry run, nothing was changed. Found:" if found.dry_run else "Cleaned up:")
    for count, what in (
        (len(found.jobs), "job(s) whose runner is gone"),
        (len(found.compute_node_ids), "runner(s) that are gone"),
        (len(found.allocation_ids), "allocation(s) that have ended"),
    ):
        if count:
            print(f"  - {count} {what}")
    for job in found.jobs:
        now = "" if found.dry_run else f"; it is {job.status} now"
        print_line(f"  - Job {job.job_id} ({job.job_name}): {job.reason}{now}")


def _state(action: "WorkflowActionRecord") -> str:
    """Return the state of an action in one word."""
    if action.error is not None:
        return "failed"
    if action.executed:
        return "executed"
    return "due" if action.trigger_count >= action.required_triggers else "waiting"


_ACTIONS: Final[list[Column]] = [
    ("ID", "id"),
    ("Trigger", "trigger_type"),
    ("Action", "action_type"),
    ("Status", _state),
    ("Triggers", lambda action: f"{action.trigger_count}/{action.required_triggers}"),
    ("Executed At", "executed_at"),
    ("Executed By", "executed_by"),
    ("Error", "error"),
]


def list_actions(ctx: typer.Context, workflow_id: WorkflowId = None, user: User = None) -> None:
    """List a workflow's actions: the trigger of each, and whether it was executed.

    Examples:
        torc workflows list-actions 12
    """
    session = session_of(ctx)
    chosen = pick_workflow(session, workflow_id, user)
    actions = session.client.actions(chosen)
    if session.wants_json:
        print_json({"actions": [{**attrs.asdict(action), "status": _state(action)} for action in actions]})
        return
    show_many(session, None, f"actions of workflow {chosen}", _ACTIONS, actions)
