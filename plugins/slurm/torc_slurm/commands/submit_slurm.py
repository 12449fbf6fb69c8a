"""``torc submit-slurm``: creates a workflow, plans its schedulers and requests the first nodes."""

import typer

from torc_framework.api.commands import (
    IgnoreMissingData,
    OutputDir,
    User,
    require_lasting_server,
    session_of,
    show_submission,
    single_command,
    submit_workflow,
)
from torc_slurm.commands import scheduler_options


@scheduler_options.takes_scheduler_choices
def submit(
    ctx: typer.Context,
    file: scheduler_options.SpecFile,
    *,
    choices: scheduler_options.SchedulerChoices,
    overwrite: scheduler_options.Overwrite = False,
    ignore_missing_data: IgnoreMissingData = False,
    user: User = None,
    no_resource_monitoring: scheduler_options.NoMonitoring = False,
    skip_checks: scheduler_options.SkipChecks = False,
    output_dir: OutputDir = None,
    dry_run: scheduler_options.DryRun = False,
) -> None:
    """Submit a workflow to Slurm, with schedulers planned from the requirements of its jobs.

    'torc slurm generate' shows the same schedulers: look at them before you submit a large workflow. Runners
    request the nodes of jobs that depend on others when these jobs are ready. The command does not wait;
    'torc watch ID' follows the workflow.
    """
    from torc_framework.api.planning import create_workflow, load_options, show_dry_run

    session = session_of(ctx)
    if not dry_run:
        require_lasting_server(session)
    options = load_options(session, file, user=user, skip_checks=skip_checks)
    made = scheduler_options.generate_spec(session, file, options, choices, overwrite=overwrite)
    if dry_run:
        if not session.wants_json:
            scheduler_options.print_plan(made.planned)
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
        scheduler_options.print_plan(made.planned)
    done = submit_workflow(session, created.id, output_dir=output_dir, ignore_missing_data=ignore_missing_data)
    show_submission(session, done, **made.as_dict())


app = single_command(submit)
