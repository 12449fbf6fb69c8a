"""``torc workflows``: creates, shows, changes, runs and deletes workflows; the modules beside it add more commands."""

import sys
import time
from pathlib import Path
from typing import Annotated, Any, Final

import typer

from torc_framework.cli.commands.running import run as run_command
from torc_framework.cli.commands.running import submit as submit_command
from torc_framework.cli.commands.workflows import cancel_and_sync, export_import, initialization
from torc_framework.cli.shared.app import CommandGroup
from torc_framework.cli.shared.arguments import (
    Limit,
    NoPrompts,
    Offset,
    ReverseSort,
    SkipChecks,
    SortBy,
    User,
    WorkflowId,
    confirm,
    pick_workflow,
)
from torc_framework.cli.shared.listing import omitted_text
from torc_framework.cli.shared.output import print_json, print_paged, print_pairs
from torc_framework.cli.shared.plugin_flags import ExecutorCommand
from torc_framework.cli.shared.record_options import (
    command_options,
    make_command,
    parameter,
    parse_truth,
    record_option,
)
from torc_framework.cli.shared.record_output import show_one
from torc_framework.cli.shared.session import Session, session_of
from torc_framework.cli.shared.workflow_list import workflow_list
from torc_framework.errors import UserError
from torc_framework.models.records import WorkflowRecord
from torc_framework.models.statuses import LIVE
from torc_framework.text.terminal import print_line

app = CommandGroup(
    "Create, inspect, run and delete workflows.",
    sections={
        "Create": ("create", "new", "import"),
        "Ask": ("list", "status", "get", "is-complete", "execution-plan", "list-actions"),
        "Run": ("run", "submit", "cancel", "initialize", "reinitialize", "reset-status", "sync-status"),
        "Change": ("update", "archive", "export", "delete"),
    },
)


@app.command("create")
def create(
    ctx: typer.Context,
    file: Annotated[Path, typer.Argument(metavar="FILE", help="Spec file: YAML, JSON, JSON5 or KDL.")],
    *,
    user: User = None,
    no_resource_monitoring: Annotated[bool, typer.Option("--no-resource-monitoring", help="No samples.")] = False,
    skip_checks: SkipChecks = False,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Only check, and show what would be created.")] = False,
) -> None:
    """Create a workflow from a spec file.

    Examples:
        torc workflows create workflow.yaml
        torc workflows create workflow.yaml --dry-run
    """
    from torc_framework.cli.commands.running.spec_loading import load_options
    from torc_framework.cli.commands.running.workflow_creation import create_workflow, show_dry_run

    session = session_of(ctx)
    if not dry_run:
        session.start_server()  # it starts up while the spec is read
    options = load_options(session, file, user=user, skip_checks=skip_checks)
    if dry_run:
        show_dry_run(session, file, options)
        return
    created = create_workflow(session, file, options, no_resource_monitoring=no_resource_monitoring)
    print_json(created.as_dict()) if session.wants_json else created.print()


@app.command("new")
def new(
    ctx: typer.Context,
    *,
    name: Annotated[str, typer.Option("--name", "-n", help="Name.")],
    description: Annotated[str | None, typer.Option("--description", "-d", help="Description.")] = None,
    user: User = None,
) -> None:
    """Create an empty workflow.

    Examples:
        torc workflows new --name sweep
        torc workflows new --name sweep --description 'Learning rates'
    """
    session = session_of(ctx)
    stored = session.client.create(WorkflowRecord(name=name, description=description, user=user or session.user))
    if session.wants_json:
        show_one(session, "Workflow", stored)
        return
    shown = {"ID": stored.id, "Name": stored.name, "User": stored.user, "Description": stored.description}
    print_pairs("Successfully created workflow:", shown)


@app.command("list")
def list_(
    ctx: typer.Context,
    *,
    user: User = None,
    all_users: Annotated[bool, typer.Option("--all-users", help="Workflows of all users.")] = False,
    archived_only: Annotated[bool, typer.Option("--archived-only", help="Only archived ones.")] = False,
    include_archived: Annotated[bool, typer.Option("--include-archived", help="Archived ones too.")] = False,
    limit: Limit = 10_000,
    offset: Offset = 0,
    sort_by: SortBy = None,
    reverse_sort: ReverseSort = False,
) -> None:
    """List workflows; by default your own.

    Examples:
        torc workflows list
        torc workflows list --all-users --limit 20
        torc workflows list --sort-by name -f json
    """
    session = session_of(ctx)
    archived = {(True, False): True, (False, False): False}.get((archived_only, include_archived))
    filters = {
        "user": None if all_users else user or session.user,
        "is_archived": archived,
        "sort_by": sort_by,
        "reverse_sort": reverse_sort or None,
    }
    found, total = session.client.overviews(filters, limit=limit or None, offset=offset)
    if session.wants_json:
        from torc_framework.reports.status_document import overview_values

        print_json([overview_values(each) for each in found])
        return
    if not found:
        print("No workflows found.")
        return
    text = workflow_list(found, time.time())
    if limit:
        text += omitted_text(len(found), total - offset)
    print_paged(text) if session.wants_pager else sys.stdout.write(text)


