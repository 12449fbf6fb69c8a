"""Tests of the queue of changes: many changes at once share transactions, and each has an answer of its own."""

import threading
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from http.client import HTTPException
from pathlib import Path
from typing import Any

import pytest
from server_child import ServerChild
from waiting import eventually

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


def _answers(api: Any) -> bool:
    with suppress(OSError, HTTPException):
        return bool(api.ok("GET", "/ping"))
    return False
