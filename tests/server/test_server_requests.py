"""Tests of malformed requests: each is refused with a reason, and none leads to status 500."""

import socket
from typing import Any
from urllib.parse import urlsplit

import pytest

from torc_framework.models.plan_parts import PLAN_LINES
from torc_framework.server.settings import LimitSettings

NESTED = b'{"workflow_id": 1, "name": "u", "data": ' + b"[" * 100_000 + b"]" * 100_000 + b"}"
BODIES = [
    pytest.param(b"{not json", id="not-json"),
    pytest.param(b"", id="empty"),
    pytest.param(b"null", id="null"),
    pytest.param(b"[]", id="list"),
    pytest.param(b'"text"', id="text"),
    pytest.param(b'{"name": "\xff\xfe"}', id="bad-utf8"),
    pytest.param(b'{"name": "\\ud800"}', id="lone-surrogate"),
    pytest.param(b'{"workflow_id": 1e400}', id="infinite"),
    pytest.param(b'{"workflow_id": NaN}', id="nan"),
    pytest.param(NESTED, id="deep"),
    pytest.param(b"\x00\x01", id="binary"),
    pytest.param(b'{"workflow_id": 1, "name": "a\\u0000b", "user": "u", "path": "p"}', id="nul"),
]
PATHS = ["/files", "/user_data", "/workflows", "/jobs", "/bulk_jobs", "/workflows/from_plan", "/workflows/1/exchange"]


@pytest.mark.parametrize("path", PATHS)
@pytest.mark.parametrize("body", BODIES)
def test_a_body_that_makes_no_sense_is_refused(api: Any, path: str, body: bytes) -> None:
    """With a 4xx that says why; the server goes on."""
    answer = api.raw("POST", path, body)
    assert 400 <= answer.status < 500, answer
    assert answer.message
    assert api.ok("GET", "/ping") == {"status": "ok"}


@pytest.mark.parametrize("body", BODIES)
@pytest.mark.parametrize(
    ("method", "path"), [("PUT", "/workflows/1/status"), ("POST", "/workflows/1/begin_run"), ("PUT", "/files/1")]
)
def test_other_bodies_are_no_fault_either(api: Any, method: str, path: str, body: bytes) -> None:
    """Changes, too, never fail in the server."""
    assert api.raw(method, path, body).status < 500


def test_deeply_nested_user_data_is_refused_or_kept(api: Any) -> None:
    """Whatever is taken can be read again."""
    workflow_id = api.workflow()
    for depth in (10, 100, 500, 900, 1000, 1500, 5000):
        data = b"[" * depth + b"]" * depth
        body = b'{"workflow_id": %d, "name": "u%d", "data": %s}' % (workflow_id, depth, data)
        answer = api.raw("POST", "/user_data", body)
        assert answer.status in (200, 400)
        if answer.status == 200:
            assert api.call("GET", f"/user_data/{answer.body['id']}").status == 200
    assert api.call("GET", "/user_data", workflow_id=workflow_id).status == 200


def test_a_plan_that_is_wrong_leaves_nothing(api: Any) -> None:
    """Every kind of wrong is 422, and there is no workflow afterwards."""
    before = api.ok("GET", "/workflows")["total_count"]
    workflow = {"name": "p", "user": "u"}
    jobs = [{"name": "a", "command": "x"}]
    for plan in (
        {"jobs": jobs},
        {"workflow": workflow, "jobs": [{"name": "a"}]},
        {"workflow": workflow, "jobs": jobs, "dependencies": [[0, 0]]},
        {"workflow": workflow, "jobs": jobs, "dependencies": [[0, 5]]},
        {"workflow": workflow, "jobs": jobs, "dependencies": [["0", 1]]},
        {"workflow": workflow, "jobs": jobs * 2},
        {"workflow": workflow, "jobs": jobs, "files": [{"workflow_id": 0, "name": "f"}]},
        {"workflow": workflow, "jobs": jobs, "actions": [{"trigger_type": "t", "action_type": "a", "jobs": [3]}]},
    ):
        answer = api.call("POST", "/workflows/from_plan", plan, initialize=True)
        assert answer.status == 422, plan
        assert answer.message
    assert api.call("POST", "/workflows/from_plan", {}, initialize="perhaps").status == 400
    assert api.ok("GET", "/workflows")["total_count"] == before


@pytest.mark.parametrize(
    ("path", "reason"),
    [
        ("/files?workflow_id=x", "query 'workflow_id': 'x' is not an integer"),
        ("/files?workflow_id=99999999999999999999", "out of range"),
        ("/files?workflow_id=1&offset=-1", "out of range"),
        ("/files?workflow_id=1&limit=-5", "out of range"),
        ("/files?workflow_id=1&limit=ten", "query 'limit': 'ten' is not an integer"),
        ("/files?workflow_id=1&is_output=maybe", "'maybe' is neither true nor false"),
        ("/files/abc", "path: id: 'abc' is not an integer"),
        ("/files/99999999999999999999", "out of range"),
        ("/workflows/1.5/status", "is not an integer"),
    ],
)
def test_paths_and_queries_are_parsed_strictly(api: Any, path: str, reason: str) -> None:
    """400, naming the parameter, the value and what was expected."""
    answer = api.raw("GET", path)
    assert answer.status == 400
    assert reason in answer.message


