"""Jobs that were canceled are counted under the failure that caused it."""

from torc_framework.forensics.failure_causes import failed_upstream_jobs, jobs_canceled_because_of
from torc_framework.models.waiting_jobs import GroupMembers, JobClass, WaitingJobs

FAILED = [JobClass("failed")]


def test_through_canceled_jobs_and_groups() -> None:
    """Each canceled job is counted once, under the first group that it hangs on."""
    # 1 and 2 failed, 3 to 5 and 7 are canceled; 4 waits for 3, 3 for 1, 5 for a group of 1 and 2.
    page = WaitingJobs([3, 4, 5, 7], [3, 4, 5, 7], [1, 1, 1, 0], [1, 3, -9], FAILED, [1, 0], has_more=False)
    members = GroupMembers([9, 1, 9, 2], FAILED, [1, 0, 2, 0], has_more=False)
    assert jobs_canceled_because_of([[1], [2]], [page], [members]) == [[3, 4, 5], []]
    assert jobs_canceled_because_of([[2], [1]], [page], [members]) == [[5], [3, 4]]
    assert failed_upstream_jobs(4, [page], [members]) == [1]
    assert failed_upstream_jobs(5, [page], [members]) == [1, 2]
    assert failed_upstream_jobs(7, [page], [members]) == []