@app.command("get")
def get(ctx: typer.Context, workflow_id: WorkflowId = None, user: User = None) -> None:
    """Show one workflow.

    Examples:
        torc workflows get 12
        torc workflows get 12 -f json
    """
    session = session_of(ctx)
    chosen = pick_workflow(session, workflow_id, user)
    show_one(session, f"Workflow {chosen}", session.client.get(WorkflowRecord, chosen))


@app.command("status")
def status(ctx: typer.Context, workflow_id: WorkflowId = None, user: User = None) -> None:
    """Show the state of a workflow: its run, and its jobs by status.

    Examples:
        torc workflows status 12
    """
    from torc_framework.next_step import next_step

    session = session_of(ctx)
    chosen = pick_workflow(session, workflow_id, user)
    record, jobs = session.client.workflow_status(chosen), session.client.job_counts(chosen)
    is_complete = session.client.is_complete(chosen).is_complete
    word = _state_word(is_canceled=record.is_canceled, is_complete=is_complete, counts=jobs.counts)
    step = next_step(session.client, chosen, session.executors)
    if session.wants_json:
        more = {
            "next_command": step and step.command,
            "job_count": jobs.total,
            "job_counts": jobs.counts,
            "interrupted_jobs": jobs.interrupted,
        }
        show_one(session, "", record, status=word, **more)
        return
    shown = {"Status": word, "Run ID": record.run_id, "Canceled": record.is_canceled, "Archived": record.is_archived}
    print_pairs(f"Workflow {chosen}:", {**shown, "Jobs": jobs.total})
    for label, count in jobs.counts.items():
        print(f"    {label}: {count}")
    if step is not None:
        print(step.lines(), end="")


def _state_word(*, is_canceled: bool, is_complete: bool, counts: dict[str, int]) -> str:
    """Return the state of a workflow in one word."""
    if is_canceled:
        return "canceled"
    if not any(count for label, count in counts.items() if label not in ("uninitialized", "disabled")):
        return "uninitialized"
    if is_complete:
        troubled = any(counts.get(label) for label in ("failed", "terminated", "canceled"))
        return "failed" if troubled else "completed"
    return "running" if counts.get("running") or counts.get("pending") else "ready"


_UPDATES: Final = (
    record_option("name", "--name", "-n"),
    record_option("description", "--description", "-d"),
    record_option("user", "--owner-user"),
    record_option("project"),
    record_option("metadata", metavar="JSON"),
    record_option("jobs_sort_method"),
    record_option("shell"),
    record_option("stdio"),
    record_option("delete_stdio_on_success"),
    record_option("use_pending_failed", kind=str, read=parse_truth, metavar="true|false"),
    record_option("resource_monitor_config", metavar="JSON"),
    record_option("slurm_defaults", metavar="JSON"),
    record_option("compute_node_expiration_buffer_seconds", low=0),
    record_option("compute_node_wait_for_new_jobs_seconds", low=0),
    record_option("compute_node_ignore_workflow_completion", kind=str, read=parse_truth, metavar="true|false"),
    record_option("compute_node_wait_for_healthy_database_minutes", low=0),
    record_option("compute_node_min_time_for_new_jobs_seconds", low=0),
)
_UPDATE_ENTRIES: Final = command_options(WorkflowRecord, _UPDATES, is_new=False)


def _update(ctx: typer.Context, workflow_id: int | None, **typed: Any) -> None:
    session = session_of(ctx)
    values = {name: entry.value(typed[name]) for name, entry in _UPDATE_ENTRIES.items()}
    changed = {name: value for name, value in values.items() if value is not None}
    if not changed:
        raise UserError(f"nothing to change; give one of {', '.join(each.flag for each in _UPDATES)}")
    chosen = pick_workflow(session, workflow_id)
    show_one(session, f"Workflow {chosen}", session.client.update(WorkflowRecord, chosen, changed))


app.command("update")(
    make_command(
        _update,
        "Change a workflow: its name, owner, and what it asks of runners.\n\n"
        "Examples:\n    torc workflows update 12 --name nightly --description 'All basins'",
        [parameter("workflow_id", WorkflowId, None), *(entry.parameter for entry in _UPDATE_ENTRIES.values())],
    )
)


@app.command("archive")
def archive(
    ctx: typer.Context,
    is_archived: Annotated[str, typer.Argument(metavar="true|false", help="Archive, or take out of the archive.")],
    ids: Annotated[
        list[int] | None, typer.Argument(metavar="[ID]...", help="Workflows; asked for if left out.")
    ] = None,
) -> None:
    """Archive workflows, or take them out again.

    Archived workflows are left out of lists and cannot be run or reset. All their records are kept.

    Examples:
        torc workflows archive true 12 13
        torc workflows archive false 12
    """
    session = session_of(ctx)
    wanted = parse_truth(is_archived, "the first argument")
    chosen = list(dict.fromkeys(ids or [pick_workflow(session, None, archived=not wanted)]))
    states = [session.client.workflow_status(workflow_id) for workflow_id in chosen]
    for workflow_id, state in zip(chosen, states, strict=True):
        state.is_archived = wanted
        session.client.put_workflow_status(state, workflow_id)
    if session.wants_json:
        values = {"status": "success", "is_archived": wanted, "updated_workflows": chosen, "workflow_ids": chosen}
        print_json(values)
        return
    for workflow_id in chosen:
        print(f"Successfully {'' if wanted else 'un'}archived workflow {workflow_id}")


