"""Tests of the timeline of a workflow, and of the attempts that views keep."""

import random
import time
from typing import Any

import pytest
import sqlalchemy as sa
from store_views import ids_found, seen

from torc_framework.store.errors import RuleError
from torc_framework.store.record_kinds.results import RESULTS
from torc_framework.store.records import crud
from torc_framework.store.tables import core as t
from torc_framework.store.workflow_views import timeline
from torc_framework.store.workflow_views.attempts import AttemptsOfRunner
from torc_framework.store.workflow_views.failures import failures_view
from torc_framework.store.workflow_views.progress import progress_view


def test_attempts_are_bars_in_rows_that_do_not_overlap(bench: Any) -> None:
    bench.plan(4)
    bench.claim()
    now = time.time()
    bench.exchange(started=[bench.started(n) for n in range(4)])
    bench.end(0, exec_time_s=100, ended_at=now - 1)
    bench.end(1, "failed", exec_time_s=50, ended_at=now - 20)
    bench.end(2, exec_time_s=10, ended_at=now - 5)
    found = seen(bench, timeline.timeline_view, timeline.TimelineWindow(width=10_000))
    bars = {
        job_id - bench.first_job: (row, found.statuses[status])
        for job_id, row, status in zip(found.bars.job_id, found.bars.row, found.bars.status, strict=True)
    }
    assert bars == {0: (0, "completed"), 1: (1, "failed"), 2: (1, "completed"), 3: (0, "running")}
    (lane,) = found.lanes
    assert (lane.attempts, lane.label) == (4, "h")
    assert found.attempt_count == 4
    assert found.first_s == pytest.approx(now - 101, abs=0.1)


def test_short_attempts_are_merged(bench: Any) -> None:
    bench.plan(50)
    bench.claim()
    now = time.time() - 1000
    for n in range(50):
        bench.end(n, exec_time_s=1, ended_at=now + n)
    whole = seen(bench, timeline.timeline_view, timeline.TimelineWindow(width=10))
    assert whole.bars.count == [50]
    part = seen(bench, timeline.timeline_view, timeline.TimelineWindow(now + 9.5, now + 11.5, width=1000))
    assert (part.attempt_count, part.bars.count) == (3, [1, 1, 1])
    assert part.bars.start[0] == pytest.approx(-0.5, abs=0.01)


def test_lanes_are_runners_or_hosts_and_have_pages(bench: Any) -> None:
    bench.plan(6)
    nodes = [bench.node(hostname=name) for name in ("a", "a", "b")]
    for place, node in enumerate(nodes):
        bench.claim(2, node)
        bench.exchange(node, ended=[bench.ended(2 * place)])
    by_runner = seen(bench, timeline.timeline_view, timeline.TimelineWindow(offset=1, limit=1))
    assert (by_runner.lane_count, [lane.id for lane in by_runner.lanes]) == (3, [nodes[1]])
    by_host = seen(bench, timeline.timeline_view, timeline.TimelineWindow(by_host=True))
    assert [(lane.label, lane.attempts) for lane in by_host.lanes] == [("a", 2), ("b", 1)]


def test_a_timeline_is_bounded(bench: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(timeline, "MOST_BARS", 5)
    bench.plan(40)
    bench.claim()
    now = time.time() - 1000
    for n in range(40):
        status = "completed" if n % 2 else "failed"
        bench.end(n, status, exec_time_s=100 * (n % 3 + 1), ended_at=now + n * 3)
    found = seen(bench, timeline.timeline_view, timeline.TimelineWindow())
    assert len(found.bars.lane) <= 5
    assert sum(found.bars.count) == 40


def test_a_window_that_ends_before_it_begins(bench: Any) -> None:
    bench.plan(1)
    with pytest.raises(RuleError, match="ends before it begins"):
        seen(bench, timeline.timeline_view, timeline.TimelineWindow(10.0, 5.0))


@pytest.mark.parametrize("text", ["", "soon", "9999-12-31T23:59:59+99:99", "2026-01-01T00:00:00"])
def test_times_that_clients_stored_do_no_harm(bench: Any, text: str) -> None:
    bench.plan(1)
    bench.finish(0)
    with bench.database.write() as tx:
        tx.connection.execute(sa.update(t.RESULT).values(completion_time=text, exec_time_minutes=-1e300))
    seen(bench, timeline.timeline_view, timeline.TimelineWindow())
    seen(bench, progress_view)
    seen(bench, failures_view)
    ids_found(bench, "started>1h")
    ids_found(bench, "ended>1h")


# --- kept attempts ------------------------------------------------------------------------------------


def test_attempts_are_read_as_they_are_stored(bench: Any) -> None:
    bench.plan(6)
    bench.claim()
    now = time.time()

    def ended() -> Any:
        found = seen(bench, progress_view).throughput[-1] if bench.results() else None
        lanes = seen(bench, timeline.timeline_view, timeline.TimelineWindow()).lanes
        return (
            0 if found is None else found.completed,
            0 if found is None else found.failed,
            sum(x.busy_s for x in lanes),
        )

    assert ended() == (0, 0, 0)
    bench.end(0, exec_time_s=10, ended_at=now - 50)
    assert ended() == (1, 0, pytest.approx(10, abs=0.01))
    bench.end(1, "failed", exec_time_s=20, ended_at=now - 70)
    bench.end(2, exec_time_s=5, ended_at=now - 1)
    assert ended() == (2, 1, pytest.approx(35, abs=0.01))
    result = bench.results()[0]["id"]
    with bench.database.write() as tx:
        crud.update(tx, RESULTS, result, {"exec_time_minutes": 1.0})
    assert ended() == (2, 1, pytest.approx(85, abs=0.01))
    with bench.database.write() as tx:
        crud.delete(tx, RESULTS, result)
    assert ended() == (1, 1, pytest.approx(25, abs=0.01))


def test_an_attempt_that_is_reported_again_counts_once(bench: Any) -> None:
    bench.plan(2)
    bench.claim()
    bench.end(0)
    seen(bench, progress_view)
    with bench.database.write() as tx:  # as a result that replaces another
        row = dict(tx.connection.execute(sa.select(t.RESULT)).mappings().one())
        tx.connection.execute(sa.delete(t.RESULT))
        tx.add(t.RESULT, **{name: value for name, value in row.items() if name != "id"})
    assert seen(bench, progress_view).throughput[-1].completed == 1


def test_many_attempts_at_once_are_those_that_come_one_by_one() -> None:
    some = random.Random(5)
    made = [(start := some.uniform(0, 1000), start + some.uniform(0, 100), n % 3, n) for n in range(500)]
    at_once, single = AttemptsOfRunner(), AttemptsOfRunner()
    for place in range(0, 500, 100):
        at_once.add([*zip(*made[place : place + 100], strict=True)])
    for attempt in made:
        single.add([*zip(attempt, strict=True)])
    assert at_once == single
    for from_s, to_s in ((-5, 0), (100, 300), (950, 2000), (500, 500)):
        expected = sum(start <= to_s and end >= from_s for start, end, *_ in made)
        assert single.count_between(from_s, to_s) == expected
