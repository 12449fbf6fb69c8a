"""``torc workflows create-slurm``: a stored workflow with schedulers that its spec does not have."""

from typing import Annotated

import typer

from torc_framework.api.commands import print_json, session_of, single_command
from torc_slurm.commands import scheduler_options as g

User = Annotated[str | None, typer.Option("--user", "-u", help="Owner (default: you).")]
NoMonitoring = Annotated[bool, typer.Option("--no-resource-monitoring", help="No samples of what jobs use.")]
SkipChecks = Annotated[bool, typer.Option("--skip-checks", help="Skip the checks of scheduler nodes.")]


def create(
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
    user: User = None,
    no_resource_monitoring: NoMonitoring = False,
    skip_checks: SkipChecks = False,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Only check, and show what would be created.")] = False,
) -> None:
    """Create a workflow from a spec file, with Slurm schedulers made from what its jobs ask for.

    'torc slurm generate' shows the schedulers first; 'torc submit ID' submits what was created.
    """
    from torc_framework.api.planning import create_workflow, load_options, show_dry_run

    session = session_of(ctx)
    if not dry_run:
        session.start_server()  # it boots while the spec is read
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
    created = create_workflow(session, made.spec, options, no_resource_monitoring=no_resource_monitoring)
    if session.wants_json:
        print_json({**made.as_dict(), **created.as_dict()})
    else:
        created.print()
        g.print_plan(made.planned)


app = single_command(create)
