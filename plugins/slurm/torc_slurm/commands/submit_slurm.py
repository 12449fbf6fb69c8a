"""``torc submit-slurm``: from a spec without schedulers to allocations, in one command."""

from pathlib import Path
from typing import Annotated

import typer

from torc_framework.api.commands import (
    require_lasting_server,
    session_of,
    show_submission,
    single_command,
    submit_workflow,
)
from torc_slurm.commands import scheduler_options as g
from torc_slurm.commands.create import NoMonitoring, SkipChecks, User


def submit(
    ctx: typer.Context,
    file: g.SpecFile,
    *,
    account: g.Account = None,
    profile: g.Profile = None,
    single_allocation: g.SingleAllocation = False,
    group_by: g.GroupByOption = "resource-requirements",
    walltime_strategy: g.Strategy = "max-job-runtime",
    walltime_multiplier: g.Multiplier = 1.5,
    overwrite: g.Overwrite = False,
    ignore_missing_data: Annotated[
        bool, typer.Option("--ignore-missing-data", "-i", help="Also with input files or user data missing.")
    ] = False,
    user: User = None,
    no_resource_monitoring: NoMonitoring = False,
    skip_checks: SkipChecks = False,
    output_dir: Annotated[
        Path | None, typer.Option("--output-dir", "-o", help="Folder for logs (default: output).")
    ] = None,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Only check, and show what would be created.")] = False,
) -> None:
    """Submit a workflow to Slurm, with schedulers made from what its jobs ask for.

    The schedulers are those that 'torc slurm generate' shows: look at them before you submit anything large.
    Nodes for jobs that wait for others are asked for by the runners, when these jobs are ready. The command
    ends at once: 'torc watch ID' stays with the workflow.
    """
    from torc_framework.api.planning import create_workflow, load_options, show_dry_run

    session = session_of(ctx)
    if not dry_run:
        require_lasting_server(session)
    options = load_options(session, file, user=user, skip_checks=skip_checks)
    wanted = g.SchedulerChoices(
        account,
        profile,
        single_allocation,
        group_by,
        walltime_strategy,
        walltime_multiplier,
        overwrite=overwrite,
    )
    made = g.generate_spec(session, file, options, wanted)
    if dry_run:
        if not session.wants_json:
            g.print_plan(made.planned)
        show_dry_run(session, made.spec, options, **made.as_dict())
        return
    created = create_workflow(
        session,
        made.spec,
        options,
        no_resource_monitoring=no_resource_monitoring,
        initialize=True,
        ignore_missing_data=ignore_missing_data,
    )
    if not session.wants_json:
        created.print()
        g.print_plan(made.planned)
    done = submit_workflow(session, created.id, output_dir=output_dir, ignore_missing_data=ignore_missing_data)
    show_submission(session, done, **made.as_dict())


app = single_command(submit)
