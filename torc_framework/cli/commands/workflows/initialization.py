"""``torc workflows initialize|reinitialize|reset-status|is-complete``: begins runs and resets jobs."""

from typing import TYPE_CHECKING, Annotated, Final

import typer

from torc_framework.cli.shared.app import CommandGroup
from torc_framework.cli.shared.arguments import NoPrompts, WorkflowId, confirm, is_interactive, pick_workflow
from torc_framework.cli.shared.output import print_json, print_pairs
from torc_framework.cli.shared.session import session_of
from torc_framework.errors import ExitStatus, UserError
from torc_framework.text.terminal import one_line

if TYPE_CHECKING:
    from torc_framework.cli.commands.running.run_start import RunInputs
    from torc_framework.cli.shared.session import Session
    from torc_framework.models.responses import Reinitialized

SHOWN_JOBS: Final = 50
"""Most jobs that the text output lists; JSON lists all."""

_Force = Annotated[
    bool,
    typer.Option("--force", help="Also with input files or user data missing, and with jobs that active runners hold."),
]


def add(app: CommandGroup) -> None:
    """Add the commands of this module."""
    app.command("initialize")(initialize)
    for former in ("initialize-jobs", "start"):
        app.command(former, hidden=True)(initialize)
    app.command("reinitialize")(reinitialize)
    app.command("reset-status")(reset_status)
    app.command("is-complete")(is_complete)


def initialize(
    ctx: typer.Context,
    workflow_id: WorkflowId = None,
    *,
    force: _Force = False,
    no_prompts: NoPrompts = False,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Only print what would be done.")] = False,
) -> None:
    """Begin a new run of all jobs: every job is reset, those without unfinished dependencies become ready.

    Files that jobs read and no job writes must exist, and such user data must have a value. Existing
    files that jobs write are deleted after you confirm it (or with --no-prompts). Use 'reinitialize' to
    run only jobs whose inputs changed.

    Examples:
        torc workflows initialize 12 --dry-run
        torc workflows initialize 12 --yes
    """
    from torc_framework.cli.commands.running import run_start as begin
    from torc_framework.cli.commands.running.file_places import FilePlaces
    from torc_framework.cli.commands.running.spec_loading import shortened

    session = session_of(ctx)
    chosen = pick_workflow(session, workflow_id)
    inputs = begin.inspect_run_inputs(session.client, chosen, FilePlaces.of(session, workflow_id=chosen))
    if dry_run and session.wants_json:
        _print_check(session, chosen, inputs, force=force)
        return
    inputs.refuse(force=force)
    now = session.client.begin_run(chosen, force=force, dry_run=True)
    outputs = begin.stale_outputs(session.client, chosen, inputs)
    if dry_run:
        print(f"Dry run: workflow {chosen} can be initialized, as run {now.run_id + 1}{_deleted(outputs, 'would be')}")
        return
    can_ask = is_interactive() and not session.wants_json
    if outputs and not no_prompts and not can_ask:
        names = shortened(outputs)
        raise UserError(
            f"{len(outputs)} output file(s) are there and would be deleted; allow it by --no-prompts: {names}"
        )
    if outputs or not session.client.is_uninitialized(chosen):
        question = f"Reset all jobs of workflow {chosen}{_deleted(outputs, 'will be')}?"
        confirm(question, assume_yes=no_prompts or session.wants_json)
    inputs = begin.delete_outputs(outputs, inputs)
    record = begin.begin_run(session.client, chosen, inputs, force=force)
    text = f"Initialized workflow {chosen}, run {record.run_id}" + _deleted(outputs, "were")
    if session.wants_json:
        values = {"workflow_id": chosen, "run_id": record.run_id, "deleted_output_files": outputs}
        print_json({"status": "success", "message": text, **values})
    else:
        print(text)


def _print_check(session: "Session", workflow_id: int, inputs: "RunInputs", *, force: bool) -> None:
    """Print as JSON whether a workflow can be initialized, with the keys of Torc's command.

    Raises:
        typer.Exit: it cannot, since input is missing.
    """
    from torc_framework.cli.commands.running.run_start import stale_outputs

    outputs = stale_outputs(session.client, workflow_id, inputs)
    is_safe = force or not (inputs.missing_files or inputs.missing_user_data)
    document = {
        "workflow_id": workflow_id,
        "dry_run": True,
        "safe": is_safe,
        "missing_input_files": inputs.missing_files,
        "missing_input_file_count": len(inputs.missing_files),
        "missing_user_data": inputs.missing_user_data,
        "existing_output_files": outputs,
        "existing_output_file_count": len(outputs),
    }
    if is_safe:
        document["run_id"] = session.client.begin_run(workflow_id, force=force, dry_run=True).run_id
    print_json(document)
    if not is_safe:
        raise typer.Exit(int(ExitStatus.FAILED))


