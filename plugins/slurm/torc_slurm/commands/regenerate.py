"""``torc slurm regenerate``: plans new schedulers for the jobs of a workflow that are still to run."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from attrs import asdict

from torc_framework.api import UserError
from torc_framework.api.commands import (
    CommandGroup,
    Session,
    WorkflowId,
    pick_workflow,
    print_json,
    require_lasting_server,
    session_of,
    show_submission,
    submit_workflow,
)
from torc_slurm.commands import scheduler_options

if TYPE_CHECKING:
    from torc_framework.api.planning import Rescheduler, Rescheduling


def register(app: CommandGroup) -> None:
    """Add the command to a group."""
    app.command("regenerate")(regenerate)


@scheduler_options.takes_scheduler_choices
def regenerate(
    ctx: typer.Context,
    workflow_id: WorkflowId = None,
    *,
    choices: scheduler_options.SchedulerChoices,
    submit: Annotated[bool, typer.Option("--submit", help="Request the first nodes at once.")] = False,
    output_dir: Annotated[
        Path | None, typer.Option("--output-dir", "-o", help="Folder for logs, with --submit (default: output).")
    ] = None,
    poll_interval: Annotated[
        float | None, typer.Option("--poll-interval", "-p", min=0, help="Accepted; runners are woken and never poll.")
    ] = None,
    include_job_ids: Annotated[
        list[str] | None,
        typer.Option(
            "--include-job-ids", metavar="IDS", help="Plan also for these jobs, such as 1,2,3, in any status."
        ),
    ] = None,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Only show the planned schedulers.")] = False,
) -> None:
    """Make new Slurm schedulers for the jobs that are still to run.

    They are planned from the present requirements of these jobs, which a recovery may have raised. They replace the
    actions that requested nodes so far. Nodes for jobs that depend on others are requested when these jobs are
    ready. The new schedulers take over the account, the quality of service and further sbatch options of the
    workflow's schedulers, and the partition if it still fits. The whole change is one transaction.

    Examples:
        torc slurm regenerate 12 --dry-run
        torc slurm regenerate 12 --submit
    """
    del poll_interval
    session = session_of(ctx)
    if submit and not dry_run:
        require_lasting_server(session)
    from torc_framework.api.planning import Rescheduler

    chosen = pick_workflow(session, workflow_id)
    rescheduler = Rescheduler(session.client, chosen, _parse_ids(include_job_ids))
    if not rescheduler.has_waiting:
        _print_nothing_to_do(session, chosen, dry_run=dry_run)
        return
    if rescheduler.has_uninitialized and not dry_run:
        raise UserError(
            f"jobs of workflow {chosen} wait for a run to begin: 'torc workflows reinitialize {chosen}' begins one; "
            "schedulers made before would be forgotten by it"
        )
    done, profile = plan_schedulers_of(session, rescheduler, choices)
    print_warnings(done)
    if not dry_run:
        done = rescheduler.carry_out(done, at_once=submit)
    will_submit = submit and not dry_run and bool(done.at_once)
    values = {**rescheduling_values(chosen, done, dry_run=dry_run), "profile": profile, "submitted": will_submit}
    if not session.wants_json:
        _print_result(chosen, done, dry_run=dry_run, submit=submit)
    if will_submit:
        show_submission(session, submit_workflow(session, chosen, output_dir=output_dir), **values)
    elif session.wants_json:
        print_json(values)


def plan_schedulers_of(
    session: Session, rescheduler: "Rescheduler", choices: scheduler_options.SchedulerChoices
) -> "tuple[Rescheduling, str]":
    """Return the plan for the waiting jobs of a workflow, and the name of the cluster's profile.

    Raises:
        UserError: the account or the cluster is unknown, or no partition fits a job.
    """
    here = scheduler_options.choose_profile(session, choices.profile)
    account = scheduler_options.choose_account(choices.account, rescheduler.account(), here)
    options = choices.plan_options(account, idle=scheduler_options.idle_nodes(session, choices))
    return rescheduler.plan(here, options), here.name


def print_warnings(done: "Rescheduling") -> None:
    """Print the warnings of a plan to standard error."""
    for warning in done.planned.warnings:
        typer.echo(f"Warning: {warning}", err=True)


def _parse_ids(texts: list[str] | None) -> list[int]:
    try:
        return [int(part) for text in texts or () for part in text.split(",")]
    except ValueError:
        raise UserError(f"--include-job-ids is {','.join(texts or ())!r}; expected ids such as 1,2,3") from None


def _print_nothing_to_do(session: Session, workflow_id: int, *, dry_run: bool) -> None:
    if session.wants_json:
        empty: list[Any] = []
        values = {"workflow_id": workflow_id, "dry_run": dry_run, "job_count": 0, "slurm_schedulers": empty}
        more = {"scheduler_ids": empty, "at_once": empty, "retired_action_ids": empty, "warnings": empty}
        print_json({**values, **more, **_summary(0, empty), "submitted": False})
    else:
        print(f"No job of workflow {workflow_id} waits to be run: there is nothing to do")


def rescheduling_values(workflow_id: int, done: "Rescheduling", *, dry_run: bool) -> dict[str, Any]:
    """Return the values of a rescheduling for JSON output."""
    count = sum(bound is not None for bound in done.planned.bound)
    rows = scheduler_options.scheduler_rows(done.planned)
    return {
        "workflow_id": workflow_id,
        "dry_run": dry_run,
        "job_count": count,
        "slurm_schedulers": rows,
        **_summary(count, rows),
        "scheduler_ids": list(done.scheduler_ids),
        "at_once": [asdict(each) for each in done.at_once],
        "retired_action_ids": list(done.retired_action_ids),
        "warnings": done.planned.warnings,
    }


def _summary(jobs: int, schedulers: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """Return the values that Torc's own command prints."""
    total = sum(sum(each["num_allocations"]) for each in schedulers)
    return {"pending_jobs": jobs, "schedulers_created": list(schedulers), "total_allocations": total}


def _print_result(workflow_id: int, done: "Rescheduling", *, dry_run: bool, submit: bool) -> None:
    scheduler_options.print_plan(done.planned)
    count = sum(bound is not None for bound in done.planned.bound)
    if dry_run:
        print(f"Dry run: {count} job(s) would get these schedulers. Nothing was changed.")
        return
    retired = len(done.retired_action_ids)
    print(f"{count} job(s) have new schedulers; {retired} action(s) that requested nodes were replaced")
    if submit or not done.at_once:
        return
    print("Request the nodes for jobs that can start with:")
    for each in done.at_once:
        command = f"torc slurm schedule-nodes {workflow_id} --scheduler-config-id {each.scheduler_id}"
        worker = " --start-one-worker-per-node" if each.start_one_worker_per_node else ""
        print(f"  {command} -n {each.allocations}{worker}")
