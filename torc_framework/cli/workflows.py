"""``torc workflows``: create, inspect, run and delete workflows."""

from pathlib import Path
from typing import Annotated, Any

import typer

from torc_framework.cli import run as run_command
from torc_framework.cli.app import App
from torc_framework.cli.common import (
    Limit,
    Offset,
    ReverseSort,
    SortBy,
    User,
    WorkflowId,
    changes,
    confirm,
    pick_workflow,
    session_of,
    show_many,
    show_one,
)
from torc_framework.cli.executor_flags import ExecutorCommand
from torc_framework.cli.output import Column, print_json, print_pairs
from torc_framework.errors import ExitStatus, UserError
from torc_framework.models.records import WorkflowRecord

app = App("Create, inspect, run and delete workflows.")

COLUMNS: list[Column] = [
    ("ID", "id"),
    ("User", "user"),
    ("Name", "name"),
    ("Description", "description"),
    ("Timestamp", "timestamp"),
]

_Force = Annotated[bool, typer.Option("--force", help="Also with input files or user data missing.")]
_NoPrompts = Annotated[bool, typer.Option("--no-prompts", help="Do not ask.")]


@app.command("create")
def create(
    ctx: typer.Context,
    file: Annotated[Path, typer.Argument(metavar="FILE", help="Spec file: YAML, JSON, JSON5 or KDL.")],
    *,
    user: User = None,
    no_resource_monitoring: Annotated[bool, typer.Option("--no-resource-monitoring", help="No samples.")] = False,
    skip_checks: Annotated[bool, typer.Option("--skip-checks", help="Skip the checks of scheduler nodes.")] = False,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Only check, and show what would be created.")] = False,
) -> None:
    """Create a workflow from a spec file."""
    from torc_framework import spec
    from torc_framework.cli import specs

    session = session_of(ctx)
    if not dry_run:
        session.start_server()  # it boots while the spec is read
    options = specs.load_options(session, file, user=user, skip_checks=skip_checks)
    if dry_run:
        values, text = spec.dry_run(file, options=options)
        print_json(values) if session.wants_json else print(text)
        if not values["valid"]:
            raise typer.Exit(int(ExitStatus.FAILED))
        return
    loaded = spec.load_plan(file, options=options)
    if no_resource_monitoring:
        loaded.plan.workflow.resource_monitor_config = '{"enabled":false}'
    specs.stamp_files(loaded.plan)
    stored = session.client.create_from_plan(loaded.plan)
    for warning in loaded.warnings:
        typer.echo(f"Warning: {warning}", err=True)
    plan = loaded.plan
    counts = {"job_count": len(plan.jobs), "file_count": len(plan.files), "user_data_count": len(plan.user_data)}
    if session.wants_json:
        head = {"id": stored.id, "workflow_id": stored.id, "name": plan.workflow.name, "user": plan.workflow.user}
        print_json({**head, "run_id": stored.run_id, **counts, "warnings": loaded.warnings})
        return
    shown = {"Name": plan.workflow.name, "User": plan.workflow.user, "Jobs": len(plan.jobs)}
    print_pairs(f"Created workflow with ID: {stored.id}", {**shown, "Files": len(plan.files) or None})


@app.command("new")
def new(
    ctx: typer.Context,
    *,
    name: Annotated[str, typer.Option("--name", "-n", help="Name.")],
    description: Annotated[str | None, typer.Option("--description", "-d", help="Description.")] = None,
    user: User = None,
) -> None:
    """Create an empty workflow."""
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
    all_users: Annotated[bool, typer.Option("--all-users", help="Workflows of everybody.")] = False,
    archived_only: Annotated[bool, typer.Option("--archived-only", help="Only archived ones.")] = False,
    include_archived: Annotated[bool, typer.Option("--include-archived", help="Archived ones too.")] = False,
    limit: Limit = 10_000,
    offset: Offset = 0,
    sort_by: SortBy = None,
    reverse_sort: ReverseSort = False,
) -> None:
    """List workflows: your own, unless told otherwise."""
    session = session_of(ctx)
    archived = {(True, False): True, (False, False): False}.get((archived_only, include_archived))
    found = session.client.find(
        WorkflowRecord,
        user=None if all_users else user or session.user,
        is_archived=archived,
        limit=limit,
        offset=offset,
        sort_by=sort_by,
        reverse_sort=reverse_sort or None,
    )
    show_many(session, None, "workflows", COLUMNS, found)


@app.command("get")
def get(ctx: typer.Context, workflow_id: WorkflowId = None, user: User = None) -> None:
    """Show one workflow."""
    session = session_of(ctx)
    chosen = pick_workflow(session, workflow_id, user)
    show_one(session, f"Workflow {chosen}", session.client.get(WorkflowRecord, chosen))


@app.command("status")
def status(ctx: typer.Context, workflow_id: WorkflowId = None, user: User = None) -> None:
    """Show where a workflow stands: its run, and its jobs by status."""
    session = session_of(ctx)
    chosen = pick_workflow(session, workflow_id, user)
    record, jobs = session.client.workflow_status(chosen), session.client.job_counts(chosen)
    is_complete = session.client.is_complete(chosen).is_complete
    word = _word(is_canceled=record.is_canceled, is_complete=is_complete, counts=jobs.counts)
    if session.wants_json:
        show_one(session, "", record, status=word, job_count=jobs.total, job_counts=jobs.counts)
        return
    shown = {"Status": word, "Run ID": record.run_id, "Canceled": record.is_canceled, "Archived": record.is_archived}
    print_pairs(f"Workflow {chosen}:", {**shown, "Jobs": jobs.total})
    for label, count in jobs.counts.items():
        print(f"    {label}: {count}")


