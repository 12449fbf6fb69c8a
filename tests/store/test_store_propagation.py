"""What follows from the end of a job: dependents, cascades, groups, in the same transaction in any graph."""

import itertools
from typing import Any

import pytest

from torc_framework.models.plan import PlannedJob
from torc_framework.models.statuses import JobStatus
from torc_framework.store.job_state.dependency_counters import downstream


def jobs(count: int, *, without_flag: tuple[int, ...] = ()) -> list[PlannedJob]:
    """Return jobs, some of them without ``cancel_on_blocking_job_failure``."""
    return [
        PlannedJob(name=f"j{n}", command="true", cancel_on_blocking_job_failure=n not in without_flag)
        for n in range(count)
    ]


def test_the_last_dependency_makes_ready(bench: Any) -> None:
    """A job that waits for several is ready in the exchange that ends the last of them."""
    bench.plan(3, [(2, 0), (2, 1)])
    assert bench.statuses() == ["ready", "ready", "blocked"]
    bench.finish(0)
    assert bench.statuses()[2] == "blocked"
    bench.start(1)
    reply = bench.exchange(ended=[bench.ended(1)], slots=1)
    assert [job.name for job in reply.jobs] == ["job2"]


@pytest.mark.parametrize(
    ("status", "code", "expected"),
    [
        ("completed", 0, "ready"),
        ("failed", 1, "canceled"),
        ("failed", 0, "canceled"),
        ("terminated", 143, "canceled"),
        ("terminated", 0, "ready"),
        ("canceled", 0, "canceled"),
        ("pending_failed", 1, "blocked"),
    ],
)
def test_how_a_dependency_ends_decides(bench: Any, status: str, code: int, expected: str) -> None:
    """Only a bad end cancels; ``pending_failed`` keeps dependents blocked."""
    bench.plan(2, [(1, 0)])
    bench.finish(0, status=status, code=code)
    assert bench.statuses() == [status, expected]


def test_a_job_may_go_on_after_a_failure(bench: Any) -> None:
    """Without the flag, a failed dependency has the same effect as a completed one."""
    bench.plan(jobs(2, without_flag=(1,)), [(1, 0)])
    bench.finish(0, status="failed")
    assert bench.statuses() == ["failed", "ready"]


def test_an_early_failure_is_remembered(bench: Any) -> None:
    """A job whose first dependency failed is canceled when the last one completes, with its own dependents."""
    bench.plan(4, [(2, 0), (2, 1), (3, 2)])
    bench.claim()
    bench.exchange(started=[bench.started(0), bench.started(1)])
    bench.end(0, "failed")
    assert bench.statuses() == ["failed", "running", "blocked", "blocked"]
    reply = bench.end(1)
    assert bench.statuses() == ["failed", "completed", "canceled", "canceled"]
    assert reply.is_complete
    canceled = bench.events("job_canceled")
    assert [event["job_name"] for event in canceled] == ["job2", "job3"]


def test_a_cascade_stops_at_a_job_that_goes_on(bench: Any) -> None:
    """Only jobs with the flag are canceled, and pass the cancellation on."""
    bench.plan(jobs(4, without_flag=(2,)), [(1, 0), (2, 1), (3, 2)])
    bench.finish(0, status="failed")
    assert bench.statuses() == ["failed", "canceled", "ready", "blocked"]


def test_a_canceled_job_has_no_result(bench: Any) -> None:
    """A job that never ran has no result."""
    bench.plan(2, [(1, 0)])
    bench.finish(0, status="failed")
    assert [result["job_id"] for result in bench.results()] == [bench.job_id(0)]


def test_a_long_chain_is_canceled(bench: Any) -> None:
    """The depth of a cascade is not limited."""
    length = 5000
    bench.plan(length, [(n, n - 1) for n in range(1, length)])
    bench.finish(0, status="failed")
    assert set(bench.statuses()[1:]) == {"canceled"}


def test_a_ladder_of_diamonds_is_canceled(bench: Any) -> None:
    """The cost depends on the number of dependencies, not on that of paths, of which there are 2^200."""
    pairs: list[tuple[int, int]] = []
    for n in range(0, 600, 3):
        pairs += [(n + 1, n), (n + 2, n), (n + 3, n + 1), (n + 3, n + 2)]
    bench.plan(601, pairs)
    bench.finish(0, status="failed")
    assert set(bench.statuses()[1:]) == {"canceled"}


def test_a_barrier_opens_once(bench: Any) -> None:
    """All waiters become ready when the last member ends."""
    bench.plan(7, barriers=[([0, 1, 2], [3, 4, 5, 6])])
    bench.finish(0, 1)
    assert set(bench.statuses()[3:]) == {"blocked"}
    bench.finish(2)
    assert set(bench.statuses()[3:]) == {"ready"}
    bench.check_counters()


def test_a_failure_behind_a_barrier_cancels_all(bench: Any) -> None:
    """When the last member is over, one failed member cancels every waiter with the flag."""
    bench.plan(jobs(6, without_flag=(4,)), barriers=[([0, 1], [2, 3, 4]), ([2, 3], [5])])
    bench.finish(0, status="failed")
    assert set(bench.statuses()[2:]) == {"blocked"}
    bench.finish(1)
    assert bench.statuses() == ["failed", "completed", "canceled", "canceled", "ready", "canceled"]
    bench.check_counters()


def test_barriers_and_pairs_add_up(bench: Any) -> None:
    """A job waits for its groups and for its direct dependencies."""
    bench.plan(5, [(4, 3)], [([0, 1], [4, 3]), ([0], [2, 4])])
    bench.finish(0, 1)
    assert bench.statuses()[3:] == ["ready", "blocked"]
    bench.finish(3)
    assert bench.statuses()[4] == "ready"
    bench.check_counters()


def test_downstream_is_found_through_groups(bench: Any) -> None:
    """Each job downstream is found once, nearest first; statuses can limit the search."""
    bench.plan(6, [(1, 0), (5, 4)], [([1], [2, 3]), ([2, 3], [4])])
    with bench.database.read() as tx:
        found = downstream(tx, [bench.job_id(0)])
        stopped = downstream(tx, [bench.job_id(0)], {JobStatus.READY})
    assert [job_id - bench.first_job for job_id in found] == [1, 2, 3, 4, 5]
    assert stopped == []


def test_completion_is_told_once(bench: Any) -> None:
    """The last end completes the workflow, with one event."""
    bench.plan(2, [(1, 0)])
    bench.finish(0)
    assert bench.events("workflow_completed") == []
    bench.finish(1)
    assert len(bench.events("workflow_completed")) == 1


@pytest.mark.parametrize("ends", list(itertools.permutations(range(3))))
def test_the_order_of_ends_does_not_matter(bench: Any, ends: tuple[int, ...]) -> None:
    """In any order of the ends, a failed dependency cancels."""
    bench.plan(4, [(3, 0), (3, 1), (3, 2)])
    bench.claim()
    bench.exchange(started=[bench.started(n) for n in range(3)])
    for job in ends:
        bench.end(job, "failed" if job == 1 else "completed")
    assert bench.statuses()[3] == "canceled"
    bench.check_counters()
