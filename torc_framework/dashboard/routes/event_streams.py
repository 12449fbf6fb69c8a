"""``dash/events``: the events of workflows for one browser, from the feeds that all readers of a workflow share.

A browser has few connections to a host, so that its tabs share one stream, which has the events of all their workflows.
A stream keeps for each workflow only the id up to which it has sent all events. One that is read slowly has less
frequent and larger batches; one that lacks more events than are kept tells its reader to load everything anew.
"""

import asyncio
import re
import time
from collections import Counter
from collections.abc import AsyncIterator
from typing import Any, Final

import msgspec
from attrs import define, field
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
    STREAMS_OF_PERSON,
    WORKFLOWS_OF_STREAM,
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


@define(eq=False)
class _Position:
    """How far the stream of one browser is in the feed of one workflow.

    Attributes:
        seen: Id up to which all events are sent; None until the feed has told where it begins.
        told: The state of the feed that was sent last.
        allowance: Events that may be sent one by one now. It grows by `EVENTS_PER_SECOND` up to a second's number,
            because events come in bursts: a runner reports a batch of jobs at once.
        batch_at: Seconds of the monotonic clock of the last batch.
    """

    feed: EventFeed
    seen: int | None
    told: FeedState | None = None
    allowance: float = EVENTS_PER_SECOND
    batch_at: float = field(factory=time.monotonic)

    @property
    def is_over(self) -> bool:
        """Whether no event will come any more."""
        return self.told is not None and self.told.name == GONE


class EventStreams:
    """The route of event streams, with a count of the open ones."""

    def __init__(self, hub: EventHub, logins: LoginRoutes, sessions: SessionStore) -> None:
        self._hub, self._logins, self._sessions = hub, logins, sessions
        self._open = 0

    def routes(self) -> list[Route]:
        """Return the route."""
        return [Route("/dash/events", self.stream, methods=["GET"])]

    async def stream(self, request: Request) -> Response:
        """Begin a stream of some workflows after ``Last-Event-ID`` if that is given, otherwise with the next events."""
        session = session_of(request)
        identity = self._logins.require_identity(session)
        ids = _workflows(request.query_params.get("workflows", ""))
        seen = _last_ids(request.headers.get("last-event-id") or request.query_params.get("last_event_id"))
        usage = session.usage
        if usage.streams + len(ids) > STREAMS_OF_PERSON or self._open >= STREAMS:
            raise RefusedError(429, "too many event streams are open; close a tab")
        wake = asyncio.Event()
        feeds: list[EventFeed] = []

        def leave() -> None:
            for feed in feeds:
                self._hub.leave(feed, wake)

        try:
            for id_ in ids:
                feeds.append(self._hub.join(identity, id_, wake))  # one by one: those before a refusal are left again
        except TooManyFeedsError:
            leave()
            raise RefusedError(429, "events of too many workflows are read; try again later") from None
        usage.streams += len(ids)
        self._open += 1

        async def end() -> None:
            usage.streams -= len(ids)
            self._open -= 1
            leave()

        frames = self._frames(session, [_Position(feed, seen.get(feed.workflow_id)) for feed in feeds], wake)
        return EndingStream(frames, end, headers=_HEADERS, media_type="text/event-stream")

    async def _frames(
        self, session: ReaderSession, positions: list[_Position], wake: asyncio.Event
    ) -> AsyncIterator[bytes]:
        while self._sessions.is_live(session):
            wake.clear()
            for position in positions:
                if frames := _news(position, time.monotonic()):
                    yield frames + _last_ids_line(positions)
            if all(position.is_over for position in positions):
                return
            await asyncio.sleep(BATCH_S)
            try:
                await asyncio.wait_for(wake.wait(), STREAM_COMMENT_S)
            except TimeoutError:
                yield b": still here\n\n"


def _workflows(text: str) -> list[int]:
    """Return the ids of the workflows of a stream, without repetitions.

    Raises:
        RefusedError: it is no list of 1 to `WORKFLOWS_OF_STREAM` ids (400).
    """
    if not re.fullmatch("[0-9]{1,18}(,[0-9]{1,18})*", text) or text.count(",") >= WORKFLOWS_OF_STREAM:
        raise RefusedError(400, f"workflows has 1 to {WORKFLOWS_OF_STREAM} ids of workflows, with commas between them")
    return [*dict.fromkeys(map(int, text.split(",")))]


def _last_ids(text: str | None) -> dict[int, int]:
    """Return the id of the last event by workflow, from ``WORKFLOW=EVENT,...``.

    Raises:
        RefusedError: it is something else (400).
    """
    if not text:
        return {}
    pair = "[0-9]{1,18}=[0-9]{1,18}"
    if not re.fullmatch(f"{pair}(,{pair}){{0,{WORKFLOWS_OF_STREAM - 1}}}", text):
        raise RefusedError(400, "Last-Event-ID is not that of a stream of events")
    return {int(workflow): int(event) for workflow, _, event in (each.partition("=") for each in text.split(","))}


def _last_ids_line(positions: list[_Position]) -> bytes:
    """Return a frame without data, which browsers keep as ``Last-Event-ID``."""
    known = ",".join(f"{each.feed.workflow_id}={each.seen}" for each in positions if each.seen is not None)
    return f"id: {known}\n\n".encode() if known else b""


def _news(position: _Position, now: float) -> bytes:
    """Return the frames of one workflow since the last ones, and note that they are sent.

    Args:
        now: Seconds of the monotonic clock.
    """
    feed, frames = position.feed, b""
    seconds, position.batch_at = now - position.batch_at, now
    position.allowance = min(EVENTS_PER_SECOND, position.allowance + seconds * EVENTS_PER_SECOND)
    if feed.state != position.told:
        position.told = feed.state
        frames = _state_frame(feed)
    if feed.floor is None or feed.last_id is None:
        return frames
    seen = feed.last_id if position.seen is None else position.seen
    position.seen = feed.last_id
    if not feed.floor <= seen <= feed.last_id:
        return frames + _named_frame("resync", {"workflow_id": feed.workflow_id, "last_event_id": feed.last_id})
    events = feed.after(seen)
    if len(events) > position.allowance:
        return frames + _counts_frame(feed.workflow_id, events, seconds)
    position.allowance -= len(events)
    return frames + b"".join(b"data: %s\n\n" % event.content for event in events)


def _counts_frame(workflow_id: int, events: list[FeedEvent], seconds: float) -> bytes:
    """Return the frame with the numbers of events that are too many to be sent one by one."""
    numbers = {
        "workflow_id": workflow_id,
        "from": events[0].id,
        "to": events[-1].id,
        "seconds": round(seconds, 3),
        "by_type": Counter(event.type for event in events),
    }
    return _named_frame("counts", numbers)


def _state_frame(feed: EventFeed) -> bytes:
    values = {
        "workflow_id": feed.workflow_id,
        "state": feed.state.name,
        "since": feed.state.since,
        "last_event_id": feed.last_id,
        "error": feed.state.error,
    }
    return _named_frame("state", values)


def _named_frame(name: str, values: dict[str, Any]) -> bytes:
    return b"event: %s\ndata: %s\n\n" % (name.encode(), msgspec.json.encode(values))
