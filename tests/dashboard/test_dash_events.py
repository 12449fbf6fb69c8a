"""Events for readers: shared streams, reconnection, numbers in place of many events, and readers that lag behind."""

import asyncio
import json
import socket
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from urllib.parse import urlsplit

import pytest
from dash_bench import DashProgram, DashReader, Listener, running_dash
from people import Person
from server_child import ServerChild

from torc_framework.dashboard.http.limits import (
    BATCH_S,
    EVENTS_PER_SECOND,
    KEPT_EVENT_BYTES,
    KEPT_EVENTS,
    STREAMS_OF_PERSON,
)
from torc_framework.dashboard.routes.event_streams import _news, _Position
from torc_framework.dashboard.upstream.event_feed import EventFeed
from torc_framework.dashboard.upstream.http_client import HttpClients
from torc_framework.monitoring.identity import PROCESS, Identity, UpstreamServer


@pytest.fixture
def restarted(tmp_path: Path) -> Iterator[ServerChild]:
    """A server that the test ends and starts again."""
    (tmp_path / "server").mkdir()
    with ServerChild(tmp_path / "server", "--log-level", "error") as child:
        yield child


def add_events(url: str, workflow_id: int, count: int) -> None:
    """Store events of a program."""
    person = Person(url)
    for number in range(count):
        person.ok("POST", "/events", {"workflow_id": workflow_id, "data": {"event_type": "note", "number": number}})


@pytest.mark.e2e
def test_a_stream_goes_on_after_a_restart_of_the_server(restarted: ServerChild, tmp_path: Path) -> None:
    with running_dash(tmp_path, "--api-url", restarted.url) as program:
        owner = program.owner()
        id_ = owner.create({"name": "w", "jobs": [{"name": "a", "command": "true"}]})
        add_events(restarted.url, id_, 1)
        first, second = Listener(owner, id_), Listener(owner, id_)
        for listener in (first, second):
            listener.wait_for_state("live")
        add_events(restarted.url, id_, 2)
        for listener in (first, second):
            assert [event["data"]["number"] for event in listener.wait_for("message", 2)] == [0, 1]
        restarted.kill()
        first.wait_for_state("reconnecting")
        restarted.start()
        first.wait_for_state("live")
        add_events(restarted.url, id_, 1)
        assert len(first.wait_for("message", 3)) == 3
        ids = [event["id"] for event in first.of("message")]
        late = Listener(owner, id_, **{"Last-Event-ID": f"{id_}={ids[0]}"})
        assert [event["id"] for event in late.wait_for("message", 2)] == ids[1:]
        unknown = Listener(owner, id_, **{"Last-Event-ID": f"{id_}=0"})
        assert unknown.wait_for("resync")[0]["last_event_id"] == ids[-1]
        owner.order("delete", id_)
        first.wait_for_state("gone")


@pytest.mark.e2e
def test_readers_that_do_not_read_cost_the_others_no_event(server: str, dash: DashProgram, owner: DashReader) -> None:
    """Others get each event once and in order, go on where they were, and the streams end with their connections."""
    id_ = owner.create({"name": "w", "jobs": [{"name": "a", "command": "true"}]})
    cookies = "; ".join(f"{name}={value}" for name, value in owner.http.cookies.items())
    request = f"GET /dash/events?workflows={id_} HTTP/1.1\r\nHost: localhost\r\nCookie: {cookies}\r\n\r\n"
    person, count = Person(server), 60
    with ExitStack() as connections:
        for _ in range(STREAMS_OF_PERSON - 2):
            idle = connections.enter_context(socket.socket())
            idle.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
            idle.connect(("127.0.0.1", urlsplit(dash.base).port or 0))
            idle.sendall(request.encode())
        first = Listener(owner, id_)
        first.wait_for_state("live")
        for number in range(count):
            data = {"event_type": "note", "number": number, "text": "x" * 20_000}
            person.ok("POST", "/events", {"workflow_id": id_, "data": data})
        events = first.wait_for("message", count)
        assert [event["data"]["number"] for event in events] == list(range(count))
        ids = [event["id"] for event in events]
        assert ids == sorted(set(ids))
        late = Listener(owner, id_, **{"Last-Event-ID": f"{id_}={ids[9]}"})
        assert [event["id"] for event in late.wait_for("message", count - 10)] == ids[10:]
    for _ in range(8):  # the streams of the idle connections are no longer counted
        Listener(owner, id_).wait_for_state("live")


