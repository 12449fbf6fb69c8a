"""Tests of event streams over real sockets."""

import json
import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.client import HTTPConnection, HTTPResponse
from itertools import islice
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest
from server_child import ServerChild

from torc_framework.client import TorcClient
from torc_framework.client.http.event_stream import StreamedEvent
from torc_framework.errors import ApiError
from torc_framework.models.records import EventRecord, WorkflowRecord
from torc_framework.store.database.opening import open_database
from torc_framework.store.record_kinds.results import EVENTS
from torc_framework.store.records import crud


@contextmanager
def opened(url: str, workflow_id: int, query: str = "", **headers: str) -> Iterator[HTTPResponse]:
    """Open a stream as any program could."""
    parts = urlsplit(url)
    connection = HTTPConnection(parts.netloc, timeout=30)
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    connection.request("GET", f"{parts.path}/workflows/{workflow_id}/events/stream{query}", headers=named)
    try:
        yield connection.getresponse()
    finally:
        connection.close()


def frame(response: HTTPResponse) -> dict[str, str]:
    """Return the next frame that holds an event, by its fields."""
    fields: dict[str, str] = {}
    while True:
        raw = response.readline()
        assert raw, "the stream has ended"
        line = raw.decode().rstrip("\n")
        if line:
            name, _, value = line.partition(": ")
            fields[name] = value
        elif "data" in fields:
            return fields
        else:
            fields = {"seen": fields.get("id", "")}


def tell(api: Any, workflow_id: int, **data: Any) -> int:
    """Store an event; return its id."""
    return int(api.ok("POST", "/events", {"workflow_id": workflow_id, "data": data})["id"])


def numbers(events: Any, count: int) -> list[int]:
    """Return the numbers that the next events carry."""
    return [event.data["n"] for event in islice(events, count)]


def test_an_event_is_a_frame_of_the_contract(api: Any) -> None:
    """Id, type and the five keys of Torc's stream."""
    workflow_id = api.planned(1, initialize=False)
    with opened(api.url, workflow_id) as response:
        assert response.status == 200
        assert response.getheader("Content-Type") == "text/event-stream; charset=utf-8"
        assert response.readline() == b"id: 0\n"
        node = api.node(workflow_id)
        found = frame(response)
    (stored,) = api.ok("GET", "/events", workflow_id=workflow_id)["items"]
    assert (found["id"], found["event"]) == (str(stored["id"]), "compute_node_started")
    assert json.loads(found["data"]) == {
        "workflow_id": workflow_id,
        "timestamp": stored["timestamp"],
        "event_type": "compute_node_started",
        "severity": "info",
        "data": {"compute_node_id": node, "hostname": "h", "compute_node_type": "local"},
    }


@pytest.mark.parametrize(
    ("level", "expected"), [("debug", "abcd"), ("info", "bcd"), ("warning", "cd"), ("error", "d"), ("loud", "bcd")]
)
def test_a_level_leaves_out_what_is_less_grave(api: Any, level: str, expected: str) -> None:
    """A level that does not exist is info."""
    workflow_id = api.workflow()
    for name, severity in zip("abcd", ("debug", "info", "warning", "error"), strict=True):
        tell(api, workflow_id, event_type=name, severity=severity)
    with opened(api.url, workflow_id, f"?level={level}", Last_Event_ID="0") as response:
        assert [frame(response)["event"] for _ in expected] == list(expected)


@pytest.mark.parametrize("name", ["line\nbreak", "naïve", "x" * 200, "id: 7\n\n"])
def test_a_type_cannot_break_a_frame(api: Any, name: str) -> None:
    """An event of any type name arrives as one complete frame."""
    workflow_id = api.workflow()
    number = tell(api, workflow_id, event_type=name, text="a\r\nb")
    with TorcClient(api.url).event_stream(workflow_id, last_event_id=0) as stream:
        event = next(stream)
        assert (event.id, event.event_type, event.data) == (number, name, {"text": "a\r\nb"})


@pytest.mark.parametrize("data", [None, 5, "text", [1, 2], {}, {"event_type": 7}])
def test_any_data_is_an_event(api: Any, data: Any) -> None:
    """An event that a user stored needs no type."""
    workflow_id = api.workflow()
    if api.call("POST", "/events", {"workflow_id": workflow_id, "data": data}).status != 200:
        return
    with TorcClient(api.url).event_stream(workflow_id, last_event_id=0) as stream:
        assert next(stream).event_type == "event"


def test_what_cannot_be_streamed_is_refused(api: Any) -> None:
    """A workflow that does not exist, an id that is none."""
    with opened(api.url, 99_999) as response:
        assert (response.status, json.load(response)["error"]["message"]) == (404, "Workflow not found with ID: 99999")
    workflow_id = api.workflow()
    for text in ("x", "-1", "1.5", "9" * 30, "\u00b2"):
        with opened(api.url, workflow_id, Last_Event_ID=text) as response:
            assert response.status == 400
    with pytest.raises(ApiError, match="not found"):
        TorcClient(api.url).event_stream(99_999)


def test_a_deleted_workflow_ends_its_streams(api: Any) -> None:
    """Cleanly: the answer is whole, and the client's iteration ends."""
    workflow_id = api.workflow()
    with opened(api.url, workflow_id) as response, TorcClient(api.url).event_stream(workflow_id) as stream:
        api.ok("DELETE", f"/workflows/{workflow_id}")
        assert response.read().endswith(b": the workflow is deleted\n\n")
        assert list(stream) == []


