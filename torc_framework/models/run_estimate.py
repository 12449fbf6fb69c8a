"""When a run may be done: an interval from the run times of what has completed.

With P places that are busy, work W that is left (the sum of expected run times), and C the expected length of the
longest chain of jobs that is left, a run without idle places takes at least ``max(W / P, C)`` and at most
``W / P + C * (1 - 1 / P)`` (Graham, "Bounds on multiprocessing timing anomalies", 1969, theorem 1). The estimate is the
middle of the two; the interval is wider by what the spread of the run times adds.
"""

import math
from collections.abc import Iterable, Sequence
from typing import Final

from attrs import define, frozen

_NORMAL_90: Final = 1.2816
"""Standard deviations from the mean to the 90 % quantile of a normal distribution: 80 % are between -it and it."""
UNKNOWN_SPREAD: Final = 1.0
"""Standard deviation of run times that are not known, as a part of their assumed mean."""
RUNNING_LEFT: Final = 0.5
"""Part of its run time that a running job has left on average."""


@define
class RunTimes:
    """Run times in seconds of completed attempts of like jobs."""

    count: int = 0
    total: float = 0.0
    squares: float = 0.0

    def add(self, seconds: float) -> None:
        """Add one run time."""
        self.count += 1
        self.total += seconds
        self.squares += seconds * seconds

    @classmethod
    def merged(cls, several: Iterable["RunTimes"]) -> "RunTimes":
        """Return the run times of several groups of jobs as one."""
        whole = cls()
        for each in several:
            whole.count += each.count
            whole.total += each.total
            whole.squares += each.squares
        return whole

    @property
    def mean(self) -> float:
        """Their mean."""
        return self.total / self.count

    @property
    def variance(self) -> float:
        """Their sample variance; the square of the mean for a single one."""
        if self.count < 2:
            return self.mean**2
        return max(0.0, (self.squares - self.total**2 / self.count) / (self.count - 1))


@frozen
class WorkLeft:
    """Like jobs that are left.

    Attributes:
        stage: Number of their stage.
        waiting: Jobs that have not begun.
        running: Jobs that run.
        times: Run times of those that completed; None without any.
    """

    stage: int
    waiting: int
    running: int
    times: RunTimes | None


@frozen
class Seconds:
    """An expected duration in seconds, with the ends of its interval."""

    expected: float
    least: float
    most: float


def seconds_left(work: Sequence[WorkLeft], places: float, others: RunTimes) -> Seconds:
    """Return how long the jobs that are left may take.

    A chain is taken to have one job of each stage that has jobs left: the expected longest of it.

    Args:
        work: The jobs that are left.
        places: Jobs that run at the same time, more than 0.
        others: Run times, one at least, that stand for those of jobs without any.
    """
    sum_s = variance = 0.0
    longest: dict[int, float] = {}
    for each in work:
        count = each.waiting + RUNNING_LEFT * each.running
        if each.times is None:
            mean, spread, samples = others.mean, (UNKNOWN_SPREAD * others.mean) ** 2, 1
        else:
            mean, spread, samples = each.times.mean, each.times.variance, each.times.count
        sum_s += count * mean
        variance += count * spread + count**2 * spread / samples  # of the jobs, and of the mean that is taken for them
        own = mean if each.waiting else RUNNING_LEFT * mean
        longest[each.stage] = max(longest.get(each.stage, 0.0), own)
    chain_s = sum(longest.values())
    least = max(sum_s / places, chain_s)
    most = max(least, sum_s / places + chain_s * max(0.0, 1 - 1 / places))
    margin = _NORMAL_90 * math.sqrt(variance) / places
    return Seconds((least + most) / 2, max(0.0, least - margin), most + margin)
