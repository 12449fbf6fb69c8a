"""Tests of the estimate of the end of a run: bounds that hold, and simulated runs that end within the interval."""

import heapq
import random

import pytest

from torc_framework.models.run_estimate import RunTimes, WorkLeft, seconds_left


def times(*seconds: float) -> RunTimes:
    """Return run times."""
    found = RunTimes()
    found.add(seconds)
    return found


def test_equal_jobs_take_their_sum_over_the_places() -> None:
    equal = times(*[10.0] * 50)
    left = seconds_left([WorkLeft(1, 100, 0, equal)], 10, equal)
    assert (left.least, left.most) == (100, 109)
    assert left.expected == pytest.approx(104.5)


def test_a_chain_is_not_shorter_than_its_jobs() -> None:
    equal = times(*[10.0] * 50)
    left = seconds_left([WorkLeft(stage, 1, 0, equal) for stage in (1, 2, 3)], 100, equal)
    assert left.least == pytest.approx(30)
    assert left.expected == pytest.approx(30, abs=1)


def test_running_jobs_have_half_of_their_time_left() -> None:
    equal = times(*[10.0] * 50)
    assert seconds_left([WorkLeft(1, 0, 4, equal)], 4, equal).least == pytest.approx(5)


def test_unknown_run_times_are_those_of_the_others_and_widen_the_interval() -> None:
    known = times(*[10.0] * 50)
    sure, unsure = (seconds_left([WorkLeft(1, 100, 0, each)], 10, known) for each in (known, None))
    assert unsure.expected >= sure.expected
    assert unsure.most - unsure.least > sure.most - sure.least


def test_the_spread_widens_the_interval() -> None:
    narrow, wide = times(*[10.0] * 50), times(*[1.0, 19.0] * 25)
    first, second = (seconds_left([WorkLeft(1, 100, 0, each)], 10, each) for each in (narrow, wide))
    assert second.most > first.most
    assert second.least < first.least


def simulated(some: random.Random, stages: list[int], places: int, mean: float) -> float:
    """Return how long stages of jobs take on these places, one stage after the other, with exponential run times."""
    now = 0.0
    for count in stages:
        free = [now] * places
        for _ in range(count):
            heapq.heappush(free, heapq.heappop(free) + some.expovariate(1 / mean))
        now = max(free)
    return now


@pytest.mark.parametrize(("stages", "places"), [([500], 10), ([300, 300], 30), ([2000], 64)])
def test_four_of_five_simulated_runs_end_within_the_interval(stages: list[int], places: int) -> None:
    some = random.Random(7)
    inside = 0
    for _ in range(100):
        seen = times(*(some.expovariate(1 / 20.0) for _ in range(200)))
        work = [WorkLeft(number, count, 0, seen) for number, count in enumerate(stages)]
        left = seconds_left(work, places, seen)
        ended = simulated(some, stages, places, 20.0)
        inside += left.least <= ended <= left.most
    assert inside >= 80
