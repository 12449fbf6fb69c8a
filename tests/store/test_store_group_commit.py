"""Tests of group commit: several changes in one transaction, each with the outcome that it would have alone."""

import threading
from collections.abc import Callable
from typing import Any

import pytest
import sqlalchemy as sa
from change_groups import write_group
from waiting import eventually

from torc_framework.models.records import WorkflowRecord
from torc_framework.store.database import group_commit
from torc_framework.store.database.base import Database
from torc_framework.store.database.disk_full import is_disk_full
from torc_framework.store.database.fair_lock import FairLock
from torc_framework.store.database.group_commit import Change
from torc_framework.store.database.sql import Tx
from torc_framework.store.errors import DatabaseError, NotFoundError, RuleError
from torc_framework.store.exchange.single_claims import claim_next
from torc_framework.store.records.events import record_user_action
from torc_framework.store.tables import core as t
from torc_framework.store.workflows.plans import create_workflow


@pytest.fixture
def patient(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let a transaction take further changes for a minute, so that a slow machine does not split the groups."""
    monkeypatch.setattr(group_commit, "GROUP_S", 60.0)


def creation(name: str) -> Change:
    """Return a change that creates a workflow and returns its id."""

    def change(tx: Tx) -> int:
        return create_workflow(tx, WorkflowRecord(name=name, user="u"))

    return change


def failing(error: Exception) -> Change:
    """Return a change that creates a workflow, announces an event, and then raises."""

    def change(tx: Tx) -> None:
        record_user_action(tx, creation("undone")(tx), "x")
        raise error

    return change


def names(database: Database) -> list[str]:
    """Return the names of all workflows."""
    with database.read() as tx:
        return list(tx.connection.execute(sa.select(t.WORKFLOW.c.name).order_by(t.WORKFLOW.c.id)).scalars())


@pytest.mark.usefixtures("patient")
def test_a_change_that_raises_is_undone_and_the_others_are_stored(database: Database) -> None:
    """Each change has its own outcome; the listeners get nothing of one that was undone."""
    streams: list[set[int]] = []
    database.on_workflows_with_events(streams.append)
    refusal = NotFoundError("Workflow", 7)
    outcomes = write_group(database, [creation("a"), failing(refusal), failing(ZeroDivisionError()), creation("b")])
    assert names(database) == ["a", "b"]
    assert [type(outcome.error) for outcome in outcomes] == [type(None), NotFoundError, ZeroDivisionError, type(None)]
    assert outcomes[1].error is refusal
    assert outcomes[0].value < outcomes[3].value
    assert streams == []


@pytest.mark.usefixtures("patient")
def test_listeners_get_what_all_changes_of_a_group_did(database: Database) -> None:
    """One call for a group, with the workflows of every change that was kept."""
    first, second = (outcome.value for outcome in write_group(database, [creation("a"), creation("b")]))
    streams: list[set[int]] = []
    database.on_workflows_with_events(streams.append)
    events: list[Any] = []
    database.on_stored_events(events.extend)

    def announce(workflow_id: int) -> Change:
        return lambda tx: record_user_action(tx, workflow_id, "x")

    write_group(database, [announce(first), failing(ZeroDivisionError()), announce(second)])
    assert streams == [{first, second}]
    assert [event[0] for event in events] == [first, second]


@pytest.mark.usefixtures("patient")
@pytest.mark.parametrize("count", [1, 3])
def test_an_error_of_the_driver_becomes_an_error_of_the_store(database: Database, count: int) -> None:
    """In a group a value that the database cannot hold leads to the same error as alone."""

    def change(tx: Tx) -> None:
        tx.connection.execute(sa.select(sa.cast(sa.bindparam("n", 2**70), sa.BigInteger)))

    outcomes = write_group(database, [change, *[creation("good")] * (count - 1)])
    assert isinstance(outcomes[0].error, RuleError)
    assert names(database) == ["good"] * (count - 1)


@pytest.mark.usefixtures("patient")
def test_changes_of_a_group_see_those_before_them(bench: Any) -> None:
    """Claims in one transaction do not hand out a job twice."""
    workflow_id = bench.plan(5)
    outcomes = write_group(bench.database, [lambda tx: claim_next(tx, workflow_id, 1)] * 7)
    assert [len(outcome.value.jobs) for outcome in outcomes] == [1] * 5 + [0] * 2
    assert len({job.id for outcome in outcomes for job in outcome.value.jobs}) == 5


def test_a_long_change_ends_the_group(database: Database) -> None:
    """After a change that took long, the other changes are left for the next transaction."""
    done = threading.Event()

    def slow(tx: Tx) -> Any:
        done.wait(2 * group_commit.GROUP_S)
        return creation("slow")(tx)

    assert len(write_group(database, [slow, creation("later")])) == 1
    assert names(database) == ["slow"]


@pytest.mark.usefixtures("patient")
def test_a_change_without_room_on_the_disk_does_not_take_the_others_along(sqlite: Database) -> None:
    """SQLite ends the whole transaction when the database is full; the other changes of the group are made alone."""
    with sqlite.write() as tx:
        pages = tx.connection.exec_driver_sql("PRAGMA page_count").scalar_one()
        tx.connection.exec_driver_sql(f"PRAGMA max_page_count={pages + 8}")
    outcomes = write_group(sqlite, [creation("a"), creation("x" * 200_000), creation("b")])
    assert names(sqlite) == ["a", "b"]
    assert isinstance(outcomes[1].error, DatabaseError)
    assert is_disk_full(outcomes[1].error)
    assert [outcome.error for outcome in (outcomes[0], outcomes[2])] == [None, None]


@pytest.mark.usefixtures("patient")
def test_a_lost_connection_is_told_to_every_change(fresh_postgres: Callable[[], Database]) -> None:
    """When PostgreSQL ends the connection, no change of the group is stored, and the next group has a new one."""
    database = fresh_postgres()

    def end_connection(tx: Tx) -> None:
        tx.connection.exec_driver_sql("SELECT pg_terminate_backend(pg_backend_pid())")

    outcomes = write_group(database, [creation("a"), end_connection, creation("b")])
    assert [type(outcome.error) for outcome in outcomes] == [DatabaseError] * 3
    assert names(database) == []
    assert [outcome.error for outcome in write_group(database, [creation("a"), creation("b")])] == [None, None]
    assert names(database) == ["a", "b"]


def test_the_lock_is_handed_over_in_order() -> None:
    """A thread that asks again at once comes after those that wait already."""
    lock, waiting = FairLock(), 5
    order: list[int] = []

    def take(number: int) -> None:
        with lock:
            order.append(number)

    lock.acquire()
    threads = []
    for number in range(waiting):
        threads.append(threading.Thread(target=take, args=(number,)))
        threads[-1].start()
        eventually(lambda: len(lock._waiting) == len(threads))
    assert not lock.acquire(blocking=False)
    lock.release()
    take(waiting)
    for thread in threads:
        thread.join()
    assert order == [*range(waiting + 1)]
    assert lock.acquire(blocking=False)
