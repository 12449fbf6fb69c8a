"""Tests of the queue of changes: many changes at once share transactions, and each has an answer of its own."""

import asyncio
import threading
from collections import Counter
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, closing, suppress
from http.client import HTTPException
from pathlib import Path
from typing import Any

import pytest
from server_child import ServerChild
from waiting import eventually

from torc_framework.server.dispatch.change_queue import MOST_PASSED_OVER, ChangeQueue
from torc_framework.store.database.base import Database
from torc_framework.store.database.group_commit import Change
from torc_framework.store.database.opening import open_database
from torc_framework.store.database.postgres import PostgresDatabase
from torc_framework.store.database.sql import Tx

CLIENTS = 50


def test_changes_at_once_have_answers_of_their_own(api: Any) -> None:
    """Refused and accepted changes of many clients, made together: each gets what it would get alone."""
    workflow_id = api.workflow()
    together = threading.Barrier(CLIENTS)

    def client(number: int) -> tuple[int, Any]:
        together.wait()
        record = {"workflow_id": workflow_id, "name": f"f{number // 2}", "path": f"/{number}"}
        answer = api.call("POST", "/files", record)
        return answer.status, answer.body["name"] if answer.status == 200 else answer.message

    with ThreadPoolExecutor(CLIENTS) as pool:
        answers = list(pool.map(client, range(CLIENTS)))
    assert Counter(status for status, _ in answers) == {200: CLIENTS // 2, 409: CLIENTS // 2}
    for pair in range(CLIENTS // 2):
        both = sorted(answers[2 * pair : 2 * pair + 2])
        assert both[0] == (200, f"f{pair}")
        assert f"f{pair}" in both[1][1]
    items = api.ok("GET", "/files", workflow_id=workflow_id)["items"]
    assert sorted(item["name"] for item in items) == sorted(f"f{n}" for n in range(CLIENTS // 2))


def test_a_large_body_is_parsed_beside_the_queue(api: Any) -> None:
    """A change with a body that the event loop does not parse has the same effect as a small one."""
    workflow_id = api.workflow()
    record = {"workflow_id": workflow_id, "name": "long", "data": "x" * 100_000}
    assert api.ok("POST", "/user_data", record)["data"] == record["data"]
    assert api.call("POST", "/user_data", {**record, "name": 5}).status == 400


@pytest.mark.crash
def test_what_was_answered_survives_a_kill(tmp_path: Path, make_api: Any) -> None:
    """The server is killed while many clients claim: each job that was handed out is claimed after the restart."""
    with ServerChild(tmp_path) as server:
        api = make_api(server.url)
        workflow_id = api.planned(4000)
        handed: Counter[int] = Counter()
        lock = threading.Lock()

        def client(_number: int) -> None:
            with suppress(OSError, HTTPException):
                while True:
                    jobs = api.ok("POST", f"/workflows/{workflow_id}/claim_next_jobs", limit=1)["jobs"]
                    with lock:
                        handed.update(job["id"] for job in jobs)

        with ThreadPoolExecutor(CLIENTS) as pool:
            done = [pool.submit(client, number) for number in range(CLIENTS)]
            eventually(lambda: len(handed) > 200)
            server.kill()
            for each in done:
                each.result()
        server.start()
        eventually(lambda: _answers(api))
        pending = api.ok("GET", "/jobs", workflow_id=workflow_id, status="pending", limit=10_000)["items"]
        assert set(handed) <= {job["id"] for job in pending}
        assert set(handed.values()) == {1}
        again = api.ok("POST", f"/workflows/{workflow_id}/claim_next_jobs", limit=10_000)["jobs"]
        assert set(handed).isdisjoint(job["id"] for job in again)


@pytest.fixture
def two_servers(postgres: Any) -> Iterator[tuple[Database, Database]]:
    """One database, opened as two servers do."""
    with postgres.database() as url, closing(open_database(url)) as own, closing(open_database(url)) as other:
        yield own, other


async def _queued(queue: ChangeQueue, busy: int, workflow_ids: Sequence[int], made: list[int]) -> asyncio.Future[Any]:
    """Queue a change of each workflow while all threads of the queue are busy; let the threads go on.

    Returns:
        Its result is there when all changes are made.
    """
    begun, go_on = threading.Barrier(busy + 1), threading.Event()

    def block(_tx: Tx) -> None:
        begun.wait()
        go_on.wait()

    def change(workflow_id: int) -> Change:
        def make(_tx: Tx) -> None:
            made.append(workflow_id)

        return make

    loop = asyncio.get_running_loop()
    blocking = [asyncio.ensure_future(queue.carry_out(block, 1000 + number)) for number in range(busy)]
    await loop.run_in_executor(None, begun.wait)
    changes = [asyncio.ensure_future(queue.carry_out(change(workflow_id), workflow_id)) for workflow_id in workflow_ids]
    for _ in range(3):
        await asyncio.sleep(0)  # each is in the queue then
    go_on.set()
    return asyncio.gather(*blocking, *changes)


def test_what_another_server_changes_holds_no_other_workflow_up(two_servers: tuple[Database, Database]) -> None:
    """All threads would wait if each took one of the held workflows; the change of a further one is made meanwhile."""
    own, other = two_servers
    held = [*range(1, own.writers + 1)]
    made: list[int] = []

    async def work() -> None:
        queue = ChangeQueue(own)
        loop = asyncio.get_running_loop()
        with ExitStack() as others:
            for workflow_id in held:
                others.enter_context(other.write(workflow_id))
            done = await _queued(queue, own.writers, [*held, 77], made)
            await loop.run_in_executor(None, eventually, lambda: made)
            assert made == [77]
        await done
        queue.close()

    asyncio.run(work())
    assert sorted(made) == [*held, 77]


def test_a_workflow_is_passed_over_a_limited_number_of_times(
    two_servers: tuple[Database, Database], monkeypatch: pytest.MonkeyPatch
) -> None:
    """After others have gone before it, the thread waits for the workflow that another server changes."""
    own, other = two_servers
    monkeypatch.setattr(PostgresDatabase, "writers", 1)
    others = [*range(2, 12)]
    made: list[int] = []

    async def work() -> None:
        queue = ChangeQueue(own)
        loop = asyncio.get_running_loop()
        with other.write(1):
            done = await _queued(queue, 1, [1, *others], made)
            await loop.run_in_executor(None, eventually, lambda: len(made) == MOST_PASSED_OVER)
            await asyncio.sleep(0.3)
            assert made == others[:MOST_PASSED_OVER]
        await done
        queue.close()

    asyncio.run(work())
    assert made == [*others[:MOST_PASSED_OVER], 1, *others[MOST_PASSED_OVER:]]


def _answers(api: Any) -> bool:
    with suppress(OSError, HTTPException):
        return bool(api.ok("GET", "/ping"))
    return False
