"""Relations between failed jobs and the jobs that were canceled because of them."""

from collections.abc import Iterable, Sequence
from typing import Final

from torc_framework.graph.waiting_graph import NOTHING, WaitingGraph
from torc_framework.models.statuses import FAILURES, JobStatus
from torc_framework.models.waiting_jobs import GroupMembers, WaitingJobs

FAILED: Final = frozenset(status.label for status in FAILURES)
CANCELED: Final = JobStatus.CANCELED.label


def failed_upstream_jobs(job_id: int, canceled: Iterable[WaitingJobs], members: Iterable[GroupMembers]) -> list[int]:
    """Return the failed jobs because of which a job was canceled, directly or through canceled ones.

    Args:
        canceled: The canceled jobs of the workflow.
        members: The members of its dependency groups.
    """
    graph = WaitingGraph(canceled, members, lambda _, job_class: 0 if job_class.status in FAILED else None)
    return sorted(graph.ancestors(job_id))


def jobs_canceled_because_of(
    groups: Sequence[Sequence[int]], canceled: Iterable[WaitingJobs], members: Iterable[GroupMembers]
) -> list[list[int]]:
    """Return, for each group of failed jobs, the jobs that were canceled because of it; each job once.

    A job with failures of several groups before it is counted under the first of them.
    """
    number = {job_id: place for place, group in enumerate(groups) for job_id in group}
    graph = WaitingGraph(canceled, members, lambda job_id, _: number.get(job_id))
    found: list[list[int]] = [[] for _ in groups]
    for job_id, place in zip(graph.jobs, graph.least_values(), strict=True):
        if place != NOTHING:
            found[place].append(job_id)
    return found