def _word(*, is_canceled: bool, is_complete: bool, counts: dict[str, int]) -> str:
    """Return the state of a workflow in one word."""
    if is_canceled:
        return "canceled"
    if not any(count for label, count in counts.items() if label not in ("uninitialized", "disabled")):
        return "uninitialized"
    if is_complete:
        troubled = any(counts.get(label) for label in ("failed", "terminated", "canceled"))
        return "failed" if troubled else "completed"
    return "running" if counts.get("running") or counts.get("pending") else "ready"


@app.command("update")
def update(
    ctx: typer.Context,
    workflow_id: WorkflowId = None,
    *,
    name: Annotated[str | None, typer.Option("--name", "-n", help="New name.")] = None,
    description: Annotated[str | None, typer.Option("--description", "-d", help="New description.")] = None,
    owner_user: Annotated[str | None, typer.Option("--owner-user", help="New owner.")] = None,
) -> None:
    """Change a workflow."""
    session = session_of(ctx)
    wanted = changes(name=name, description=description, owner_user=owner_user)
    if "owner_user" in wanted:
        wanted["user"] = wanted.pop("owner_user")
    chosen = pick_workflow(session, workflow_id)
    show_one(session, f"Workflow {chosen}", session.client.update(WorkflowRecord, chosen, wanted))


@app.command("delete")
def delete(
    ctx: typer.Context,
    ids: Annotated[
        list[int] | None, typer.Argument(metavar="[ID]...", help="Workflows; asked for if left out.")
    ] = None,
    no_prompts: _NoPrompts = False,
    force: Annotated[bool, typer.Option("--force", help="Also workflows of other people.")] = False,
) -> None:
    """Delete workflows with everything that belongs to them."""
    session = session_of(ctx)
    wanted = [session.client.get(WorkflowRecord, id_) for id_ in ids or [pick_workflow(session, None)]]
    for workflow in wanted:
        if workflow.user != session.user and not force:
            raise UserError(f"workflow {workflow.id} belongs to {workflow.user}; --force deletes it all the same")
    names = ", ".join(f"{workflow.id} ({workflow.name})" for workflow in wanted)
    confirm(f"Delete workflow {names} with all jobs and results?", assume_yes=no_prompts or session.wants_json)
    gone = [session.client.delete(WorkflowRecord, workflow.id or 0) for workflow in wanted]
    if session.wants_json:
        print_json(gone[0] if len(gone) == 1 else gone)
        return
    for workflow in gone:
        print(f"Deleted workflow {workflow.id} ({workflow.name})")


@app.command("initialize")
def initialize(
    ctx: typer.Context,
    workflow_id: WorkflowId = None,
    *,
    force: _Force = False,
    no_prompts: _NoPrompts = False,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Only say what is missing.")] = False,
) -> None:
    """Begin a new run: every job is reset, those without unfinished dependencies become ready."""
    from torc_framework.cli.initialize import begin_run, refuse_if_missing

    session = session_of(ctx)
    chosen = pick_workflow(session, workflow_id)
    if dry_run:
        refuse_if_missing(session.client, chosen)
        _say(session, f"Workflow {chosen} can be initialized", workflow_id=chosen, dry_run=True)
        return
    if not session.client.is_uninitialized(chosen):
        confirm(f"Reset all jobs of workflow {chosen}?", assume_yes=no_prompts or session.wants_json)
    record = begin_run(session.client, chosen, force=force)
    _say(session, f"Initialized workflow {chosen}, run {record.run_id}", workflow_id=chosen, run_id=record.run_id)


app.command("initialize-jobs", hidden=True)(initialize)


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
    """Run a workflow on this machine."""
    session = session_of(ctx)
    given = {
        "poll_interval_s": poll_interval,
        "max_parallel_jobs": max_parallel_jobs,
        "output_dir": output_dir,
        "executor": executor,
    }
    run_command.run_existing(session, pick_workflow(session, workflow_id), given)


@app.command("cancel")
def cancel(ctx: typer.Context, workflow_id: WorkflowId = None) -> None:
    """Cancel a workflow: its runners stop what is running, nothing more is started."""
    session = session_of(ctx)
    chosen = pick_workflow(session, workflow_id)
    session.client.cancel(chosen)
    _say(session, f"Canceled workflow {chosen}", workflow_id=chosen, is_canceled=True)


@app.command("is-complete")
def is_complete(ctx: typer.Context, workflow_id: WorkflowId = None) -> None:
    """Say whether a workflow is complete."""
    session = session_of(ctx)
    chosen = pick_workflow(session, workflow_id)
    state = session.client.is_complete(chosen)
    if session.wants_json:
        print_json(state)
        return
    shown = {
        "Is Complete": state.is_complete,
        "Is Canceled": state.is_canceled,
        "Needs Completion Script": state.needs_to_run_completion_script,
    }
    print_pairs(f"Workflow {chosen} completion status:", shown)


@app.command("execution-plan")
def execution_plan(
    ctx: typer.Context,
    workflow: Annotated[str, typer.Argument(metavar="SPEC|ID", help="A spec file, or the id of a workflow.")],
) -> None:
    """Show in which stages a workflow's jobs become ready."""
    from torc_framework.cli.execution_plan import show_plan

    show_plan(session_of(ctx), workflow)


def _say(session: Any, text: str, **values: Any) -> None:
    """Print a sentence, or its values as JSON."""
    if session.wants_json:
        print_json(values)
    else:
        print(text)
