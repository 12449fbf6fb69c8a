"""The status of one workflow: its progress, its first failures, the runners that work on it, and the time left."""

from datetime import datetime
from typing import Any, Final

from attrs import frozen

from torc_framework.client import TorcClient
from torc_framework.models.progress import JobGroups, WorkflowProgress
from torc_framework.models.records import ComputeNodeRecord, JobRecord, ResultRecord
from torc_framework.models.statuses import FAILURES, LIVE
from torc_framework.models.workflow_states import workflow_state
from torc_framework.models.workflow_views import ProgressView
from torc_framework.system.process_identity import is_dead_runner

MOST_FAILED: Final = 5
"""Most failed jobs that are returned."""


@frozen
class FirstFailure:
    """A job that failed, and how; the result is None if it was deleted."""

    job: JobRecord
    result: ResultRecord | None


@frozen
class WorkflowStatusReport:
    """The status of one workflow.

    Attributes:
        counts: Jobs by status label; jobs of dead runners are terminated, because they are interrupted.
        interrupted: How many of the terminated jobs run again.
        failed: The first jobs of those that failed.
        failed_count: The number of jobs that failed.
        runners: Active runners that are not known to be dead.
        lost_runners: Active runners that are known to be dead.
        remaining_s: Estimate of the seconds until all jobs have ended; None without one.
        end_unknown: What makes the end unknown, as a clause; None with an estimate, and if nothing is under way.
        duration_s: Seconds from the first start to the last end of an attempt; None unless nothing is under way.
    """

    progress: WorkflowProgress
    counts: dict[str, int]
    interrupted: int
    groups: JobGroups
    failed: tuple[FirstFailure, ...]
    failed_count: int
    runners: tuple[ComputeNodeRecord, ...]
    lost_runners: tuple[ComputeNodeRecord, ...]
    remaining_s: float | None
    end_unknown: str | None
    duration_s: float | None

    @property
    def state(self) -> str:
        """The state of the workflow in one word."""
        is_canceled = self.progress.overview.is_canceled
        is_silent = self.progress.overview.is_silent
        return workflow_state(self.counts, interrupted=self.interrupted, is_canceled=is_canceled, is_silent=is_silent)


def read_status(client: TorcClient, workflow_id: int, view: ProgressView | None = None) -> WorkflowStatusReport:
    """Return the status of a workflow. The number of requests does not grow with its jobs.

    Args:
        view: What was asked for already, with whose numbers the report shall agree.
    """
    progress = client.progress(workflow_id)
    if view is not None:
        progress.overview = view.overview
    overview = progress.overview
    runners: tuple[ComputeNodeRecord, ...] = ()
    lost: tuple[ComputeNodeRecord, ...] = ()
    if overview.active_runners:
        active = list(client.iterate(ComputeNodeRecord, workflow_id=workflow_id, is_active=True))
        lost = tuple(runner for runner in active if is_dead_runner(runner))
        runners = tuple(runner for runner in active if runner not in lost)
    counts, interrupted = dict(overview.counts), overview.interrupted
    if not runners:  # what dead runners held runs again with the next one
        interrupted += terminate_live(counts)
    is_worked_on = any(counts.get(status.label) for status in LIVE)
    if not is_worked_on:
        view = None
    elif view is None:
        view = client.progress_view(workflow_id)
    estimate = None if view is None else view.estimate
    return WorkflowStatusReport(
        progress,
        counts,
        interrupted,
        client.job_groups(workflow_id),
        tuple(_failed_jobs(client, workflow_id, counts)),
        sum(counts.get(status.label, 0) for status in FAILURES) - interrupted,
        runners,
        lost,
        None if estimate is None else estimate.seconds,
        None if view is None else view.end_unknown,
        None if is_worked_on else run_duration_s(progress),
    )


def terminate_live(counts: dict[str, int]) -> int:
    """Count jobs that dead runners held as terminated, in numbers of jobs by status; return how many these are."""
    lost = sum(counts.pop(status.label, 0) for status in LIVE)
    if lost:
        counts["terminated"] = counts.get("terminated", 0) + lost
    return lost


def _failed_jobs(client: TorcClient, workflow_id: int, counts: dict[str, int]) -> list[FirstFailure]:
    found: list[FirstFailure] = []
    for status in FAILURES:
        if not counts.get(status.label):
            continue
        left = MOST_FAILED - len(found)
        chosen: dict[str, Any] = {"workflow_id": workflow_id, "status": status.label, "q": "interrupted:no"}
        for job in client.iterate(JobRecord, limit=left, **chosen):
            if job.is_interrupted:  # the server is older than ``q``
                continue
            results = client.find(ResultRecord, workflow_id=workflow_id, job_id=job.id, limit=1)
            found.append(FirstFailure(job, results[0] if results else None))
    return found


def _seconds(text: str) -> float | None:
    try:
        return datetime.fromisoformat(text).timestamp()
    except ValueError:  # another program stored it
        return None


def run_duration_s(progress: WorkflowProgress) -> float | None:
    """Return the seconds from the first start to the last end of an attempt of the newest run; None without any."""
    if not progress.recent or progress.started_at is None:
        return None
    first, last = _seconds(progress.started_at), _seconds(progress.recent[0])
    return None if first is None or last is None else max(0.0, last - first)
