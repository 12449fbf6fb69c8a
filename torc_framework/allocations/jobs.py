"""The jobs of an allocation."""

from torc_framework.client import TorcClient
from torc_framework.models.records import ComputeNodeRecord, JobRecord, ResultRecord, ScheduledComputeNodeRecord


def jobs_of_allocation(client: TorcClient, allocation: ScheduledComputeNodeRecord) -> list[JobRecord]:
    """Return the jobs that the runners of an allocation ran in any run, or run now."""
    workflow_id = allocation.workflow_id
    nodes = client.find(ComputeNodeRecord, workflow_id=workflow_id, scheduled_compute_node_id=allocation.id)
    ran: set[int | None] = set()
    for node in nodes:
        ended = client.iterate(ResultRecord, workflow_id=workflow_id, all_runs=True, compute_node_id=node.id)
        running = client.iterate(JobRecord, workflow_id=workflow_id, active_compute_node_id=node.id)
        ran |= {result.job_id for result in ended} | {job.id for job in running}
    return [job for job in client.iterate(JobRecord, workflow_id=workflow_id) if job.id in ran] if ran else []
