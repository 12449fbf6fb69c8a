"""The workload of a runner: its held jobs by stage, and the decision which of them start next."""

from collections import Counter
from collections.abc import Iterable
from math import ceil
from typing import Any, Final

from torc_framework.executors import Attempt, AttemptKey, Launcher
from torc_framework.models.exchange import ClaimedJob, Vacancy
from torc_framework.runner.attempts.held_jobs import AttemptFactory, HeldJob, JobStage
from torc_framework.runner.attempts.launchers import Launchers
from torc_framework.runner.attempts.resource_pool import ResourcePool
from torc_framework.runner.attempts.waiting_reasons import WaitingReasons

HORIZON_S: Final = 0.5
"""Jobs are claimed ahead for about this many seconds of work."""
ROUND_TRIPS: Final = 2
"""And for so many round trips to the server and to where they run."""
MOST_AHEAD: Final = 128
"""Most jobs that are claimed ahead, unless more end between two calls to the server."""
CALL_INTERVAL_S: Final = 0.125
"""Seconds between two calls to the server while jobs are at hand, besides the round trips: ends are collected by the
supervisor (`MESSAGE_DELAY_S`) and then by the runner (`LINGER_S`), and both processes may have to wait for a CPU.
"""
LONGEST_AHEAD: Final = 2_000
"""Most jobs that are claimed ahead at all, as from a server on a slow disk."""
RATE_SMOOTHING: Final = 0.7
"""Weight of the past in the smoothed interval between two ends."""


class EndRate:
    """How fast attempts end, and from that how many jobs to claim ahead.

    Attributes:
        round_trip_s: How long the way to the server and to the launcher that is farthest away takes, there and back.
    """

    def __init__(self, now: float) -> None:
        self._last, self._interval_s = now, float("inf")
        self._is_at_work = False
        self.round_trip_s = 0.0

    @property
    def _horizon_s(self) -> float:
        return HORIZON_S + ROUND_TRIPS * self.round_trip_s

    def observe(self, running: int, now: float) -> None:
        """Take note of how many attempts run; a time without any does not count.

        It is the time that the server took to send more, and says nothing about how fast attempts end.
        """
        if running and not self._is_at_work:
            self._last = now
        self._is_at_work = running > 0

    def ended(self, number: int, now: float) -> None:
        """Count attempts that ended."""
        interval = (now - self._last) / number
        known = self._interval_s != float("inf")
        self._interval_s = RATE_SMOOTHING * self._interval_s + (1 - RATE_SMOOTHING) * interval if known else interval
        self._last = now

    def ahead(self, now: float) -> int:
        """Return how many jobs to hold beyond those that run."""
        interval = max(self._interval_s, now - self._last if self.is_slow(now) else 0.0, 1e-6)
        between_calls_s = CALL_INTERVAL_S + ROUND_TRIPS * self.round_trip_s
        most = max(MOST_AHEAD, min(LONGEST_AHEAD, int(between_calls_s / interval)))
        return min(most, int(self._horizon_s / interval))

    def is_slow(self, now: float) -> bool:
        """Return whether no attempt has ended for as long as jobs are claimed ahead."""
        return now - self._last > self._horizon_s


