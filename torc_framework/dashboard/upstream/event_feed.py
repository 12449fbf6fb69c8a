"""The events of one workflow: one stream from the server, kept for all readers of the same user."""

import asyncio
import contextlib
import time
from collections import deque
from collections.abc import Mapping
from typing import Final

import httpx2
import msgspec
from attrs import frozen

from torc_framework.dashboard.http.limits import (
    EVENT_BYTES,
    FEED_IDLE_S,
    FEEDS,
    FEEDS_OF_PERSON,
    KEPT_EVENT_BYTES,
    KEPT_EVENTS,
)
from torc_framework.dashboard.upstream.http_client import HttpClients
from torc_framework.dashboard.upstream.monitor import ServerMonitor
from torc_framework.monitoring.identity import Identity, UpstreamServer

CONNECTING: Final = "connecting"
LIVE: Final = "live"
RECONNECTING: Final = "reconnecting"
GONE: Final = "gone"
SILENCE_S: Final = 60.0
"""Seconds without data after which the server's stream counts as broken; it sends a heartbeat every 15 by default."""
_FIRST_PAUSE_S: Final = 0.5
_LONGEST_PAUSE_S: Final = 15.0
_ENDINGS: Final = {
    401: "the server no longer accepts the log-in",
    403: "the workflow is no longer shared with you",
    404: "the workflow is deleted",
}


class TooManyFeedsError(Exception):
    """Streams of as many workflows are open as may be."""


@frozen
class FeedState:
    """The state of the stream from the server; times are seconds since the epoch."""

    name: str
    since: float
    error: str | None = None


@frozen
class FeedEvent:
    """One event: its id, its type, and the JSON of all its fields with its workflow."""

    id: int
    type: str
    content: bytes


class _Type(msgspec.Struct):
    event_type: str = ""


class EventFeed:
    """The latest events of one workflow.

    Attributes:
        workflow_id: The workflow.
        state: The state of the stream from the server.
        floor: Of later events than the one with this id, all are kept; None until the server has told where the stream
            begins.
        last_id: Id up to which all events have arrived.
    """

    def __init__(self, workflow_id: int, identity: Identity, upstream: UpstreamServer, clients: HttpClients) -> None:
        self.workflow_id = workflow_id
        self._identity, self._upstream, self._clients = identity, upstream, clients
        self.state = FeedState(CONNECTING, time.time())
        self.floor: int | None = None
        self.last_id: int | None = None
        self.readers: set[asyncio.Event] = set()
        self._events: deque[FeedEvent] = deque()
        self._kept_bytes = 0

    def after(self, id_: int) -> list[FeedEvent]:
        """Return the kept events after the one with this id."""
        found: list[FeedEvent] = []
        for event in reversed(self._events):
            if event.id <= id_:
                break
            found.append(event)
        return found[::-1]

    async def run(self) -> None:
        """Read the server's stream until the workflow is gone or the task is cancelled."""
        pause = _FIRST_PAUSE_S
        while self.state.name != GONE:
            try:
                await self._read()
                error, pause = "the server has ended the stream", _FIRST_PAUSE_S
            except _EndedError as ended:
                self._enter(GONE, str(ended))
                return
            except (httpx2.HTTPError, httpx2.InvalidURL, _BrokenError) as broken:
                error = str(broken) or type(broken).__name__
            if self.state.name == LIVE:
                pause = _FIRST_PAUSE_S
            self._enter(RECONNECTING, error)
            await asyncio.sleep(pause)
            pause = min(2 * pause, _LONGEST_PAUSE_S)

    async def _read(self) -> None:
        """Read one connection until it ends."""
        base = self._upstream.base
        if base is None:
            raise _BrokenError("the server is stopped")
        headers = {"Accept": "text/event-stream", "Accept-Encoding": "identity", **self._identity.headers}
        if self.last_id is not None:
            headers["Last-Event-ID"] = str(self.last_id)
        request = self._clients.of(self._upstream).stream(
            "GET",
            f"{base}/workflows/{self.workflow_id}/events/stream",
            headers=headers,
            timeout=httpx2.Timeout(SILENCE_S, connect=10.0),
        )
        async with request as answer:
            if answer.status_code in _ENDINGS:
                raise _EndedError(_ENDINGS[answer.status_code])
            if answer.status_code != 200:
                raise _BrokenError(f"the server answered with status {answer.status_code}")
            rest = b""
            async for piece in answer.aiter_raw():
                *frames, rest = (rest + piece).replace(b"\r\n", b"\n").split(b"\n\n")
                if len(rest) > EVENT_BYTES:
                    raise _BrokenError("the server sent an event that is too long")
                for frame in frames:
                    self._take(frame)
                if self.state.name != LIVE:
                    self._enter(LIVE, None)
                elif frames:
                    self._wake()

    def _take(self, frame: bytes) -> None:
        """Take one frame: an event, or only the id up to which all events have arrived."""
        lines = [line.partition(b":") for line in frame.split(b"\n")]
        values = {name: value.removeprefix(b" ") for name, _, value in lines if name}
        if not values.get(b"id", b"").isdigit():
            return
        id_, data = int(values[b"id"]), values.get(b"data")
        if self.last_id is not None and id_ < self.last_id:  # another database: what was kept is of the former one
            self._events.clear()
            self._kept_bytes = 0
            self.floor = None
        self.last_id = id_
        if self.floor is None:
            self.floor = id_ if data is None else id_ - 1
        if data is None or not data.startswith(b"{"):
            return
        with contextlib.suppress(msgspec.DecodeError):
            kind = msgspec.json.decode(data, type=_Type).event_type
            event = FeedEvent(id_, kind, b'{"workflow_id":%d,"id":%d,' % (self.workflow_id, id_) + data[1:])
            self._events.append(event)
            self._kept_bytes += len(event.content)
        while len(self._events) > KEPT_EVENTS or self._kept_bytes > KEPT_EVENT_BYTES:
            oldest = self._events.popleft()
            self._kept_bytes -= len(oldest.content)
            self.floor = oldest.id

    def _enter(self, name: str, error: str | None) -> None:
        if (name, error) != (self.state.name, self.state.error):
            since = self.state.since if name == self.state.name else time.time()
            self.state = FeedState(name, since, error)
        self._wake()

    def _wake(self) -> None:
        for reader in self.readers:
            reader.set()


