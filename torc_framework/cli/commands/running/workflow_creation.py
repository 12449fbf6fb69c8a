"""Creation of a workflow from a spec, for ``torc workflows create`` and commands of plugins that make specs."""

from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer
from attrs import frozen

from torc_framework.cli.shared.output import print_json, print_pairs
from torc_framework.cli.shared.session import Session
from torc_framework.errors import ExitStatus

if TYPE_CHECKING:
    from collections.abc import Callable

    from torc_framework.models.plan_parts import PlanHead
    from torc_framework.spec import LoadOptions
    from torc_framework.spec.language.model import WorkflowSpec


@frozen
class CreatedWorkflow:
    """A workflow that was created.

    Attributes:
        plan: The head of the plan that it was created from.
        warnings: What the spec has that may not be intended.
    """

    id: int
    run_id: int
    plan: "PlanHead"
    warnings: list[str]

    def as_dict(self) -> dict[str, Any]:
        """Return it as JSON values."""
        plan = self.plan
        return {
            "id": self.id,
            "workflow_id": self.id,
            "name": plan.workflow.name,
            "user": plan.workflow.user,
            "run_id": self.run_id,
            "job_count": plan.job_count,
            "file_count": len(plan.files),
            "user_data_count": len(plan.user_data),
            "warnings": self.warnings,
        }

    def print(self) -> None:
        """Print it as text."""
        plan = self.plan
        shown = {"Name": plan.workflow.name, "User": plan.workflow.user, "Jobs": plan.job_count}
        print_pairs(f"Created workflow with ID: {self.id}", {**shown, "Files": len(plan.files) or None})


def create_workflow(
    session: Session,
    source: "Path | WorkflowSpec",
    options: "LoadOptions",
    *,
    no_resource_monitoring: bool = False,
    initialize: bool = False,
    ignore_missing_data: bool = False,
    check: "Callable[[PlanHead], None] | None" = None,
) -> CreatedWorkflow:
    """Store the workflow of a spec; its warnings go to standard error.

    Args:
        initialize: Make its jobs ready to run, after a check that all inputs exist.
        ignore_missing_data: Initialize also if inputs are missing.
        check: Called with the head of the plan before anything is stored; its exceptions are passed on.

    Raises:
        SpecError: the spec is wrong.
        UserError: input files or user data are missing.
    """
    from torc_framework.cli.commands.running.file_places import FilePlaces
    from torc_framework.cli.commands.running.spec_loading import refuse_missing_inputs, stamp_files
    from torc_framework.spec import load_parts

    loaded = load_parts(source, options=options)
    if check is not None:
        check(loaded.head)
    if no_resource_monitoring:
        loaded.head.workflow.resource_monitor_config = '{"enabled":false}'
    stamp_files(loaded.head.files)
    if initialize and not ignore_missing_data:
        refuse_missing_inputs(loaded, FilePlaces.of(session))
    stored = session.client.create_from_plan(loaded.plan, initialize=initialize)
    for warning in loaded.warnings:
        typer.echo(f"Warning: {warning}", err=True)
    return CreatedWorkflow(stored.id, stored.run_id, loaded.head, loaded.warnings)


def show_dry_run(session: Session, source: "Path | WorkflowSpec", options: "LoadOptions", **more: Any) -> None:
    """Print what a spec would create, or its errors; ``more`` is added to the JSON document.

    Raises:
        typer.Exit: the spec is wrong.
    """
    from torc_framework.spec import dry_run

    values, text = dry_run(source, options=options)
    print_json({**values, **more}) if session.wants_json else print(text)
    if not values["valid"]:
        raise typer.Exit(int(ExitStatus.FAILED))
