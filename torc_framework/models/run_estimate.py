"""When a run may be done: an interval from the run times of what has completed.

With P places that are busy, work W that is left (the sum of expected run times), and C the length of the longest chain
of jobs that is left, a run that leaves no place idle while a job could run takes at least ``max(W / P, C)`` and at most
``W / P + C * (1 - 1 / P)`` (Graham, "Bounds on multiprocessing timing anomalies", 1969, theorem 1). The chain has one
job of each stage: a typical one for the lower bound; for the upper bound the longest of the N that run together. That
is about ``spread * ln(N)`` longer than the mean if run times have an exponential distribution, and is taken to be no
longer than what was seen. The estimate is the middle of the bounds; the interval is wider by what the spread of the run
times adds to the work.
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
    longest: float = 0.0

    def add(self, seconds: Sequence[float]) -> None:
        """Add run times, one at least."""
        self.count += len(seconds)
        self.total += sum(seconds)
        self.squares += sum([each * each for each in seconds])
        self.longest = max(self.longest, *seconds)

    @classmethod
    def merged(cls, several: Iterable["RunTimes"]) -> "RunTimes":
        """Return the run times of several groups of jobs as one."""
        whole = cls()
        for each in several:
            whole.count += each.count
            whole.total += each.total
            whole.squares += each.squares
            whole.longest = max(whole.longest, each.longest)
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
    """Return how long the jobs that are left may take; the interval has the end in four of five cases.

    Args:
        work: The jobs that are left.
        places: Jobs that run at the same time, more than 0.
        others: Run times, one at least, that stand for those of jobs without any.
    """
    sum_s = variance = 0.0
    typical: dict[int, float] = {}
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
        together = max(1.0, min(places, each.waiting + each.running))
        typical[each.stage] = max(typical.get(each.stage, 0.0), own)
        above = math.sqrt(spread) * math.log(together)
        most_own = own + (above if each.times is None else min(above, each.times.longest - mean))
        longest[each.stage] = max(longest.get(each.stage, 0.0), most_own)
    least = max(sum_s / places, sum(typical.values()))
    most = max(least, sum_s / places + sum(longest.values()) * max(0.0, 1 - 1 / places))
    margin = _NORMAL_90 * math.sqrt(variance) / places
    return Seconds((least + most) / 2, max(0.0, least - margin), most + margin)
