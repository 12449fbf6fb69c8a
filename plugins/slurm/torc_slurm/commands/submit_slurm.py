"""Submit a workflow to Slurm with planned schedulers.

This is the command ``torc submit-slurm``, for new and for existing workflows.
"""

from pathlib import Path
from typing import Annotated

import typer
from attrs import define, field

from torc_framework.api import UserError
from torc_framework.api.commands import (
    IgnoreMissingData,
    OutputDir,
    Session,
    Submission,
    User,
    begin_run,
    print_json,
    require_lasting_server,
    session_of,
    show_submission,
    single_command,
    submit_workflow,
)
from torc_slurm.commands import scheduler_options
from torc_slurm.commands.regenerate import plan_schedulers_of, print_warnings, rescheduling_values

SpecOrId = Annotated[
    str, typer.Argument(metavar="FILE|ID", help="Spec file: YAML, JSON, JSON5 or KDL; or the id of a workflow.")
]


@scheduler_options.takes_scheduler_choices
def submit(
    ctx: typer.Context,
    workflow: SpecOrId,
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
    """Submit a workflow to Slurm with planned schedulers.

    The workflow is created from a spec file, or it is an existing one. An existing workflow whose actions request its
    first nodes keeps its schedulers, except with --overwrite. 'torc slurm generate' shows the schedulers for a spec:
    look at them before you submit a large workflow. Runners request the nodes of jobs that depend on others when these
    jobs are ready. The command does not wait; 'torc watch ID' follows the workflow.

    Examples:
        torc submit-slurm workflow.yaml --account research
        torc submit-slurm 12 --account research --group-by partition
    """
    from torc_framework.api.planning import create_workflow, load_options, show_dry_run

    session = session_of(ctx)
    if not dry_run:
        require_lasting_server(session)
    file = Path(workflow)
    if workflow.isdecimal() and not file.is_file():
        if user or no_resource_monitoring or skip_checks:
            raise UserError("--user, --no-resource-monitoring and --skip-checks are for a spec file, not for an ID")
        existing = _ExistingWorkflow(session, int(workflow), ignore_missing_data=ignore_missing_data)
        if existing.requests_nodes and not overwrite:
            existing.submit(output_dir, dry_run=dry_run)
        else:
            existing.submit_anew(choices, output_dir, dry_run=dry_run)
        return
    options = load_options(session, file, user=user, skip_checks=skip_checks, to_submit=not dry_run)
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


@define
class _ExistingWorkflow:
    """Submits a workflow that the server has."""

    session: Session
    workflow_id: int
    _ignores_missing_data: bool = field(alias="ignore_missing_data", kw_only=True)

    @property
    def requests_nodes(self) -> bool:
        """Whether an action of the workflow requests its first nodes."""
        actions = self.session.client.actions(self.workflow_id)
        return any((a.trigger_type, a.action_type) == ("on_workflow_start", "schedule_nodes") for a in actions)

    def submit(self, output_dir: Path | None, *, dry_run: bool) -> None:
        """Request the first nodes as the workflow's actions define them."""
        if not dry_run:
            show_submission(self.session, self._submission(output_dir))
        elif self.session.wants_json:
            print_json({"workflow_id": self.workflow_id, "dry_run": True, "slurm_schedulers": []})
        else:
            print(f"Dry run: workflow {self.workflow_id} has its schedulers and actions; --overwrite plans new ones")

    def submit_anew(
        self, choices: scheduler_options.SchedulerChoices, output_dir: Path | None, *, dry_run: bool
    ) -> None:
        """Plan schedulers for the jobs that are still to run, and request the first nodes.

        Raises:
            UserError: no job is still to run.
        """
        from torc_framework.api.planning import Rescheduler

        session = self.session
        rescheduler = Rescheduler(session.client, self.workflow_id)
        if not rescheduler.has_waiting:
            raise UserError(f"no job of workflow {self.workflow_id} waits to be run: there is nothing to submit")
        done, profile = plan_schedulers_of(session, rescheduler, choices)
        if not dry_run and rescheduler.has_uninitialized:
            begin_run(session.client, self.workflow_id, force=self._ignores_missing_data)
            rescheduler = Rescheduler(session.client, self.workflow_id)  # it plans for the run that has begun
            done, profile = plan_schedulers_of(session, rescheduler, choices)
        print_warnings(done)
        if not dry_run:
            done = rescheduler.carry_out(done, at_once=True)
        values = {**rescheduling_values(self.workflow_id, done, dry_run=dry_run), "profile": profile}
        if not session.wants_json:
            scheduler_options.print_plan(done.planned)
        if not dry_run:
            show_submission(session, self._submission(output_dir), **values)
        elif session.wants_json:
            print_json(values)
        else:
            print("Dry run: nothing was changed.")

    def _submission(self, output_dir: Path | None) -> Submission:
        return submit_workflow(
            self.session, self.workflow_id, output_dir=output_dir, ignore_missing_data=self._ignores_missing_data
        )


app = single_command(submit)
