"""The overview of one workflow, its explanations, and what changes would destroy; of the rooms that commands use."""

from pathlib import Path
from typing import Any

import msgspec

from torc_framework.allocations.allocators import context_without_runner
from torc_framework.allocations.state_queries import pending_reasons
from torc_framework.client import TorcClient
from torc_framework.models.pending_reason import PendingReason
from torc_framework.models.records import (
    ComputeNodeRecord,
    EventRecord,
    FileRecord,
    JobRecord,
    Record,
    ResultRecord,
    ScheduledComputeNodeRecord,
    UserDataRecord,
)
from torc_framework.models.statuses import LIVE
from torc_framework.monitoring.context import WorkContext
from torc_framework.next_step import next_step
from torc_framework.reports.job_texts import last_line, log_finder
from torc_framework.reports.status import read_status, terminate_live
from torc_framework.reports.status_document import status_document
from torc_framework.system.process_identity import is_dead_runner
from torc_framework.text.headline import WORKFLOW_LOOKS, headline_sentence

_COUNTED: dict[str, type[Record]] = {
    "results": ResultRecord,
    "files": FileRecord,
    "user_data": UserDataRecord,
    "events": EventRecord,
    "compute_nodes": ComputeNodeRecord,
}


def overview(context: WorkContext, client: TorcClient, workflow_id: int, *, reads_logs: bool) -> dict[str, Any]:
    """Return the document of ``torc status`` for a workflow, with its headline, and its progress by stage.

    Args:
        reads_logs: Add the last lines of failed jobs from their logs.
    """
    stages = client.progress_view(workflow_id)
    report = read_status(client, workflow_id, stages)
    step = next_step(client, report.progress, context.plugins.lazy_executors)
    lines: dict[int, str] = {}
    if reads_logs:
        find_logs = log_finder(client)
        lines = {each.job.id or 0: last_line(find_logs(each.result)) for each in report.failed if each.result}
    look = WORKFLOW_LOOKS[report.state]
    sentence = headline_sentence(
        report.progress.overview.workflow.name,
        workflow_id,
        look.word,
        report.counts,
        interrupted=report.interrupted,
        duration_s=report.duration_s,
    )
    document = status_document(report, lines, None if step is None else step.as_dict())
    if report.remaining_s is None:
        stages.estimate = None
    if not report.runners:  # the stages have the numbers of the headline
        for group in stages.groups:
            terminate_live(group.counts)
    document["progress"] = msgspec.to_builtins(stages)
    return {**document, "headline": sentence, "glyph": look.glyph, "colour": look.colour}


def explain(
    context: WorkContext, client: TorcClient, workflow_id: int, job_id: int | None, *, asks_batch_systems: bool
) -> dict[str, Any]:
    """Return the document of ``torc explain`` for a workflow, or for one of its jobs.

    Args:
        asks_batch_systems: Add why queued allocations wait, as the batch systems of this machine's account say.
    """
    from torc_framework.explain import explain_job, explain_workflow, read_workflow_state

    def reasons(queued: list[ScheduledComputeNodeRecord]) -> list[PendingReason]:
        waiting = [each for each in queued if each.status == "pending"]
        if not waiting or not asks_batch_systems:
            return []
        runner = context_without_runner(client, workflow_id)
        return [*pending_reasons(waiting, context.plugins, context.executor_options, runner).values()]

    state = read_workflow_state(
        client, workflow_id, is_dead=is_dead_runner, executors=context.plugins.lazy_executors, reasons=reasons
    )
    return explain_workflow(state) if job_id is None else explain_job(state, state.job(job_id))


def why_failed(context: WorkContext, client: TorcClient, workflow_id: int, job_id: int | None) -> dict[str, Any]:
    """Return the document of ``torc why-failed`` for a workflow, or for one of its jobs."""
    from torc_framework.forensics.job_report import explain_job
    from torc_framework.forensics.workflow_report import explain_workflow

    if job_id is None:
        return explain_workflow(client, context.plugins, workflow_id).as_dict()
    return explain_job(client, context.plugins, job_id).as_dict()


def pending(context: WorkContext, client: TorcClient, workflow_id: int) -> dict[str, Any]:
    """Return the document of ``torc pending list --all``."""
    from torc_framework.pending import waiting_jobs

    folders = {str(folder) for folder in _output_dirs(client, workflow_id)}
    folder = Path(folders.pop()) if len(folders) == 1 else context.output_dir
    return {
        "workflow_id": workflow_id,
        "pending_failed": [each.as_dict() for each in waiting_jobs(client, workflow_id, folder)],
        "verdicts": list(client.verdicts(workflow_id)),
    }


def _output_dirs(client: TorcClient, workflow_id: int) -> list[Path]:
    from torc_framework.models.attempt_logs import output_dir_of

    found = (output_dir_of(node) for node in client.iterate(ComputeNodeRecord, workflow_id=workflow_id))
    return [folder for folder in found if folder is not None]


def impact(client: TorcClient, workflow_id: int) -> dict[str, Any]:
    """Return how many records a workflow has: what its deletion would destroy."""
    found = client.progress(workflow_id).overview
    return {
        "workflow_id": workflow_id,
        "name": found.workflow.name,
        "jobs": found.total,
        **{name: client.page(kind, workflow_id=workflow_id, limit=1).total_count for name, kind in _COUNTED.items()},
        "job_counts": found.counts,
        "live_jobs": sum(found.counts.get(status.label, 0) for status in LIVE),
        "interrupted_jobs": found.interrupted,
        "queued_allocations": found.queued_allocations,
        "active_runners": found.active_runners,
    }


def job_of(client: TorcClient, workflow_id: int, job_id: int) -> JobRecord:
    """Return a job of a workflow.

    Raises:
        ApiError: there is no such job in it (404).
    """
    from torc_framework.errors import ApiError

    job = client.get(JobRecord, job_id)
    if job.workflow_id != workflow_id:
        raise ApiError(404, f"workflow {workflow_id} has no job {job_id}")
    return job


def queue_reasons(context: WorkContext, client: TorcClient, workflow_id: int) -> dict[str, str]:
    """Return why queued allocations wait, by id; without those whose batch systems do not answer from here."""
    waiting = client.find(ScheduledComputeNodeRecord, workflow_id=workflow_id, status="pending")
    if not waiting:
        return {}
    there = context_without_runner(client, workflow_id)
    reasons = pending_reasons(waiting, context.plugins, context.executor_options, there)
    return {str(id_): str(reason) for id_, reason in reasons.items()}
