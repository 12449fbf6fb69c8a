"""When a run may be done: an interval from the run times of what has completed.

With P places that are busy, work W that is left (the sum of expected run times), and C the length of the longest chain
of jobs that is left, a run that leaves no place idle while a job could run takes at least ``max(W / P, C)`` and at most
``W / P + C * (1 - 1 / P)`` (Graham, "Bounds on multiprocessing timing anomalies", 1969, theorem 1). The chain has one
job of each stage: a typical one for the lower bound; for the upper bound the longest of the N that run together. That
is about ``spread * ln(N)`` longer than the mean if run times have an exponential distribution, and is taken to be no
longer than what was seen. The estimate is the middle of the bounds; the interval is wider by what the spread of the run
times adds to the work.

`end_of_run` decides whether there is an estimate: all that shows an end, or what makes it unknown, has it from there.
"""

import math
from collections.abc import Iterable, Sequence
from typing import Final

from attrs import define, frozen

from torc_framework.text.quantities import duration_text

_NORMAL_90: Final = 1.2816
"""Standard deviations from the mean to the 90 % quantile of a normal distribution: 80 % are between -it and it."""
RUNNING_LEFT: Final = 0.5
"""Part of its run time that a running job has left on average."""
REPORTED_AFTER_S: Final = 2.0
"""How long after its end an attempt may still count as running, because the end is not reported yet."""
MOST_BY_RATE: Final = 2.0
"""How many times as long as estimated what is left may take at the measured rate."""
LEAST_COMPARED_S: Final = 1.0
"""Shorter estimates are compared with the rate as if they were this long."""
_LONGEST_S: Final = 1e10
"""Longest time that is estimated, about 300 years; a longer one is no estimate."""


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
        name: What people call them: the label of their group, or the name of a single job.
        stage: Number of their stage.
        waiting: Jobs whose attempts have not started.
        running: Jobs whose attempts have.
        times: Run times of those that completed, or else of jobs of the same group in other stages; empty without any.
        longest_s: The longest run time of a job of the group that completed.
        oldest_s: How long the attempt has run that runs longest; 0 if none runs, or if no start is known.
    """

    name: str
    stage: int
    waiting: int
    running: int
    times: RunTimes
    longest_s: float = 0.0
    oldest_s: float = 0.0


@frozen
class Seconds:
    """An expected duration in seconds, with the ends of its interval."""

    expected: float
    least: float
    most: float


def end_of_run(work: Sequence[WorkLeft], places: float, rate: float | None) -> Seconds | str:
    """Return how long the jobs that are left may take, or, where what is known does not tell that, what is unknown.

    Args:
        work: The jobs that are left, one at least.
        places: Jobs that run at the same time.
        rate: Attempts that ended a second lately; None if none has ended in this run.
    """
    for each in work:
        if each.times.count and each.oldest_s > each.longest_s + REPORTED_AFTER_S:
            return f"{each.name} has run longer than any that completed"
    for each in work:
        if not each.times.count:
            return f"no job of {each.name} has completed yet"
    if not places:
        return "no job runs"
    left = seconds_left(work, places)
    if left.most > _LONGEST_S:
        return "the run times add up to more than 300 years"
    if rate:
        by_rate = sum(each.waiting + each.running for each in work) / rate
        if by_rate > MOST_BY_RATE * max(left.expected, LEAST_COMPARED_S):
            both = duration_text(by_rate), duration_text(left.expected)
            return "what is left needs {} at the measured rate, and {} by the run times of its jobs".format(*both)
    return left


def seconds_left(work: Sequence[WorkLeft], places: float) -> Seconds:
    """Return how long the jobs that are left may take; the interval has the end in four of five cases.

    Args:
        work: The jobs that are left; each has run times.
        places: Jobs that run at the same time, more than 0.
    """
    sum_s = variance = 0.0
    typical: dict[int, float] = {}
    longest: dict[int, float] = {}
    for each in work:
        count = each.waiting + RUNNING_LEFT * each.running
        mean, spread, samples = each.times.mean, each.times.variance, each.times.count
        sum_s += count * mean
        variance += count * spread + count**2 * spread / samples  # of the jobs, and of the mean that is taken for them
        own = mean if each.waiting else RUNNING_LEFT * mean
        together = max(1.0, min(places, each.waiting + each.running))
        typical[each.stage] = max(typical.get(each.stage, 0.0), own)
        most_own = own + min(math.sqrt(spread) * math.log(together), each.times.longest - mean)
        longest[each.stage] = max(longest.get(each.stage, 0.0), most_own)
    least = max(sum_s / places, sum(typical.values()))
    most = max(least, sum_s / places + sum(longest.values()) * max(0.0, 1 - 1 / places))
    margin = _NORMAL_90 * math.sqrt(variance) / places
    return Seconds((least + most) / 2, max(0.0, least - margin), most + margin)
