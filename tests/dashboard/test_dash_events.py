"""Events for readers: shared streams, reconnection, numbers in place of many events, and readers that lag behind."""

import asyncio
import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from dash_bench import DashReader, Listener, running_dash
from people import Person
from server_child import ServerChild

from torc_framework.dashboard.http.limits import KEPT_EVENT_BYTES, KEPT_EVENTS
from torc_framework.dashboard.routes.event_streams import _batch
from torc_framework.dashboard.upstream.event_feed import EventFeed, FeedEvent
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
def test_events_of_an_unknown_workflow_are_gone(owner: DashReader) -> None:
    listener = Listener(owner, 10**9)
    listener.wait_for_state("gone")
    assert owner.http.get("dash/events?workflows=1", headers={"Last-Event-ID": "x"}).status_code == 400


def test_many_events_become_numbers() -> None:
    events = [FeedEvent(number, "job_completed", b'{"id":%d}' % number) for number in range(1, 1001)]
    few = _batch(7, events[:3], 0.25).decode()
    assert few.count("data: ") == 3
    many = _batch(7, events, 0.25).decode()
    assert many.startswith("event: counts\n")
    counts = json.loads(many.partition("data: ")[2])
    assert (counts["workflow_id"], counts["by_type"], counts["to"]) == (7, {"job_completed": 1000}, 1000)


def _feed() -> EventFeed:
    upstream = UpstreamServer("http://127.0.0.1:9")
    return EventFeed(1, Identity(PROCESS, upstream, None), upstream, HttpClients())


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
