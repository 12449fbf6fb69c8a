"""The events that are stored, and the notification of listeners after each commit with events."""

from typing import Any

import pytest

from torc_framework.models.events import EVENT_FACTS, LEVELS, EventSeverity, event_type_of, severity_of
from torc_framework.models.statuses import END
from torc_framework.store.record_kinds.results import EVENTS
from torc_framework.store.records import crud
from torc_framework.store.records.events import JOBS_A_ROW, TransactionEvents, events_after, last_event_id
from torc_framework.store.runs import lifecycle
from torc_framework.store.workflows.deletion import begin_deletion


def test_every_end_of_a_job_is_a_type() -> None:
    """Every status in which an attempt may end has an event type."""
    assert {f"job_{status.label}" for status in END} <= set(EVENT_FACTS)


@pytest.mark.parametrize(
    ("data", "name", "severity"),
    [
        ({"event_type": "job_failed", "severity": "debug"}, "job_failed", "error"),
        ({"event_type": "job_completed"}, "job_completed", "info"),
        ({"event_type": "mine", "severity": "warning"}, "mine", "warning"),
        ({"event_type": "mine", "severity": ["error"]}, "mine", "info"),
        ({"category": "mine", "severity": "loud"}, "mine", "info"),
        ({"event_type": "", "category": 5}, "event", "info"),
        (["error"], "event", "info"),
        (None, "event", "info"),
    ],
)
def test_what_an_event_is_called(data: Any, name: str, severity: str) -> None:
    """Known types have the severity of the table; events of other types have their own."""
    assert (event_type_of(data), severity_of(data)) == (name, LEVELS[severity])
    assert severity_of(data) is EventSeverity[severity.upper()]


def test_events_are_read_page_by_page(bench: Any) -> None:
    """Events are read in the order of their ids; an empty page is the end, None an unknown workflow."""
    bench.plan(1)
    with bench.database.write() as tx:
        start = last_event_id(tx, bench.workflow_id) or 0
        log = TransactionEvents(bench.workflow_id)
        for n in range(5):
            log.add("mine", n=n)
        log.write(tx)
        found: list[Any] = []
        while page := events_after(tx, bench.workflow_id, found[-1].id if found else start, 2):
            found += page
        assert [event.data["n"] for event in found] == list(range(5))
        assert page == []
        assert last_event_id(tx, bench.workflow_id) == found[-1].id
        assert events_after(tx, 99_999, 0, 2) is None
        assert last_event_id(tx, 99_999) is None


def test_many_ready_jobs_are_told_in_rows_of_bounded_length(bench: Any) -> None:
    """One event has at most `JOBS_A_ROW` ids, however many jobs become ready at once."""
    bench.plan(1)
    with bench.database.write() as tx:
        before = last_event_id(tx, bench.workflow_id) or 0
        log = TransactionEvents(bench.workflow_id)
        log.jobs_ready(list(range(2 * JOBS_A_ROW + 1)))
        log.write(tx)
        rows = events_after(tx, bench.workflow_id, before, 10) or []
    assert [len(row.data["job_ids"]) for row in rows] == [JOBS_A_ROW, JOBS_A_ROW, 1]


def test_every_way_of_storing_events_tells_it(bench: Any) -> None:
    """Begin of a run, runners, reports, cancellation, changes by users, other events and deletion notify listeners."""
    workflow_id = bench.plan(3, [(1, 0), (2, 1)])
    told: list[set[int]] = []
    bench.database.on_workflows_with_events(told.append)
    with bench.database.read() as tx:
        seen = last_event_id(tx, workflow_id) or 0

    def expect(*names: str) -> None:
        assert told == [{workflow_id}], names
        told.clear()
        nonlocal seen
        with bench.database.read() as tx:
            rows = events_after(tx, workflow_id, seen, 100) or []
        seen = rows[-1].id if rows else seen
        assert [event_type_of(row.data) for row in rows] == list(names)

    bench.node()
    expect("compute_node_started")
    bench.claim()
    bench.start(0)
    expect("job_started")
    bench.end(0)
    expect("job_completed", "jobs_ready")
    bench.claim()
    with bench.database.write() as tx:
        lifecycle.cancel_workflow(tx, workflow_id)
    expect("workflow_canceled", "job_canceled")
    with bench.database.write() as tx:
        lifecycle.reset_status(tx, workflow_id, force=True)
    expect("user_action")
    with bench.database.write() as tx:
        lifecycle.reset_job_status(tx, workflow_id)
    expect("user_action")
    with bench.database.write() as tx:
        crud.create(tx, EVENTS, {"workflow_id": workflow_id, "data": {"event_type": "mine"}})
    expect("mine")
    with bench.database.write() as tx:
        begin_deletion(tx, workflow_id, force=True)
    assert told == [{workflow_id}]