def test_an_unknown_status_is_refused_in_a_filter(api: Any) -> None:
    """With the known ones."""
    answer = api.call("GET", "/jobs", workflow_id=api.workflow(), status="happy")
    assert answer.status == 400
    assert "unknown job status 'happy'; known: uninitialized" in answer.message


def test_wrong_paths_and_methods_are_told_apart(api: Any) -> None:
    """404 and 405, as errors with a reason."""
    assert api.call("GET", "/nowhere").status == 404
    assert api.call("PATCH", "/files/1").status == 405
    assert api.raw("GET", "/elsewhere", prefix=False).message == "Not Found"


def test_every_answer_has_a_name(api: Any) -> None:
    """Good or bad, each carries an id of its own."""
    names = {api.call("GET", path).headers["x-span-id"] for path in ("/ping", "/ping", "/nowhere", "/files")}
    assert len(names) == 4


def test_a_body_that_is_too_large_is_not_read(api: Any) -> None:
    """The announced length is enough to refuse it."""
    address = urlsplit(api.url)
    with socket.create_connection((address.hostname, address.port), timeout=30) as connection:
        length = LimitSettings().body_mib * 2**20 + 1
        head = f"POST {address.path}/files HTTP/1.1\r\nHost: h\r\nContent-Length: {length}\r\n\r\n"
        connection.sendall(head.encode())
        assert connection.recv(4096).startswith(b"HTTP/1.1 413 ")


@pytest.mark.parametrize(
    ("path", "kind", "mib", "is_refused"),
    [
        ("/workflows/from_plan", PLAN_LINES, LimitSettings().body_mib + 1, False),
        ("/workflows/from_plan", PLAN_LINES, LimitSettings().plan_mib + 1, True),
        ("/workflows/from_plan", "application/json", LimitSettings().body_mib + 1, True),
        ("/files", PLAN_LINES, LimitSettings().body_mib + 1, True),
    ],
)
def test_a_plan_in_parts_may_be_larger(api: Any, path: str, kind: str, mib: int, *, is_refused: bool) -> None:
    """No other body may, because the server keeps it in memory."""
    address = urlsplit(api.url)
    with socket.create_connection((address.hostname, address.port), timeout=30) as connection:
        head = f"POST {address.path}{path} HTTP/1.1\r\nHost: {address.hostname}\r\nContent-Type: {kind}\r\n"
        connection.sendall(f"{head}Content-Length: {mib << 20}\r\nExpect: 100-continue\r\n\r\n".encode())
        assert connection.recv(4096).startswith(b"HTTP/1.1 413 " if is_refused else b"HTTP/1.1 100 ")


def test_text_survives(api: Any) -> None:
    """Any text, in any script, comes back as it was."""
    name = "Größe \u4e2d\u6587 \U0001f600 'quoted\" \\ \n\t -- ; %s {x}"
    workflow_id = api.workflow(name=name)
    assert api.ok("GET", f"/workflows/{workflow_id}")["name"] == name
    assert [item["id"] for item in api.ok("GET", "/workflows", name=name)["items"]] == [workflow_id]


@pytest.mark.parametrize(
    ("path", "status"),
    [
        ("/workflows?limit=-1", 400),
        ("/workflows?limit=99999999999999999999", 400),
        (f"/workflows?limit={'9' * 5000}", 400),
        ("/workflows?limit=9223372036854775807", 200),
        ("/workflows?offset=9223372036854775807", 200),
        ("/workflows?name=a%00b", 400),
        ("/workflows?name=%ff", 200),
        ("/workflows?sort_by=id;drop%20table%20job", 422),
        ("/workflows?sort_by=(select%201)", 422),
        ("/workflows/-1", 404),
        ("/workflows/0", 404),
        ("/workflows/%00", 400),
        ("/workflows/99999999999999999999", 400),
        (f"/{'x' * 5000}", 404),
        (f"/workflows?{'x' * 30_000}", 422),
    ],
)
def test_addresses_out_of_all_bounds(api: Any, path: str, status: int) -> None:
    """Each has its answer, and none is a fault of the server."""
    assert api.call("GET", path).status == status


def test_an_escaped_nul_is_text(api: Any) -> None:
    """The six characters that stand for NUL may be stored where they do not stand for it."""
    name = "a\\u0000"
    workflow_id = api.workflow(name=name)
    assert api.ok("GET", f"/workflows/{workflow_id}")["name"] == name


def test_a_batch_has_a_greatest_size(api: Any) -> None:
    """One job too many is refused, and nothing of the batch is stored."""
    workflow_id = api.workflow()
    jobs = [{"workflow_id": workflow_id, "name": f"j{n}", "command": "true"} for n in range(10_001)]
    answer = api.call("POST", "/bulk_jobs", {"jobs": jobs})
    assert (answer.status, "10000" in answer.message) == (422, True)
    assert api.ok("GET", "/jobs", workflow_id=workflow_id)["total_count"] == 0
    assert len(api.ok("POST", "/bulk_jobs", {"jobs": jobs[1:]})["jobs"]) == 10_000
