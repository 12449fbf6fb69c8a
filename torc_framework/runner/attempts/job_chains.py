"""Goes on with jobs that follow one another, without waiting for the server in between.

The server says in advance which jobs wait for a job in hand and for nothing else. When that one
completes, its follower begins at once and is named in the report of the end; the server claims it
for this runner in the transaction that records the end, or refuses it.
"""

from collections.abc import Callable, Mapping
from typing import Final

from torc_framework.models.exchange import ClaimedJob, EndedReport
from torc_framework.models.statuses import JobStatus
from torc_framework.runner.attempts.held_jobs import HeldJob, JobStage
from torc_framework.runner.attempts.workload import Workload

FEW: Final = 4
"""With fewer known followers than this, the server is asked for more."""


class JobChains:
    """Knows what follows the jobs in hand.

    Args:
        workload: Everything in hand.
        left_s: Seconds of walltime left; None is without end.
    """

    def __init__(self, workload: Workload, left_s: Callable[[], float | None]) -> None:
        self._workload, self._left_s = workload, left_s

    def learn(self, following: Mapping[int, list[ClaimedJob]]) -> None:
        """Note what the server said; some of it may have begun meanwhile."""
        for job_id, chain in following.items():
            for done, head in enumerate([job_id, *(job.id for job in chain)]):
                if (item := self._workload.items.get(head)) is not None:
                    item.following = chain[done:]

    def after(self, item: HeldJob, report: EndedReport) -> ClaimedJob | None:
        """Return the job to go on with when this one has ended so.

        It asks for the same as this one, so there is room for it; but others that wait come first.
        """
        if not item.following or report.status != JobStatus.COMPLETED.label:
            return None
        follower = item.following[0]
        has_begun = follower.id in self._workload.items  # adopted from a dead runner
        if has_begun or (not self._workload.count(JobStage.WAITING, JobStage.QUEUED) and self._has_time(follower)):
            return follower
        return None

    def _has_time(self, job: ClaimedJob) -> bool:
        left, asked = self._left_s(), job.resources.runtime_s
        return left is None or (asked is not None and asked <= left)

    def is_running_out(self) -> bool:
        """Say whether a running job has few known followers left."""
        return any(len(item.following) < FEW for item in self._workload.at(JobStage.RUNNING))
