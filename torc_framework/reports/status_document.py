"""The status of workflows as JSON values, for ``torc status``, ``torc workflows list`` and the dashboard."""

import time
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

from torc_framework.models.progress import RunnerLoad, WorkflowOverview
from torc_framework.models.records import ComputeNodeRecord, field_names
from torc_framework.models.runner_states import runner_state
from torc_framework.reports.job_texts import exit_text
from torc_framework.reports.status import WorkflowStatusReport


def overview_values(overview: WorkflowOverview) -> dict[str, Any]:
    """Return a workflow's record with its state as JSON values."""
    record = overview.workflow
    updated = record.timestamp
    if overview.updated_at is not None:
        changed = datetime.fromtimestamp(overview.updated_at / 1000, UTC)
        updated = changed.isoformat(timespec="milliseconds").replace("+00:00", "Z")
    return {
        **{name: getattr(record, name) for name in field_names(type(record))},
        "status": overview.state,
        "run_id": overview.run_id,
        "is_canceled": overview.is_canceled,
        "is_archived": overview.is_archived,
        "job_count": overview.total,
        "job_counts": overview.counts,
        "interrupted_jobs": overview.interrupted,
        "active_runners": overview.active_runners,
        "silent_runners": overview.silent_runners,
        "queued_allocations": overview.queued_allocations,
        "updated_at": updated,
    }


def status_document(
    report: WorkflowStatusReport, lines: Mapping[int, str], next_step: Mapping[str, Any] | None
) -> dict[str, Any]:
    """Return the status of a workflow as JSON values.

    Args:
        lines: The last line of standard error of failed jobs, by id of the job.
        next_step: The next step, as JSON values; None if nothing is left to do.
    """
    progress, overview = report.progress, report.progress.overview
    now_s = time.time()
    loads = {load.compute_node_id: load for load in progress.loads}
    return {
        **overview_values(overview),
        "status": report.state,
        "job_counts": report.counts,
        "interrupted_jobs": report.interrupted,
        "started_at": progress.started_at,
        "duration_s": report.duration_s,
        "remaining_s": report.remaining_s,
        "end_unknown": report.end_unknown,
        "groups": [
            {
                "first_name": group.first_name,
                "last_name": group.last_name,
                "job_count": group.count,
                "job_counts": group.counts,
                "waits_for": group.waits_for,
            }
            for group in report.groups.groups
        ],
        "group_count": report.groups.group_count,
        "failed_jobs": report.failed_count,
        "failed": [
            {
                "job_id": each.job.id,
                "job_name": each.job.name,
                "status": each.job.status,
                "exit": exit_text(each.result) or None,
                "exit_class": each.result and each.result.exit_class,
                "return_code": each.result and each.result.return_code,
                "completion_time": each.result and each.result.completion_time,
                "last_line": lines.get(each.job.id or 0) or None,
            }
            for each in report.failed
        ],
        "runners": [_runner_values(runner, loads.get(runner.id or 0), now_s) for runner in report.runners],
        "lost_runners": [runner.id for runner in report.lost_runners],
        "next": next_step,
        "next_command": next_step and next_step["command"],
    }


def _runner_values(runner: ComputeNodeRecord, load: RunnerLoad | None, now_s: float) -> dict[str, Any]:
    return {
        "compute_node_id": runner.id,
        "hostname": runner.hostname,
        "state": runner_state(runner, now_s),
        "start_time": runner.start_time,
        "last_heard_at": runner.last_heard_at,
        "num_cpus": runner.num_cpus,
        "memory_gb": runner.memory_gb,
        "jobs": load.jobs if load else 0,
        "claimed_jobs": load.claimed if load else 0,
        "used_cpus": load.num_cpus if load else 0,
        "used_memory_bytes": load.memory_bytes if load else 0,
    }
