"""Resources are counted exactly, and the pace follows what really happens."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from torc_framework.executors import AttemptKey
from torc_framework.models.resources import Resources
from torc_framework.runner.attempts.resource_pool import ResourcePool
from torc_framework.runner.attempts.workload import LONGEST_AHEAD, MOST_AHEAD, EndRate

TOTAL = Resources(num_cpus=8, memory_bytes=1000, num_gpus=3)
shapes = st.builds(
    Resources,
    num_cpus=st.integers(0, 9),
    memory_bytes=st.integers(0, 1200),
    num_gpus=st.integers(0, 4),
)


@given(st.lists(st.tuples(shapes, st.booleans()), max_size=60))
def test_never_more_than_there_is(steps: list[tuple[Resources, bool]]) -> None:
    """In any order of starts and ends, sums stay within the total, no GPU has two owners, and all is freed."""
    pool = ResourcePool(TOTAL, ["0", "1", "2"], None)
    running: dict[AttemptKey, Resources] = {}
    gpus: dict[AttemptKey, tuple[str, ...]] = {}
    for number, (wanted, ends) in enumerate(steps):
        key = AttemptKey(number, 1)
        if pool.fits(wanted):
            running[key], gpus[key] = wanted, pool.take(key, wanted)
            assert len(gpus[key]) == wanted.num_gpus
        elif ends and running:
            over = next(iter(running))
            pool.release(over)
            del running[over], gpus[over]
        assert sum(each.num_cpus for each in running.values()) <= 8
        assert sum(each.memory_bytes for each in running.values()) <= 1000
        owned = [name for names in gpus.values() for name in names]
        assert len(owned) == len(set(owned))
    for key in running:
        pool.release(key)
        pool.release(key)  # a second time changes nothing
    assert pool.free() == Resources(8, 1000, 3)


def test_depth_counts_attempts_only() -> None:
    """All attempts are alike."""
    pool = ResourcePool(TOTAL, [], 2)
    huge = Resources(num_cpus=1000)
    assert pool.room() == 2
    assert pool.free() is None
    pool.take(AttemptKey(1, 1), huge)
    assert pool.fits(huge)
    pool.take(AttemptKey(2, 1), huge)
    assert not pool.fits(Resources())
    assert pool.lane(huge) == pool.lane(Resources())


def test_lanes_join_what_can_take_each_others_place() -> None:
    """A lane has the same CPUs, memory and nodes; attempts with GPUs have no lane."""
    pool = ResourcePool(TOTAL, ["0"], None)
    assert pool.lane(Resources(2, 10)) == pool.lane(Resources(2, 10, runtime_s=5))
    assert pool.lane(Resources(2, 10)) != pool.lane(Resources(1, 10))
    assert pool.lane(Resources(2, 10, num_gpus=1)) is None


def test_nothing_is_hoarded_before_anything_ended() -> None:
    """The first claim is for what can start."""
    assert EndRate(100.0).ahead(100.0) == 0


def test_short_jobs_are_claimed_ahead_long_ones_are_not() -> None:
    """About half a second of work, never more than the most."""
    quick, slow = EndRate(0.0), EndRate(0.0)
    for step in range(1, 50):
        quick.ended(4, step * 0.004)
        slow.ended(2, step * 60.0)
    assert quick.ahead(49 * 0.004) == MOST_AHEAD
    assert slow.ahead(49 * 60.0) == 0


def test_jobs_far_away_are_claimed_ahead_for_longer() -> None:
    """Two lanes at a round trip of 0.4 s: each has a follower, although gaps have doubled the times."""
    pace = EndRate(0.0)
    for step in range(1, 50):
        pace.ended(1, step * 0.5)
    assert pace.ahead(24.5) == 1
    pace.round_trip_s = 0.4
    assert pace.ahead(24.5) == 2


def test_more_short_jobs_are_claimed_ahead_of_a_slow_disk() -> None:
    """As many as end between two calls, within a bound."""
    pace = EndRate(0.0)
    for step in range(1, 50):
        pace.ended(4, step * 0.004)
    pace.round_trip_s = 0.4
    assert pace.ahead(49 * 0.004) == pytest.approx(925, abs=1)
    pace.round_trip_s = 30.0
    assert pace.ahead(49 * 0.004) == LONGEST_AHEAD


def test_the_time_without_attempts_does_not_count() -> None:
    """Four jobs of 4 ms at a time, and each time 0.3 s until the server has sent the next four."""
    pace, now = EndRate(0.0), 0.0
    pace.round_trip_s = 0.3
    for _ in range(5):
        pace.observe(4, now := now + 0.3)
        pace.ended(4, now := now + 0.004)
        pace.observe(0, now)
    assert pace.ahead(now) == pytest.approx(725, abs=1)


def test_silence_slows_the_pace() -> None:
    """When long jobs follow short ones, the surplus is known at once."""
    pace = EndRate(0.0)
    for step in range(1, 50):
        pace.ended(4, step * 0.004)
    assert pace.ahead(0.2) == MOST_AHEAD
    assert pace.ahead(5.0) == 0


def test_a_burst_of_long_jobs_is_not_a_fast_pace() -> None:
    """Sixty-four ends at once after an hour."""
    pace = EndRate(0.0)
    pace.ended(64, 3600.0)
    assert pace.ahead(3600.0) == 0