@pytest.mark.e2e
def test_events_of_an_unknown_workflow_are_gone(owner: DashReader) -> None:
    listener = Listener(owner, 10**9)
    listener.wait_for_state("gone")
    assert owner.http.get("dash/events?workflows=1", headers={"Last-Event-ID": "x"}).status_code == 400


def _feed() -> EventFeed:
    upstream = UpstreamServer("http://127.0.0.1:9")
    return EventFeed(1, Identity(PROCESS, upstream, None), upstream, HttpClients())


def _take(feed: EventFeed, count: int) -> None:
    """Let so many events arrive at a feed."""
    begin = feed.last_id or 0
    for number in range(begin + 1, begin + count + 1):
        feed._take(b'id: %d\ndata: {"event_type":"job_completed"}' % number)


def _position() -> _Position:
    """Return the position of a reader who has seen all of an empty feed."""
    feed = _feed()
    feed._take(b"id: 0")
    return _Position(feed, 0, feed.state, batch_at=100.0)


def _ids(frames: bytes) -> list[int]:
    """Return the ids of the events that are sent one by one."""
    return [json.loads(frame.removeprefix(b"data: "))["id"] for frame in frames.split(b"\n\n") if frame[:5] == b"data:"]


def test_many_events_become_numbers() -> None:
    position = _position()
    _take(position.feed, 3)
    assert _ids(_news(position, 100.25)) == [1, 2, 3]
    _take(position.feed, 1000)
    many = _news(position, 100.5).decode()
    assert many.startswith("event: counts\n")
    counts = json.loads(many.partition("data: ")[2])
    assert counts == {"workflow_id": 1, "from": 4, "to": 1003, "seconds": 0.25, "by_type": {"job_completed": 1000}}


def test_events_at_the_highest_rate_come_one_by_one_in_bursts_too() -> None:
    position = _position()
    for second in range(101, 161):
        _take(position.feed, int(EVENTS_PER_SECOND))
        assert len(_ids(_news(position, second))) == EVENTS_PER_SECOND


def test_of_more_events_some_are_numbers_and_none_is_lost() -> None:
    position, sent, counted = _position(), 0, 0
    batches = int(60 / BATCH_S)
    each = int(2 * EVENTS_PER_SECOND * BATCH_S)
    for number in range(1, batches + 1):
        _take(position.feed, each)
        frames = _news(position, 100 + number * BATCH_S)
        sent += len(_ids(frames))
        if frames.startswith(b"event: counts"):
            counted += sum(json.loads(frames.partition(b"data: ")[2])["by_type"].values())
    assert sent + counted == batches * each
    assert 0 < sent <= EVENTS_PER_SECOND * 61


def test_a_feed_keeps_the_latest_events_only() -> None:
    feed = _feed()
    feed._take(b"id: 10")
    assert (feed.floor, feed.last_id) == (10, 10)
    for number in range(11, 11 + KEPT_EVENTS + 5):
        feed._take(b'id: %d\nevent: note\ndata: {"event_type":"note"}' % number)
    assert feed.floor == 15
    assert [event.id for event in feed.after(feed.last_id or 0)] == []
    assert len(feed.after(0)) == KEPT_EVENTS
    assert feed.after(feed.floor)[0].content == b'{"workflow_id":1,"id":16,"event_type":"note"}'


def test_a_feed_keeps_few_long_events() -> None:
    feed = _feed()
    long = b'{"event_type":"note","data":"%s"}' % (b"x" * 100_000)
    for number in range(1, 101):
        feed._take(b"id: %d\ndata: %s" % (number, long))
    kept = feed.after(feed.floor or 0)
    assert kept[-1].id == 100
    assert len(kept) == KEPT_EVENT_BYTES // len(kept[0].content)


def test_a_feed_of_another_database_forgets_the_former_events() -> None:
    feed = _feed()
    feed._take(b'id: 500\ndata: {"event_type":"note"}')
    feed._take(b"id: 3")
    assert (feed.floor, feed.last_id, feed.after(0)) == (3, 3, [])


@pytest.mark.parametrize(
    "frame", [b"", b": comment", b"data: {}", b"id: x\ndata: {}", b"id: 5\ndata: [1]", b"id: 5\ndata: {", b"\xff:\xff"]
)
def test_a_feed_takes_no_harm_from_a_strange_frame(frame: bytes) -> None:
    feed = _feed()
    feed._take(frame)
    assert feed.after(0) == []


def test_a_feed_without_a_server_reconnects() -> None:
    async def look() -> str:
        feed = _feed()
        task = asyncio.create_task(feed.run())
        while feed.state.name != "reconnecting":
            await asyncio.sleep(0.05)
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)
        return feed.state.error or ""

    assert asyncio.run(look())