def test_ids_are_never_used_twice(api: Any) -> None:
    """Otherwise a client that has the old event would miss the new one."""
    workflow_id = api.workflow()
    last = tell(api, workflow_id, n=0)
    with TorcClient(api.url).event_stream(workflow_id, last_event_id=last) as stream:
        api.ok("DELETE", "/events", workflow_id=workflow_id)
        assert tell(api, workflow_id, n=1) > last
        assert numbers(stream, 1) == [1]
    with TorcClient(api.url).event_stream(workflow_id, last_event_id=last) as stream:
        assert numbers(stream, 1) == [1]


def test_an_id_of_the_future_is_now(api: Any) -> None:
    """A reader that comes with the id of another database hears what happens from now on."""
    workflow_id = api.workflow()
    tell(api, workflow_id, n=0)
    with TorcClient(api.url).event_stream(workflow_id, last_event_id=10**9) as stream:
        tell(api, workflow_id, n=1)
        assert numbers(stream, 1) == [1]


def test_nothing_is_lost_or_doubled_when_the_server_is_killed(tmp_path: Path) -> None:
    """The client goes on after the last event it has, again and again."""
    with ServerChild(tmp_path) as child, TorcClient(child.url, patience=60) as client:
        workflow_id = client.create(WorkflowRecord(name="w", user="u")).id or 0
        stored, seen, enough = 0, list[StreamedEvent](), threading.Event()
        stream = client.event_stream(workflow_id)

        def read() -> None:
            for event in stream:
                seen.append(event)
                if event.data["n"] == 60:
                    enough.set()

        reader = threading.Thread(target=read, daemon=True)
        reader.start()
        for _ in range(3):
            for _ in range(20):
                stored += 1
                client.create(EventRecord(workflow_id=workflow_id, data={"n": stored}))
            child.kill()
            child.start()
        assert enough.wait(60)
        stream.close()
        reader.join(30)
        assert not reader.is_alive()
    assert [event.data["n"] for event in seen] == list(range(1, 61))


def test_the_end_of_the_server_ends_streams_cleanly(tmp_path: Path) -> None:
    """The answer is whole, and the server's exit code is 0."""
    with ServerChild(tmp_path, "--log-level", "warning") as child:
        with TorcClient(child.url) as client:
            workflow_id = client.create(WorkflowRecord(name="w", user="u")).id or 0
        with opened(child.url, workflow_id) as response:
            assert response.readline() == b"id: 0\n"
            assert child.stop() == 0
            assert response.read() == b"\n"
        assert child.log == ""


def test_events_of_other_processes_are_noticed(tmp_path: Path) -> None:
    """Two servers on one database: what one stores, the other streams."""
    with ServerChild(tmp_path) as child, TorcClient(child.url) as client:
        workflow_id = client.create(WorkflowRecord(name="w", user="u")).id or 0
        with client.event_stream(workflow_id) as stream:
            database = open_database(str(tmp_path / "torc.db"))
            with database.write() as tx:
                crud.create(tx, EVENTS, {"workflow_id": workflow_id, "data": {"n": 1}})
            database.close()
            assert numbers(stream, 1) == [1]


def test_a_quiet_stream_gives_signs_of_life(tmp_path: Path) -> None:
    """Comments, which readers ignore, so that proxies and readers know that it is alive."""
    with ServerChild(tmp_path, "--heartbeat-secs", "0.1") as child, TorcClient(child.url) as client:
        workflow_id = client.create(WorkflowRecord(name="w", user="u")).id or 0
        with opened(child.url, workflow_id) as response:
            assert [response.readline() for _ in range(5)] == [b"id: 0\n", b"\n", b": still here\n", b"id: 0\n", b"\n"]


def test_streams_of_one_address_are_limited(tmp_path: Path) -> None:
    """The one too many is refused with a reason; a place that is left is free again."""
    with ServerChild(tmp_path, "--streams-per-address", "2") as child, TorcClient(child.url) as client:
        workflow_id = client.create(WorkflowRecord(name="w", user="u")).id or 0
        first, second = client.event_stream(workflow_id, last_event_id=0), client.event_stream(workflow_id)
        client.create(EventRecord(workflow_id=workflow_id, data={"n": 1}))
        assert numbers(first, 1) == numbers(second, 1) == [1]
        with pytest.raises(ApiError, match="2 event streams are open") as refusal:
            client.event_stream(workflow_id)
        assert refusal.value.status == 429
        second.close()
        third = None
        while third is None:
            try:
                third = client.event_stream(workflow_id)
            except ApiError:
                client.ping()
        third.close()
        first.close()


@pytest.mark.slow
def test_a_reader_that_does_not_read_delays_no_other(tmp_path: Path) -> None:
    """Others are served meanwhile, and when it reads, nothing was dropped."""
    count, filler = 4_000, "x" * 2_500
    with ServerChild(tmp_path) as child, TorcClient(child.url) as client:
        workflow_id = client.create(WorkflowRecord(name="w", user="u")).id or 0
        lazy = socket.create_connection(("127.0.0.1", child.port), 60)
        target = f"/torc-service/v1/workflows/{workflow_id}/events/stream"
        lazy.sendall(f"GET {target} HTTP/1.0\r\nLast-Event-ID: 0\r\n\r\n".encode())
        with client.event_stream(workflow_id, last_event_id=0) as eager:
            database = open_database(str(tmp_path / "torc.db"))
            with database.write() as tx:
                for n in range(count):
                    crud.create(tx, EVENTS, {"workflow_id": workflow_id, "data": {"n": n, "filler": filler}})
            database.close()
            assert numbers(eager, count) == list(range(count))
            assert client.ping() == {"status": "ok"}
        with lazy, HTTPResponse(lazy) as content:
            content.begin()  # it takes the lines out of the chunks
            lines = (line for line in content if line.startswith(b"data: "))
            assert [json.loads(line[6:])["data"]["n"] for line in islice(lines, count)] == list(range(count))
