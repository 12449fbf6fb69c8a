"""Chains of jobs that a runner continues without waiting for the server in between.

The server tells in advance which jobs wait for a held job and for nothing else. When the held job completes, the runner
starts its follower at once and names it in the report of the end. The server claims the follower for this runner in the
transaction that records the end, or refuses it.
"""

from collections.abc import Callable, Mapping

from torc_framework.models.exchange import ClaimedJob, EndedReport
from torc_framework.models.statuses import JobStatus
from torc_framework.runner.attempts.held_jobs import HeldJob, JobStage
from torc_framework.runner.attempts.workload import Workload


class JobChains:
    """The known followers of the held jobs.

    Args:
        workload: The held jobs.
        left_s: Returns the seconds of walltime left; None is unlimited.
    """

    def __init__(self, workload: Workload, left_s: Callable[[], float | None]) -> None:
        self._workload, self._left_s = workload, left_s

    def learn(self, following: Mapping[int, list[ClaimedJob]]) -> None:
        """Store the chains of an answer, whose first jobs may have begun meanwhile.

        An answer that shows no more of a chain than was known shows its end, if a part of what was told before is used
        up. If nothing is used up, two calls have asked the same.
        """
        for job_id, chain in following.items():
            for done, head in enumerate([job_id, *(job.id for job in chain)]):
                if (item := self._workload.items.get(head)) is not None:
                    is_end = len(chain) - done == len(item.following) < item.told
                    item.following, item.told = chain[done:], 0 if is_end else len(chain)

    def after(self, item: HeldJob, report: EndedReport, *, may_start: bool) -> ClaimedJob | None:
        """Return the job to start now that this one has ended, or that its launcher has begun; None without any.

        A follower requests the same resources as this job, so they are free for it. Jobs that wait already go first.

        Args:
            item: The job that has ended.
            report: Its end.
            may_start: The runner starts jobs at present.
        """
        is_completed = report.status == JobStatus.COMPLETED.label
        if item.follower is not None:
            if is_completed:
                return item.follower.job
            self._workload.refuse(item.follower)  # a plugin has classified what it had declared not to classify
        if not item.following or not is_completed or not may_start:
            return None
        follower = item.following[0]
        has_begun = follower.id in self._workload.items  # adopted from a dead runner
        if has_begun or (not self._workload.count(JobStage.WAITING, JobStage.QUEUED) and self.has_time(follower)):
            return follower
        return None

    def has_time(self, job: ClaimedJob, wait_s: float = 0.0) -> bool:
        """Return whether a job may be started in the walltime that is left.

        Args:
            job: The job.
            wait_s: How many seconds from now it starts at the latest.
        """
        left, asked = self._left_s(), job.resources.runtime_s
        return left is None or (asked is not None and wait_s + asked <= left)

    def running_out(self, ahead: int) -> list[int]:
        """Return the ids of the running jobs for whose chains the next exchange asks; none if other jobs go first.

        Args:
            ahead: Number of jobs that the runner could hold beyond those that run, which grows with their rate.
        """
        if self._workload.count(JobStage.WAITING, JobStage.QUEUED):
            return []
        return [item.key.job_id for item in self._workload.at(JobStage.RUNNING) if item.knows_fewer_than(ahead)]

    def is_running_out(self) -> bool:
        """Return whether half of a chain that the server has told is used up, so that the next exchange is urgent."""
        return any(item.knows_fewer_than(0) for item in self._workload.at(JobStage.RUNNING))
