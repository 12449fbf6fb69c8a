"""The summary of a workflow: jobs by status, execution time, walltime."""

from typing import Any

from attrs import frozen

from torc_framework.client import TorcClient
from torc_framework.models.records import WorkflowRecord
from torc_framework.models.statuses import JobStatus
from torc_framework.reports import formatting


@frozen
class WorkflowSummary:
    """The summary of a workflow.

    Attributes:
        interrupted: Number of terminated jobs that the next runner continues.
        exec_time_s: Sum of the run times of all jobs' present results.
        walltime_s: Time from the first start to the last end of each run, added up over the runs.
    """

    workflow: WorkflowRecord
    counts: dict[str, int]
    interrupted: int
    is_complete: bool
    exec_time_s: float
    walltime_s: float

    def as_dict(self) -> dict[str, Any]:
        """Return Torc's report; ``is_complete`` and ``interrupted_jobs`` are additions."""
        return {
            "workflow_id": self.workflow.id,
            "workflow_name": self.workflow.name,
            "workflow_user": self.workflow.user,
            "total_jobs": sum(self.counts.values()),
            "jobs_by_status": {status.label: self.counts.get(status.label, 0) for status in JobStatus},
            "is_complete": self.is_complete,
            "interrupted_jobs": self.interrupted,
            "total_exec_time_minutes": self.exec_time_s / 60,
            "total_exec_time_formatted": formatting.duration(self.exec_time_s),
            "walltime_seconds": round(self.walltime_s, 3),
            "walltime_formatted": formatting.duration(self.walltime_s),
        }


def summarize(client: TorcClient, workflow_id: int) -> WorkflowSummary:
    """Return the summary of a workflow, complete or not."""
    workflow = client.get(WorkflowRecord, workflow_id)
    jobs = client.job_counts(workflow_id)
    runs = client.run_totals(workflow_id)
    total = sum(run.exec_time_s for run in runs)
    walltime = sum((run.ended_s or 0.0) - (run.started_s or 0.0) for run in runs)
    is_complete = client.is_complete(workflow_id).is_complete
    return WorkflowSummary(workflow, jobs.counts, jobs.interrupted, is_complete, total, walltime)
