"""Summary of a workflow file and report of a dry run."""

from collections.abc import Sequence
from typing import Any

from attrs import Factory, asdict, define

from torc_framework.models.plan import Plan
from torc_framework.spec.language.model import WorkflowSpec
from torc_framework.text.terminal import one_line


@define
class SpecSummary:
    """Counts and names of a workflow; the fields are keys of JSON output."""

    workflow_name: str = ""
    workflow_description: str | None = None
    job_count: int = 0
    job_count_before_expansion: int = 0
    file_count: int = 0
    file_count_before_expansion: int = 0
    user_data_count: int = 0
    resource_requirements_count: int = 0
    slurm_scheduler_count: int = 0
    action_count: int = 0
    has_schedule_nodes_action: bool = False
    job_names: list[str] = Factory(list)
    scheduler_names: list[str] = Factory(list)

    def as_dict(self) -> dict[str, Any]:
        """Return the summary as JSON values."""
        return asdict(self, recurse=False)


def summarize(spec: WorkflowSpec, plan: Plan) -> SpecSummary:
    """Return the summary of a spec and its plan."""
    return SpecSummary(
        workflow_name=spec.name,
        workflow_description=spec.description,
        job_count=len(plan.jobs),
        job_count_before_expansion=len(spec.jobs),
        file_count=len(plan.files),
        file_count_before_expansion=len(spec.files or []),
        user_data_count=len(plan.user_data),
        resource_requirements_count=len(plan.resource_requirements),
        slurm_scheduler_count=len(plan.slurm_schedulers),
        action_count=len(plan.actions),
        has_schedule_nodes_action=any(
            action.trigger_type == "on_workflow_start" and action.action_type == "schedule_nodes"
            for action in plan.actions
        ),
        job_names=[job.name for job in plan.jobs],
        scheduler_names=[scheduler.name for scheduler in plan.slurm_schedulers if scheduler.name],
    )


def dry_run_text(summary: SpecSummary, errors: Sequence[str], warnings: Sequence[str]) -> str:
    """Return the report of a dry run for people."""
    lines = ["Workflow Validation Results", "===========================", ""]
    if summary.workflow_name:
        lines.append(f"Workflow: {summary.workflow_name}")
    if summary.workflow_description:
        lines.append(f"Description: {summary.workflow_description}")
    lines += ["", "Components to be created:"]
    lines += [f"  {label}: {text}" for label, text in _components(summary)]
    lines += ["", f"Submission: {_submission(summary)}", ""]
    for title, entries in (("Errors", errors), ("Warnings", warnings)):
        if entries:
            lines += [f"{title} ({len(entries)}):", *(f"  - {entry}" for entry in entries), ""]
    return "\n".join([*map(one_line, lines), f"Validation: {'FAILED' if errors else 'PASSED'}"])


def _components(summary: SpecSummary) -> list[tuple[str, str]]:
    counts = (
        ("Jobs", summary.job_count, summary.job_count_before_expansion, "job"),
        ("Files", summary.file_count, summary.file_count_before_expansion, "file"),
    )
    lines = [
        (label, f"{count}" + (f" (expanded from {before} parameterized {kind} specs)" if count != before else ""))
        for label, count, before, kind in counts
    ]
    return [
        *lines,
        ("User data records", str(summary.user_data_count)),
        ("Resource requirements", str(summary.resource_requirements_count)),
        ("Slurm schedulers", str(summary.slurm_scheduler_count)),
        ("Workflow actions", str(summary.action_count)),
    ]


def _submission(summary: SpecSummary) -> str:
    if summary.has_schedule_nodes_action:
        return "Ready for scheduler submission (has on_workflow_start schedule_nodes action)"
    return "Ready for local execution (no on_workflow_start schedule_nodes action)"