@app.command("delete")
def delete(
    ctx: typer.Context,
    ids: Annotated[
        list[int] | None, typer.Argument(metavar="[ID]...", help="Workflows; asked for if left out.")
    ] = None,
    no_prompts: NoPrompts = False,
    force: Annotated[
        bool,
        typer.Option(
            "--force",
            help="Also workflows of other users, workflows whose jobs run (the jobs are stopped), and workflows whose "
            "allocations cannot be released.",
        ),
    ] = False,
) -> None:
    """Delete workflows with all their records; if one of them does not exist, none is deleted.

    Their allocations are released first.

    Examples:
        torc workflows delete 12
        torc workflows delete 12 13 --yes
    """
    session = session_of(ctx)
    chosen = dict.fromkeys(ids or [pick_workflow(session, None)])
    wanted = [session.client.get(WorkflowRecord, workflow_id) for workflow_id in chosen]
    for workflow in wanted:
        if workflow.user != session.user and not force:
            raise UserError(f"workflow {workflow.id} belongs to {workflow.user}; --force deletes it all the same")
    names = ", ".join(f"{workflow.id} ({workflow.name})" for workflow in wanted)
    confirm(f"Delete workflow {names} with all jobs and results?", assume_yes=no_prompts or session.wants_json)
    for workflow in wanted:
        if force or not _has_jobs_under_way(session, workflow.id or 0):  # else the server refuses the deletion
            _release_before_deletion(session, workflow.id or 0, force=force)
    gone = [session.client.delete(WorkflowRecord, workflow.id or 0, force=force) for workflow in wanted]
    if session.wants_json:
        print_json(gone[0] if len(gone) == 1 else gone)
        return
    for workflow in gone:
        print_line(f"Deleted workflow {workflow.id} ({workflow.name})")


def _has_jobs_under_way(session: Session, workflow_id: int) -> bool:
    counts = session.client.job_counts(workflow_id).counts
    return any(counts.get(status.label) for status in LIVE)


def _release_before_deletion(session: Session, workflow_id: int, *, force: bool) -> None:
    """Release the allocations of a workflow that is to be deleted, since their records are deleted with it.

    Raises:
        UserError: an allocation cannot be released, without ``force``.
    """
    _, notes = cancel_and_sync.release_allocations(session, workflow_id)
    if notes and not force:
        raise UserError(f"{'; '.join(notes)}; --force deletes workflow {workflow_id} all the same")
    for note in notes:
        typer.echo(f"Warning: {note}", err=True)


initialization.add(app)


@app.command("run", cls=ExecutorCommand)
def run(
    ctx: typer.Context,
    workflow_id: WorkflowId = None,
    *,
    poll_interval: run_command.PollInterval = None,
    max_parallel_jobs: run_command.MaxParallelJobs = None,
    output_dir: run_command.OutputDir = None,
    executor: run_command.ExecutorName = None,
) -> None:
    """Run a workflow on this machine.

    Examples:
        torc workflows run 12
        torc workflows run 12 --max-parallel-jobs 4
    """
    session = session_of(ctx)
    given = {
        "poll_interval_s": poll_interval,
        "max_parallel_jobs": max_parallel_jobs,
        "output_dir": output_dir,
        "executor": executor,
    }
    run_command.run_existing(session, pick_workflow(session, workflow_id), given)


@app.command("submit")
def submit(
    ctx: typer.Context,
    workflow_id: WorkflowId = None,
    *,
    ignore_missing_data: Annotated[
        bool,
        typer.Option("--force", "--ignore-missing-data", "-i", help="Also with input files or user data missing."),
    ] = False,
    output_dir: submit_command.OutputDir = None,
) -> None:
    """Submit a workflow to a batch system: initialize it if necessary, and ask for the nodes it begins with.

    Examples:
        torc workflows submit 12
    """
    session = session_of(ctx)
    submit_command.submit_existing(
        session, pick_workflow(session, workflow_id), output_dir=output_dir, ignore_missing_data=ignore_missing_data
    )


cancel_and_sync.add(app)
export_import.add(app)


@app.command("execution-plan")
def execution_plan(
    ctx: typer.Context,
    workflow: Annotated[str, typer.Argument(metavar="SPEC|ID", help="A spec file, or the id of a workflow.")],
) -> None:
    """Show the stages in which a workflow's jobs become ready.

    Examples:
        torc workflows execution-plan workflow.yaml
        torc workflows execution-plan 12 -f json
    """
    from torc_framework.cli.commands.workflows.execution_plan import show_plan

    show_plan(session_of(ctx), workflow)
