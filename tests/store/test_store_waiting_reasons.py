"""What attempts wait for that have not begun: stored for the runner that holds them, until they begin."""

from typing import Any

import pytest

from torc_framework.models.exchange import WaitingReport
from torc_framework.store.exchange.reports import MAX_REASON
from torc_framework.store.runs import lifecycle

NO_ROOM = "Unschedulable: 0/1 nodes are available: 1 Insufficient cpu."


def waits(bench: Any, reason: str | None, job: int = 0, *, attempt: int = 1, node: int | None = None) -> str | None:
    """Report what an attempt waits for; return what is stored."""
    bench.exchange(node, waiting=[WaitingReport(bench.job_id(job), attempt, reason)])
    stored: str | None = bench.column("waiting_reason")[job]
    return stored


def test_a_reason_is_stored_until_there_is_none(bench: Any) -> None:
    """The newest report counts; reports on jobs that do not exist change nothing."""
    bench.plan(2)
    bench.claim()
    assert waits(bench, NO_ROOM) == NO_ROOM
    assert waits(bench, "ErrImagePull: \0") == "ErrImagePull: \ufffd"
    assert waits(bench, "x" * 9 * MAX_REASON) == "x" * MAX_REASON
    assert waits(bench, None) is None
    bench.exchange(waiting=[WaitingReport(999_999, 1, NO_ROOM)])
    assert bench.column("waiting_reason") == [None, None]


@pytest.mark.parametrize("after", ["start", "end", "release", "cancel", "retry"])
def test_a_reason_goes_when_the_attempt_does_not_wait_any_more(bench: Any, after: str) -> None:
    """It starts, ends without a start, is released, canceled, or tried again by a single call."""
    bench.plan(1)
    (job,) = bench.claim()
    assert waits(bench, NO_ROOM) == NO_ROOM
    if after == "start":
        bench.exchange(started=[bench.started(0)])
    elif after == "end":
        bench.exchange(ended=[bench.ended(0)])
    elif after == "release":
        bench.exchange(released=[job.id])
    elif after == "cancel":
        with bench.database.write() as tx:
            lifecycle.cancel_workflow(tx, bench.workflow_id)
    else:
        bench.exchange(ended=[bench.ended(0, "failed", 1, lost=True)])
    assert bench.column("waiting_reason") == [None]


def test_late_reports_change_nothing(bench: Any) -> None:
    """Of an attempt that runs, of another attempt, of a runner that does not hold the job."""
    bench.plan(2)
    other = bench.node()
    bench.claim()
    bench.exchange(started=[bench.started(1)])
    assert waits(bench, NO_ROOM, 1) is None
    assert waits(bench, NO_ROOM, 0, attempt=2) is None
    assert waits(bench, NO_ROOM, 0, node=other) is None
    report = WaitingReport(bench.job_id(0), 1, NO_ROOM)
    bench.exchange(started=[bench.started(0)], waiting=[report])
    assert (bench.statuses(), bench.column("waiting_reason")) == (["running", "running"], [None, None])
