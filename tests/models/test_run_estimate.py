"""Tests of the estimate of the end of a run: when there is none, its bounds, and simulated runs that end within it."""

import heapq
import random

import pytest

from torc_framework.models.run_estimate import RunTimes, Seconds, WorkLeft, end_of_run, seconds_left


def times(*seconds: float) -> RunTimes:
    """Return run times."""
    found = RunTimes()
    found.add(seconds)
    return found


TEN = times(*[10.0] * 50)
SHORT = times(*[0.3] * 50)


def left(stage: int, waiting: int, running: int, seen: RunTimes, oldest_s: float = 0.0) -> WorkLeft:
    """Return jobs of a stage that are left."""
    return WorkLeft(f"stage{stage}_#", stage, waiting, running, seen, seen.longest, oldest_s)


BY_RATE = "what is left needs 11 min at the measured rate, and 24 s by the run times of its jobs"


@pytest.mark.parametrize(
    ("work", "places", "rate", "unknown"),
    [
        ([left(1, 100, 8, TEN, 9.0)], 8, 0.8, None),
        ([left(1, 100, 8, TEN, 9.0)], 8, None, None),
        ([left(1, 0, 1, SHORT, 1800.0)], 1, 0.1, "stage1_# has run longer than any that completed"),
        ([left(1, 0, 1, TEN, 12.5)], 1, None, "stage1_# has run longer than any that completed"),
        ([left(1, 0, 1, TEN, 11.9)], 1, None, None),  # its end may not be reported yet
        ([left(1, 9, 1, TEN, 5.0), left(2, 1, 0, RunTimes())], 1, 0.1, "no job of stage2_# has completed yet"),
        ([left(1, 0, 3, RunTimes(), 5.0)], 3, None, "no job of stage1_# has completed yet"),
        ([left(1, 100, 0, TEN)], 0, 0.8, "no job runs"),
        ([left(1, 100, 0, times(1e9, 1e9))], 1, None, "the run times add up to more than 300 years"),
        ([left(1, 20, 0, TEN)], 10, 20 / 660, BY_RATE),
        ([left(1, 20, 0, TEN)], 10, 20 / 40, None),
        ([left(1, 0, 1, SHORT)], 1, 1 / 1.9, None),  # nothing is said about fractions of seconds
    ],
)
def test_an_end_is_known_or_it_is_said_what_is_not(
    work: list[WorkLeft], places: float, rate: float | None, unknown: str | None
) -> None:
    found = end_of_run(work, places, rate)
    assert (None if isinstance(found, Seconds) else found) == unknown


def test_equal_jobs_take_their_sum_over_the_places() -> None:
    found = seconds_left([left(1, 100, 0, TEN)], 10)
    assert (found.least, found.most) == (100, 109)
    assert found.expected == pytest.approx(104.5)


def test_a_chain_is_not_shorter_than_its_jobs() -> None:
    found = seconds_left([left(stage, 1, 0, TEN) for stage in (1, 2, 3)], 100)
    assert found.least == pytest.approx(30)
    assert found.expected == pytest.approx(30, abs=1)


def test_running_jobs_have_half_of_their_time_left() -> None:
    assert seconds_left([left(1, 0, 4, TEN)], 4).least == pytest.approx(5)


def test_the_spread_widens_the_interval() -> None:
    first, second = (seconds_left([left(1, 100, 0, each)], 10) for each in (TEN, times(*[1.0, 19.0] * 25)))
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
        found = seconds_left([left(number, count, 0, seen) for number, count in enumerate(stages)], places)
        inside += found.least <= simulated(some, stages, places, 20.0) <= found.most
    assert inside >= 80
