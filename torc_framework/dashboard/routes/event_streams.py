"""``dash/workflows/ID/events``: the events of a workflow for one reader, from the feed that its readers share.

A reader keeps only the id up to which it has had all events. One that reads slowly has less frequent and larger
batches; one that lacks more events than are kept is told to load everything anew.
"""

import asyncio
import re
import time
from collections import Counter
from collections.abc import AsyncIterator
from typing import Any, Final

import msgspec
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from torc_framework.dashboard.access.guard import session_of
from torc_framework.dashboard.access.login import LoginRoutes
from torc_framework.dashboard.access.sessions import ReaderSession, SessionStore
from torc_framework.dashboard.http.limits import (
    BATCH_S,
    EVENTS_PER_SECOND,
    STREAM_COMMENT_S,
    STREAMS,
    STREAMS_OF_SESSION,
)
from torc_framework.dashboard.http.streams import EndingStream
from torc_framework.dashboard.upstream.event_feed import (
    GONE,
    EventFeed,
    EventHub,
    FeedEvent,
    FeedState,
    TooManyFeedsError,
)
from torc_framework.monitoring.refusals import RefusedError

_HEADERS: Final = {"Cache-Control": "no-store", "X-Accel-Buffering": "no"}
_MOST_SINGLE: Final = int(EVENTS_PER_SECOND * BATCH_S)
"""Most events of a batch that are sent one by one."""


class EventStreams:
    """The route of event streams, with a count of the open ones."""

    def __init__(self, hub: EventHub, logins: LoginRoutes, sessions: SessionStore) -> None:
        self._hub, self._logins, self._sessions = hub, logins, sessions
        self._open = 0

    def routes(self) -> list[Route]:
        """Return the route."""
        return [Route("/dash/workflows/{id:int}/events", self.stream, methods=["GET"])]

    async def stream(self, request: Request) -> Response:
        """Begin a stream after ``Last-Event-ID`` if that is given, otherwise with the next event."""
        session = session_of(request)
        identity = self._logins.require_identity(session)
        text = request.headers.get("last-event-id") or request.query_params.get("last_event_id")
        if text is not None and not re.fullmatch("[0-9]{1,18}", text):
            raise RefusedError(400, "Last-Event-ID is not the id of an event")
        if session.streams >= STREAMS_OF_SESSION or self._open >= STREAMS:
            raise RefusedError(429, "too many event streams are open; close a tab")
        wake = asyncio.Event()
        try:
            feed = self._hub.join(identity, request.path_params["id"], wake)
        except TooManyFeedsError:
            raise RefusedError(429, "events of too many workflows are read; try again later") from None
        session.streams += 1
        self._open += 1

        async def end() -> None:
            session.streams -= 1
            self._open -= 1
            self._hub.leave(feed, wake)

        frames = self._frames(session, feed, wake, None if text is None else int(text))
        return EndingStream(frames, end, headers=_HEADERS, media_type="text/event-stream")

    async def _frames(
        self, session: ReaderSession, feed: EventFeed, wake: asyncio.Event, seen: int | None
    ) -> AsyncIterator[bytes]:
        told: FeedState | None = None
        last_batch = time.monotonic()
        while self._sessions.is_live(session):
            wake.clear()
            if feed.state != told:
                told = feed.state
                yield _state_frame(feed)
                if told.name == GONE:
                    return
            if feed.floor is not None and feed.last_id is not None:
                seen = feed.last_id if seen is None else seen
                if not feed.floor <= seen <= feed.last_id:
                    yield _named_frame("resync", {"last_event_id": feed.last_id}, feed.last_id)
                elif events := feed.after(seen):
                    yield _batch(events, time.monotonic() - last_batch)
                    last_batch = time.monotonic()
                seen = feed.last_id
            await asyncio.sleep(BATCH_S)
            try:
                await asyncio.wait_for(wake.wait(), STREAM_COMMENT_S)
            except TimeoutError:
                yield b": still here\n\n"


def _batch(events: list[FeedEvent], seconds: float) -> bytes:
    """Return the frames of some events: one for each, or one with their numbers if they are too many."""
    if len(events) <= _MOST_SINGLE:
        return b"".join(b"id: %d\ndata: %s\n\n" % (event.id, event.content) for event in events)
    numbers = {
        "from": events[0].id,
        "to": events[-1].id,
        "seconds": round(seconds, 3),
        "by_type": Counter(event.type for event in events),
    }
    return _named_frame("counts", numbers, events[-1].id)


def _state_frame(feed: EventFeed) -> bytes:
    state = feed.state
    values = {"state": state.name, "since": state.since, "last_event_id": feed.last_id, "error": state.error}
    return _named_frame("state", values)


def _named_frame(name: str, values: dict[str, Any], id_: int | None = None) -> bytes:
    head = b"" if id_ is None else b"id: %d\n" % id_
    return head + b"event: %s\ndata: %s\n\n" % (name.encode(), msgspec.json.encode(values))
