"""Create a workflow and plan its Slurm schedulers.

This is the command ``torc workflows create-slurm``.
"""

import typer

from torc_framework.api.commands import User, print_json, session_of, single_command
from torc_slurm.commands import scheduler_options


@scheduler_options.takes_scheduler_choices
def create(
    ctx: typer.Context,
    file: scheduler_options.SpecFile,
    *,
    choices: scheduler_options.SchedulerChoices,
    overwrite: scheduler_options.Overwrite = False,
    user: User = None,
    no_resource_monitoring: scheduler_options.NoMonitoring = False,
    skip_checks: scheduler_options.SkipChecks = False,
    dry_run: scheduler_options.DryRun = False,
) -> None:
    """Create a workflow and plan its Slurm schedulers.

    The schedulers are planned from the requirements of the jobs.

    'torc slurm generate' shows the schedulers first; 'torc submit ID' submits what was created.

    Examples:
        torc workflows create-slurm workflow.yaml --account research
        torc workflows create-slurm workflow.yaml --account research --dry-run
    """
    from torc_framework.api.planning import create_workflow, load_options, show_dry_run

    session = session_of(ctx)
    if not dry_run:
        session.start_server()  # it boots while the spec is read
    options = load_options(session, file, user=user, skip_checks=skip_checks)
    made = scheduler_options.generate_spec(session, file, options, choices, overwrite=overwrite)
    if dry_run:
        if not session.wants_json:
            scheduler_options.print_plan(made.planned)
        show_dry_run(session, made.spec, options, **made.as_dict())
        return
    created = create_workflow(session, made.spec, options, no_resource_monitoring=no_resource_monitoring)
    if session.wants_json:
        print_json({**made.as_dict(), **created.as_dict()})
    else:
        created.print()
        scheduler_options.print_plan(made.planned)


app = single_command(create)