def _deleted(outputs: list[str], verb: str) -> str:
    from torc_framework.cli.commands.running.spec_loading import shortened

    return f"; {len(outputs)} output file(s) {verb} deleted: {shortened(outputs)}" if outputs else ""


def reinitialize(
    ctx: typer.Context,
    workflow_id: WorkflowId = None,
    *,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Only print which jobs would run again.")] = False,
    force: _Force = False,
) -> None:
    """Begin a new run of the jobs whose inputs changed; all other jobs keep their results.

    A job runs again if its command or its user data changed, if the modification time of a file that it
    reads changed, if a file that it wrote is missing, if it was canceled or terminated, or if it depends
    on a job that runs again. Each job is listed with its reason. Failed jobs stay failed: use
    'reset-status --failed-only --reinitialize' for them. Call it in the folder in which the jobs run.

    Examples:
        torc workflows reinitialize 12 --dry-run
        torc workflows reinitialize 12
    """
    from torc_framework.cli.commands.running.file_places import FilePlaces
    from torc_framework.cli.commands.running.run_start import rerun
    from torc_framework.next_step import next_step_text

    session = session_of(ctx)
    chosen = pick_workflow(session, workflow_id)
    interrupted = session.client.job_counts(chosen).interrupted
    places = FilePlaces.of(session, workflow_id=chosen)
    _show_rerun(session, rerun(session.client, chosen, places, dry_run=dry_run, force=force))
    if dry_run and interrupted and not session.wants_json:
        step = next_step_text(session.client, chosen, session.executors, interrupted)
        print(f"Interrupted jobs need no new run: {step}")


def _show_rerun(session: "Session", found: "Reinitialized") -> None:
    import msgspec

    if session.wants_json:
        text = f"{'Checked' if found.dry_run else 'Reinitialized'} workflow {found.workflow_id}"
        print_json({"status": "success", "message": text, **msgspec.to_builtins(found)})
        return
    if found.dry_run:
        print(f"Dry run: {found.job_count} jobs would be reset due to changed inputs")
    else:
        print(f"Reinitialized workflow {found.workflow_id}, run {found.run_id}")
        print(f"Reset {found.job_count} jobs due to changed inputs")
    for job in found.jobs[:SHOWN_JOBS]:
        print(one_line(f"  - {job.name}: {job.reason}"))
    if found.job_count > SHOWN_JOBS:
        print(f"  and {found.job_count - SHOWN_JOBS} more; -f json lists all")


def reset_status(
    ctx: typer.Context,
    workflow_id: WorkflowId = None,
    *,
    failed_only: Annotated[
        bool,
        typer.Option(
            "--failed-only",
            "--failed",
            help="Only jobs that failed, were canceled or terminated, and their dependents.",
        ),
    ] = False,
    then_reinitialize: Annotated[
        bool, typer.Option("--reinitialize", "-r", help="Also reinitialize, so that they can run.")
    ] = False,
    force: Annotated[
        bool, typer.Option("--force", help="Also with jobs or allocations that are active, or with inputs missing.")
    ] = False,
    no_prompts: NoPrompts = False,
) -> None:
    """Make jobs uninitialized: all or the failed ones. The workflow's canceled state is cleared.

    They run again after 'reinitialize'; with --reinitialize both happen in one transaction. Results are kept.

    Examples:
        torc workflows reset-status 12 --failed-only --reinitialize
        torc workflows reset-status 12 --yes
    """
    from torc_framework.cli.commands.running.file_places import FilePlaces
    from torc_framework.cli.commands.running.run_start import inspect_run_inputs, rerun

    session = session_of(ctx)
    chosen = pick_workflow(session, workflow_id)
    places = FilePlaces.of(session, workflow_id=chosen)
    if then_reinitialize and not force:
        inspect_run_inputs(session.client, chosen, places).refuse()
    which = "failed jobs, and what follows them," if failed_only else "all jobs"
    confirm(f"Reset the status of {which} of workflow {chosen}?", assume_yes=no_prompts or session.wants_json)
    record = None
    if then_reinitialize:
        record = rerun(session.client, chosen, places, force=force, reset="failed" if failed_only else "all")
        count = record.reset_count
    else:
        session.client.reset_status(chosen, force=force)
        count = session.client.reset_job_status(chosen, failed_only=failed_only)
    values = {"workflow_id": chosen, "updated_count": count, "status": "uninitialized"}
    if failed_only:
        values["reset_type"] = "failed_only"
    if session.wants_json:
        import msgspec

        print_json({**values, "reinitialized": None if record is None else msgspec.to_builtins(record)})
        return
    print(f"Reset {count} jobs of workflow {chosen}")
    if record is None:
        print(f"They run again after 'torc workflows reinitialize {chosen}'")
    else:
        _show_rerun(session, record)


def is_complete(ctx: typer.Context, workflow_id: WorkflowId = None) -> None:
    """Show whether a workflow is complete.

    Examples:
        torc workflows is-complete 12
        torc workflows is-complete 12 -f json
    """
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