class _EndedError(Exception):
    """The stream is over for good."""


class _BrokenError(Exception):
    """The connection is of no use; another one may be."""


class EventHub:
    """The feeds, by user and workflow; one without readers ends after `FEED_IDLE_S` seconds."""

    def __init__(self, upstream: UpstreamServer, clients: HttpClients, monitor: ServerMonitor) -> None:
        self._upstream, self._clients, self._monitor = upstream, clients, monitor
        self._feeds: dict[tuple[str, int], tuple[EventFeed, asyncio.Task[None]]] = {}

    def join(self, identity: Identity, workflow_id: int, wake: asyncio.Event) -> EventFeed:
        """Return the feed of a workflow; ``wake`` is set whenever it changes, until the reader leaves.

        Raises:
            TooManyFeedsError: as many are open as may be, of all or of this person, and all of them have readers.
        """
        key = (identity.key, workflow_id)
        found = self._feeds.get(key)
        if found is None or found[1].done():
            self._make_room(
                {each: feed for each, feed in self._feeds.items() if each[0] == identity.key}, FEEDS_OF_PERSON
            )
            self._make_room(self._feeds, FEEDS)
            feed = EventFeed(workflow_id, identity, self._upstream, self._clients)
            self._feeds[key] = found = (feed, asyncio.create_task(feed.run()))
        found[0].readers.add(wake)
        return found[0]

    def _make_room(self, feeds: Mapping[tuple[str, int], tuple[EventFeed, asyncio.Task[None]]], most: int) -> None:
        """End one of some feeds that has no readers if there are too many of them."""
        if len(feeds) < most:
            return
        for key, (feed, task) in feeds.items():
            if not feed.readers:
                task.cancel()
                del self._feeds[key]
                return
        raise TooManyFeedsError

    def leave(self, feed: EventFeed, wake: asyncio.Event) -> None:
        """Note that a reader does not need a feed any more."""
        feed.readers.discard(wake)
        if feed.state.name == RECONNECTING:
            self._monitor.look_now()
        if not feed.readers:
            asyncio.get_running_loop().call_later(FEED_IDLE_S, self._end_if_unread, feed)

    def _end_if_unread(self, feed: EventFeed) -> None:
        for key, (kept, task) in list(self._feeds.items()):
            if kept is feed and not feed.readers:
                task.cancel()
                del self._feeds[key]

    async def close(self) -> None:
        """End all feeds."""
        tasks = [task for _, task in self._feeds.values()]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
