"""Jobs that were canceled are counted under the failure that caused it."""

from torc_framework.forensics.failure_causes import (
    downstream_of,
    failed_upstream_jobs,
    jobs_canceled_because_of,
    upstream_of,
)
from torc_framework.models.plan import Barrier
from torc_framework.models.records import JobRecord
from torc_framework.models.responses import DependencyGraph


def jobs(**statuses: str) -> dict[int, JobRecord]:
    """Return jobs ``j1``, ``j2``, ... with these statuses."""
    return {
        int(name[1:]): JobRecord(id=int(name[1:]), workflow_id=1, name=name, command="true", status=status)
        for name, status in statuses.items()
    }


def test_through_canceled_jobs_and_groups() -> None:
    """Each canceled job is counted once, under the first group that it hangs on."""
    there = jobs(j1="failed", j2="failed", j3="canceled", j4="canceled", j5="canceled", j6="completed", j7="canceled")
    graph = DependencyGraph([(3, 1), (4, 3), (6, 1)], [Barrier([1, 2], [5])])
    assert jobs_canceled_because_of([[1], [2]], downstream_of(graph), there) == [[3, 4, 5], []]
    assert jobs_canceled_because_of([[2], [1]], downstream_of(graph), there) == [[5], [3, 4]]
    assert failed_upstream_jobs(4, upstream_of(graph), there) == [1]
    assert failed_upstream_jobs(5, upstream_of(graph), there) == [1, 2]
    assert failed_upstream_jobs(7, upstream_of(graph), there) == []
