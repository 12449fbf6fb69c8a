"""Orders by which a launcher continues a chain of jobs itself, without the way to the runner and back.

The runner gives them only where exit code 0 can mean nothing but a completed job: the job declares no output files,
and no plugin classifies clean exits. Whether a follower was begun, the launcher reports before the end of its
predecessor. The runner then names it in the report of that end, as it does with a follower that it starts itself.
"""

from collections.abc import Callable, Iterable, Iterator
from typing import Final

from torc_framework.errors import LaunchError, TorcError
from torc_framework.executors import Attempt, AttemptFollowed, AttemptKey
from torc_framework.models.exchange import ClaimedJob
from torc_framework.runner.attempts.held_jobs import AttemptFactory, HeldJob, JobStage
from torc_framework.runner.attempts.launchers import Launchers
from torc_framework.runner.attempts.workload import Workload

_Order = tuple[AttemptKey, HeldJob]
"""The attempt that is waited for, and the job that follows it."""


class FollowOrders:
    """The followers that launchers were offered and have not begun.

    Args:
        workload: The held jobs.
        launchers: Begin the followers.
        attempts: Makes the attempts.
        has_time: Returns whether a job may be started after a number of seconds.
        is_permitted: No plugin classifies clean exits; otherwise no order is given.
    """

    def __init__(
        self,
        workload: Workload,
        launchers: Launchers,
        attempts: AttemptFactory,
        has_time: Callable[[ClaimedJob, float], bool],
        *,
        is_permitted: bool,
    ) -> None:
        self._workload, self._launchers, self._attempts = workload, launchers, attempts
        self._has_time, self._is_permitted = has_time, is_permitted
        self._offered: dict[AttemptKey, _Order] = {}
        """By the key of the follower."""
        self._executors: set[str] = set()
        """Executors with offers that were not given up."""

    def update(self) -> None:
        """Offer the known followers of running jobs; give up all offers while other jobs wait for resources."""
        if not self._is_permitted:
            return
        if self._workload.count(JobStage.WAITING, JobStage.QUEUED):
            self.give_up()
            return
        for item in self._workload.at(JobStage.RUNNING):
            if item.following:
                self._offer(item)

    def _offer(self, item: HeldJob) -> None:
        if item.lane is None or item.is_refused or item.stop_reason is not None:
            return
        if not self._launchers.get(item.executor).capabilities.follows:
            return
        orders = list(self._new_orders(item))
        if orders:
            self._executors.add(item.executor)
            self._offered |= {held.key: (predecessor, held) for predecessor, held in orders}
            self._launchers.get(item.executor).follow(list(self._made(orders)))

    def _made(self, orders: Iterable[_Order]) -> Iterator[tuple[AttemptKey, Attempt]]:
        for predecessor, held in orders:
            yield predecessor, self._attempts.make(held)

    def _new_orders(self, item: HeldJob) -> Iterator[_Order]:
        """Yield the followers of a running job that were not offered yet, up to the first that is not possible.

        Each may have to wait for as long as all jobs before it may run.
        """
        before, key, wait_s = item.job, item.key, 0.0
        for job in item.following:
            wait_s += before.resources.runtime_s or 0.0
            if before.output_files or not self._may_follow(item, job, wait_s):
                return
            follower = AttemptKey(job.id, job.attempt_id)
            offered = self._offered.get(follower)
            if offered is None or offered[0] != key:
                try:
                    options = self._launchers.options_for(job, item.executor)
                except TorcError:
                    return  # reported when the runner itself starts the job
                yield key, HeldJob(job, item.executor, follower, lane=item.lane, options=options)
            before, key = job, follower

    def _may_follow(self, item: HeldJob, job: ClaimedJob, wait_s: float) -> bool:
        is_elsewhere = job.executor != item.job.executor
        return not (is_elsewhere or job.is_early or job.id in self._workload.items) and self._has_time(job, wait_s)

    def give_up(self) -> None:
        """Let launchers begin no more followers."""
        for executor in self._executors:
            self._launchers.get(executor).unfollow()
        if self._executors:
            self._executors.clear()
            # The jobs stay known until their predecessors end, because a launcher may have begun one already.
            self._offered = {key: (_NOBODY, held) for key, (_, held) in self._offered.items()}

    def begun(self, event: AttemptFollowed) -> HeldJob:
        """Hold a job that its launcher has begun in the place of one that has ended by itself; return it.

        Raises:
            LaunchError: it was not offered.
        """
        item, order = self._workload.find(event.predecessor), self._offered.pop(event.key, None)
        if item is None or order is None:
            raise LaunchError(f"an attempt of job {event.key.job_id} was begun that the runner has not offered")
        item.follower = follower = order[1]
        item.stop_reason, item.stop_cause, item.stop_forced = None, None, False  # no stop has reached it
        item.pass_chain_on(follower)
        self._workload.add_begun(follower)
        if item.is_refused:
            self._workload.refuse(follower)
        return follower

    def drop_behind(self, item: HeldJob) -> None:
        """Forget the followers of a job that has ended without one."""
        for job in item.following:
            self._offered.pop(AttemptKey(job.id, job.attempt_id), None)


_NOBODY: Final = AttemptKey(0, 0)
"""Stands for the predecessor of a follower whose offer was given up."""