class Workload:
    """The held jobs. Starts those that fit into the resource pool, and queues those that can follow them.

    Attributes:
        items: The held jobs by id.
        waiting: What those wait for that were given to a launcher and have not begun.
    """

    def __init__(self, pool: ResourcePool, launchers: Launchers, attempts: AttemptFactory) -> None:
        self._pool, self._launchers, self._attempt_factory = pool, launchers, attempts
        self.items: dict[int, HeldJob] = {}
        self.waiting = WaitingReasons()
        self._staged: dict[JobStage, dict[AttemptKey, HeldJob]] = {stage: {} for stage in JobStage}
        self._lanes: Counter[tuple[str, int | None]] = Counter()

    def __len__(self) -> int:
        return len(self.items)

    def at(self, stage: JobStage) -> list[HeldJob]:
        """Return the items of a stage, in the order in which they reached it."""
        return list(self._staged[stage].values())

    def count(self, *stages: JobStage) -> int:
        """Return how many items are in these stages."""
        return sum(len(self._staged[stage]) for stage in stages)

    def find(self, key: AttemptKey) -> HeldJob | None:
        """Return the held job of an attempt; None if it is not held."""
        item = self.items.get(key.job_id)
        return item if item is not None and item.key == key else None

    def has_place(self, key: AttemptKey) -> bool:
        """Return whether an attempt has a place that another can take when it ends.

        It occupies resources, or it is queued: a short attempt may end before the runner has heard that it began.
        """
        item = self.find(key)
        return self._pool.has(key) or (item is not None and item.stage is JobStage.QUEUED)

    def holds(self, job: ClaimedJob) -> bool:
        """Return whether a claimed job is held; if its refused attempt is being stopped, keep the claim for its end."""
        held = self.items.get(job.id)
        if held is not None and held.is_refused:
            held.claimed_again = job
        return held is not None

    def add(
        self,
        job: ClaimedJob,
        executor: str,
        stage: JobStage = JobStage.WAITING,
        *,
        options: Any = None,
        predecessor: HeldJob | None = None,
    ) -> HeldJob:
        """Hold a job, which may stand behind another in a chain."""
        key, lane = AttemptKey(job.id, job.attempt_id), self._pool.lane(job.resources)
        item = HeldJob(job, executor, key, stage, lane, options)
        if predecessor is not None:
            predecessor.pass_chain_on(item)
        self._hold(item)
        return item

    def add_begun(self, item: HeldJob) -> None:
        """Hold a job that its launcher has begun in the place of another."""
        item.stage = JobStage.RUNNING
        self._hold(item)

    def _hold(self, item: HeldJob) -> None:
        self.items[item.key.job_id] = item
        self._staged[item.stage][item.key] = item
        if item.stage is JobStage.RUNNING:
            self._occupy(item)

    def move(self, item: HeldJob, stage: JobStage) -> None:
        """Move an item to another stage."""
        self._leave_stage(item)
        item.stage = stage
        self._staged[stage][item.key] = item
        if stage is JobStage.RUNNING:
            self._occupy(item)

    def drop(self, item: HeldJob) -> None:
        """Hold an item no more."""
        self._leave_stage(item)
        item.stage = JobStage.DROPPED
        self.waiting.forget(item.key)
        del self.items[item.key.job_id]

    def _occupy(self, item: HeldJob) -> None:
        item.gpus = self._pool.take(item.key, item.job.resources)
        self._lanes[item.executor, item.lane] += 1

    def _leave_stage(self, item: HeldJob) -> None:
        del self._staged[item.stage][item.key]
        if item.stage is JobStage.RUNNING:
            self._pool.release(item.key)
            self._lanes[item.executor, item.lane] -= 1

    # --- what starts next ------------------------------------------------------------------------

    def fill(self) -> None:
        """Start the items that fit, and queue those that can follow a running one in its lane."""
        if not self._staged[JobStage.WAITING] and not self._staged[JobStage.QUEUED]:
            return
        starts: dict[str, list[HeldJob]] = {}
        for stage in (JobStage.QUEUED, JobStage.WAITING):
            for item in self._that_fit(stage):
                self.move(item, JobStage.RUNNING)
                starts.setdefault(item.executor, []).append(item)
        for executor, items in starts.items():
            self._launchers.get(executor).start(self._attempts(items))
        followers: dict[str, list[HeldJob]] = {}
        for item in self._that_follow():
            self.move(item, JobStage.QUEUED)
            followers.setdefault(item.executor, []).append(item)
        for executor, items in followers.items():
            self._launchers.get(executor).queue(self._attempts(items))

    def _that_fit(self, stage: JobStage) -> Iterable[HeldJob]:
        for item in self.at(stage):
            if not self._pool.room():
                return
            if self._pool.fits(item.job.resources):
                yield item

    def _that_follow(self) -> Iterable[HeldJob]:
        """Yield waiting items that can start in the place of a running one, up to the first that cannot.

        Items after that one are not queued: queued attempts would take over each other's resources, and the resources
        that the first one waits for would never be free at the same time.
        """
        for item in self.at(JobStage.WAITING):
            can_follow = item.lane is not None and self._lanes[item.executor, item.lane]
            if not can_follow or not self._launcher(item).capabilities.queues:
                return
            yield item

    def _attempts(self, items: list[HeldJob]) -> list[Attempt]:
        return [self._attempt_factory.make(item) for item in items]

    def _launcher(self, item: HeldJob) -> Launcher:
        return self._launchers.get(item.executor)

    def give_share(self, vacancies: Iterable[Vacancy]) -> list[HeldJob]:
        """Give up a share of the items that have not begun, for runners that wait; the newest, that fit there.

        Queued items are withdrawn from their launchers, which report those that have not begun meanwhile.

        Returns:
            Those that no launcher has: they can be released at once.
        """
        waiting, queued = self.at(JobStage.WAITING), self.at(JobStage.QUEUED)
        places = self._pool.room() + self.count(JobStage.RUNNING)
        left = [*queued, *waiting]
        given: set[AttemptKey] = set()
        for vacancy in vacancies:
            number = ceil(len(left) * vacancy.slots / max(1, vacancy.slots + places))
            fitting = [item for item in left if vacancy.free is None or item.job.resources.fits(vacancy.free)]
            given.update(item.key for item in fitting[-number:] if number)
            left = [item for item in left if item.key not in given]
        self.withdraw([item for item in queued if item.key in given])
        return [item for item in waiting if item.key in given]

    # --- stopping --------------------------------------------------------------------------------

    def stop(self, items: list[HeldJob], force: bool) -> None:
        """Stop these items through their launchers."""
        for executor, keys in _keys_by_executor(items).items():
            self._launchers.get(executor).stop(keys, force=force)

    def refuse(self, item: HeldJob) -> None:
        """Stop a running item whose end is not to be reported."""
        item.is_refused = True
        self.stop([item], True)

    def withdraw(self, items: Iterable[HeldJob]) -> None:
        """Withdraw queued items from their launchers."""
        for executor, keys in _keys_by_executor(items).items():
            self._launchers.get(executor).withdraw(keys)


def _keys_by_executor(items: Iterable[HeldJob]) -> dict[str, list[AttemptKey]]:
    keys: dict[str, list[AttemptKey]] = {}
    for item in items:
        keys.setdefault(item.executor, []).append(item.key)
    return keys
