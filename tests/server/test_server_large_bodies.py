"""Tests of large bodies of every shape: the server's own process neither parses nor keeps them."""

import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st
from server_child import ServerChild

from torc_framework.server.dispatch.large_bodies import INLINE_BYTES, LargeBodyWorker
from torc_framework.server.dispatch.large_body_messages import LargeBodyOrder
from torc_framework.server.http.endpoint_results import RequestError
from torc_framework.store.database.opening import open_database

SIZE = 1024 * 1024
PLAN = b'{"workflow":{"name":"w","user":"u"},"jobs":[{"name":"a","command":"c"}],'
ENDED = b'{"job_id":1,"attempt_id":1,"status":"completed","return_code":0,"exec_time_s":1,"ended_at":1}'
SHAPES = {
    "/files": (b'{"workflow_id":1,"name":"f","path":"p",', b"}"),
    "/jobs": (b'{"workflow_id":1,"name":"j","command":"c","depends_on_job_ids":[', b"]}"),
    "/user_data": (b'{"workflow_id":1,"name":"u","data":[', b"]}"),
    "/bulk_jobs": (b'{"jobs":[', b"]}"),
    "/workflows/from_plan": (PLAN + b'"dependencies":[', b"]}"),
    "/workflows/import": (b'{"export_version":"1.0","workflow":{"name":"w","user":"u"},"jobs":[', b"]}"),
    "/workflows/1/additions": (b'{"jobs":[', b"]}"),
    "/workflows/1/exchange": (b'{"compute_node_id":1,"run_id":1,"ended":[', b"]}"),
}
ITEMS = [
    *(b"1", b"1.5", b"null", b"[]", b"{}", b'""', b'"ab"', b"[1,0]", b'{"":0}', b"1e400", b"1" * 5000, b"[" * 2000),
    *(b'{"workflow_id":1,"name":"j","command":"c"}', b'{"name":"j","command":"c"}', ENDED),
    *(b'"x%d":1', b'"x%d":[]', b'"\\ud800"', b'"\\\\u0000"', b'"\\u0000"', b"\xff", b"\xef\xbb\xbf"),
]


def body_of(path: str, item: bytes, *, is_cut: bool = False) -> bytes:
    """Return a body of the size that consists of one item again and again."""
    head, tail = SHAPES[path]
    count = SIZE // (len(item) + 1)
    items = (item.replace(b"%d", b"%d" % n) for n in range(count)) if b"%d" in item else [item] * count
    return head + b",".join(items) + (b"" if is_cut else tail)


def used(pid: int) -> tuple[float, int]:
    """Return the seconds of computing and the most bytes of memory that a process has used."""
    values = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    peak = next(line for line in Path(f"/proc/{pid}/status").read_text().splitlines() if line.startswith("VmHWM:"))
    return (int(values[11]) + int(values[12])) / os.sysconf("SC_CLK_TCK"), int(peak.split()[1]) * 1024


@pytest.fixture(scope="module")
def busy(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServerChild]:
    """A server with one workflow, which has to be well at the end."""
    with ServerChild(tmp_path_factory.mktemp("busy"), "--log-level", "warning") as child:
        yield child
        assert child.stop() == 0
        assert "level=error" not in child.log


def test_no_shape_of_body_costs_the_servers_own_process_more_than_its_size(busy: ServerChild, make_api: Any) -> None:
    """Every response is about the body; the server's own process uses little time and memory."""
    api = make_api(busy.url)
    api.workflow()

    @settings(
        max_examples=25,
        deadline=None,
        database=None,
        derandomize=True,
        phases=[Phase.generate],
        suppress_health_check=list(HealthCheck),
    )
    @given(st.sampled_from(sorted(SHAPES)), st.sampled_from(ITEMS), st.booleans())
    def send(path: str, item: bytes, is_cut: bool) -> None:
        body = body_of(path, item, is_cut=is_cut)
        answer = api.raw("POST", path, body)
        assert answer.status in (200, 400, 404, 409, 413, 422), answer
        if answer.status != 200:
            assert len(answer.message) < 4000
        assert api.call("GET", "/ping").status == 200

    plain = b'{"workflow_id":1,"name":"plain","data":"%s"}' % (b"x" * SIZE)
    assert api.raw("POST", "/user_data", plain).status == 200
    begun, peak = used(busy.process.pid)
    send()
    computed, most = used(busy.process.pid)
    assert computed - begun < 25 * 0.2
    assert most - peak < 10 * SIZE


def test_a_large_plan_is_stored_by_a_worker(busy: ServerChild, make_api: Any) -> None:
    """With its first run begun; what a client sees does not differ from a small one."""
    api = make_api(busy.url)
    workflow_id = api.planned(10_000)
    assert api.ok("GET", "/jobs", workflow_id=workflow_id, limit=1)["total_count"] == 10_000
    node = api.node(workflow_id)
    assert len(api.exchange(workflow_id, node, slots=3)["jobs"]) == 3


def test_a_large_exchange_is_carried_out_once(busy: ServerChild, make_api: Any, report_end: Any) -> None:
    """Reports count as in a small one; they may be sent again."""
    api = make_api(busy.url)
    workflow_id = api.planned(2)
    node = api.node(workflow_id)
    job = api.exchange(workflow_id, node, slots=1)["jobs"][0]["id"]
    report = {**report_end(job), "observation": {"notes": "x" * INLINE_BYTES}}
    for _ in range(2):
        reply = api.exchange(workflow_id, node, ended=[report], slots=1, wait_s=60)
        assert len(reply["jobs"]) == 1 or not reply["is_complete"]
    assert api.ok("GET", f"/jobs/{job}")["status"] == "completed"
    assert len(api.ok("GET", "/results", workflow_id=workflow_id)["items"]) == 1


def test_unknown_fields_of_a_large_body_are_named(busy: ServerChild, make_api: Any) -> None:
    api = make_api(busy.url)
    body = {"workflow_id": api.workflow(), "name": "f", "path": "p", **{f"x{n}": 1 for n in range(40_000)}}
    answer = api.raw("POST", "/files", json.dumps(body).encode())
    assert answer.status == 200
    assert "ignored: x0, x1, " in {name.lower(): value for name, value in answer.headers.items()}["warning"]


def test_a_worker_that_dies_refuses_its_request_only(tmp_path: Path) -> None:
    """The write lock on the database is released."""
    database = open_database(str(tmp_path / "torc.db"))
    worker = LargeBodyWorker(database.source)
    worker._process.kill()
    order = LargeBodyOrder(
        "POST /files", {"type": "http", "method": "POST", "path": "/", "headers": [], "path_params": {}}
    )
    with pytest.raises(RequestError, match="too much memory or time"):
        worker.carry_out(order, b"{}", database)
    worker.end()
    with database.write():
        pass
    database.close()
