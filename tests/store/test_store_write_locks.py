"""Tests of the locks of changes on PostgreSQL: changes of different workflows do not wait for each other."""

import contextlib
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
from change_groups import write_group
from waiting import eventually, let_pass

from torc_framework.store.database.base import NEW_WORKFLOW, Database
from torc_framework.store.database.group_commit import Change
from torc_framework.store.database.opening import open_database
from torc_framework.store.database.postgres import WRITERS
from torc_framework.store.exchange.single_claims import claim_next
from torc_framework.store.records.events import events_after, record_user_action

SERVERS = 3


@pytest.fixture
def servers(fresh_postgres: Callable[[], Database]) -> Iterator[list[Database]]:
    """One database, opened as several servers do."""
    first = fresh_postgres()
    opened = [first, *(open_database(first.source) for _ in range(SERVERS - 1))]
    yield opened
    for database in opened[1:]:
        database.close()


@pytest.mark.parametrize(
    ("held", "wanted", "waits"),
    [
        (1, 1, True),
        (1, 2, False),
        (1, NEW_WORKFLOW, False),
        (NEW_WORKFLOW, NEW_WORKFLOW, False),
        (1, None, True),
        (None, 1, True),
        (None, NEW_WORKFLOW, True),
        (None, None, True),
    ],
)
def test_which_changes_wait_for_each_other(
    servers: list[Database], held: int | None, wanted: int | None, waits: bool
) -> None:
    """A change excludes others of its workflow, at every server; one that may concern several excludes all."""
    begun = threading.Event()

    def change() -> None:
        with servers[1].write(wanted):
            begun.set()

    thread = threading.Thread(target=change)
    with servers[0].write(held):
        thread.start()
        if waits:
            let_pass(0.2)
            assert not begun.is_set()
        else:
            eventually(begun.is_set)
    thread.join()
    assert begun.is_set()


def test_more_changes_than_connections(servers: list[Database]) -> None:
    """Changes beyond the connections of a server wait for one, and all are made."""
    with ThreadPoolExecutor(4 * WRITERS) as pool:

        def change(number: int) -> int:
            with servers[0].write(number) as tx:
                return int(tx.connection.exec_driver_sql(f"SELECT {number}").scalar_one())

        assert list(pool.map(change, range(1, 60))) == [*range(1, 60)]


@pytest.mark.parametrize(
    ("held", "asked", "chosen"),
    [
        ([], [1, 2, 3], 1),
        ([1], [1, 2, 3], 2),
        ([1, 2], [1, 2, 3], 3),
        ([1], [1, NEW_WORKFLOW, None, 2], 2),
        ([1], [NEW_WORKFLOW, 2], NEW_WORKFLOW),
    ],
)
def test_a_workflow_that_is_free_goes_first(
    servers: list[Database], held: list[int], asked: list[int | None], chosen: int
) -> None:
    """A transaction takes the changes of the first workflow that no other server changes, and holds no other lock."""
    taken: list[int | None] = []

    def take(workflow_id: int | None) -> list[Change]:
        taken.append(workflow_id)
        for other in {each for each in asked if each} - {*held, workflow_id}:
            with servers[2].write(other):
                pass
        return [lambda _tx: "a", lambda _tx: "b"]

    with contextlib.ExitStack() as stack:
        for workflow_id in held:
            stack.enter_context(servers[1].write(workflow_id))
        outcomes = servers[0].write_first_free(asked, take)
    assert [outcome.value for outcome in outcomes] == ["a", "b"]
    assert taken == [chosen]


def test_when_none_is_free_the_first_is_waited_for(servers: list[Database]) -> None:
    """The transaction holds the lock of the first workflow then, and of no other."""
    taken: list[int | None] = []
    over = threading.Event()

    def take(workflow_id: int | None) -> list[Change]:
        taken.append(workflow_id)
        return [lambda _tx: over.wait()]

    thread = threading.Thread(target=lambda: servers[0].write_first_free([1, 2], take))
    with servers[1].write(2):
        with servers[1].write(1):
            thread.start()
            let_pass(0.2)
            assert taken == []
        eventually(lambda: taken)
    with servers[1].write(2):
        assert taken == [1]
    over.set()
    thread.join()


def test_claims_at_several_servers_hand_out_each_job_once(servers: list[Database], bench_on: Any) -> None:
    """Groups and single changes of two workflows at three servers; no job is handed out twice, and none is left."""
    workflow_ids = [bench_on(servers[0]).plan(60) for _ in range(2)]
    claimed: list[int] = []
    lock = threading.Lock()

    def client(number: int) -> None:
        database, workflow_id = servers[number % SERVERS], workflow_ids[number % 2]
        while True:
            changes = [lambda tx: claim_next(tx, workflow_id, 1)] * (1 + number % 3)
            outcomes = write_group(database, changes, workflow_id)
            assert [outcome.error for outcome in outcomes if outcome.error] == []
            found = [job.id for outcome in outcomes for job in outcome.value.jobs]
            with lock:
                claimed.extend(found)
            if not found:
                return

    with ThreadPoolExecutor(9) as pool:
        list(pool.map(client, range(9)))
    assert len(claimed) == len(set(claimed)) == 120


def test_a_reader_that_remembers_an_id_misses_no_event(servers: list[Database], bench_on: Any) -> None:
    """Events of one workflow get their ids in the order of the commits, also when several servers store them."""
    workflow_ids = [bench_on(servers[0]).plan(1) for _ in range(2)]
    with servers[0].read() as tx:
        before = {workflow_id: len(events_after(tx, workflow_id, 0, 1000) or []) for workflow_id in workflow_ids}
    seen: dict[int, list[int]] = {workflow_id: [] for workflow_id in workflow_ids}
    over = threading.Event()
    count = 90

    def read() -> None:
        while True:
            is_last = over.is_set()
            for workflow_id, ids in seen.items():
                with servers[-1].read() as tx:
                    found = events_after(tx, workflow_id, ids[-1] if ids else 0, 1000) or []
                ids += [event.id for event in found]
            if is_last:
                return

    def write(number: int) -> None:
        with servers[number % SERVERS].write(workflow_id := workflow_ids[number % 2]) as tx:
            record_user_action(tx, workflow_id, "x")

    reader = threading.Thread(target=read)
    reader.start()
    with ThreadPoolExecutor(9) as pool:
        list(pool.map(write, range(count)))
    over.set()
    reader.join()
    assert {workflow_id: len(ids) - before[workflow_id] for workflow_id, ids in seen.items()} == dict.fromkeys(
        workflow_ids, count // 2
    )
