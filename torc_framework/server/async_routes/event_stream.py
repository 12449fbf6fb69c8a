"""``GET /workflows/{id}/events/stream``: a workflow's events as they are committed, as server-sent events.

A stream keeps only the id of the last event that it has read. It reads the next page from the database when its client
has taken the last one, so that no event is dropped, and a client that reads slowly or not at all costs one page of
memory. Every frame carries the id up to which its client has received all events; a client that sends this id as
``Last-Event-ID`` continues there, on any server of the same database.
"""

import asyncio
import logging
import re
import tempfile
from collections import Counter
from collections.abc import AsyncIterator, Iterator
from contextlib import contextmanager
from functools import partial
from typing import Any, Final, Self

import msgspec
from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import Response, StreamingResponse
from starlette.routing import Route

from torc_framework.models.events import LEVELS, EventSeverity, event_type_of, severity_of
from torc_framework.server.async_routes.waiting_calls import WaitingCalls
from torc_framework.server.dispatch.parameters import parse_query, sent_parameters
from torc_framework.server.http.answer_room import SMALL_BYTES, AnswerRoom, address_of
from torc_framework.server.http.endpoint_calls import Parameter, caller_of, workflow_id_of
from torc_framework.server.http.endpoint_results import RequestError
from torc_framework.server.settings import API_PREFIX, LimitSettings
from torc_framework.store.access.callers import Caller
from torc_framework.store.access.checks import check_workflow
from torc_framework.store.database.base import Database
from torc_framework.store.errors import ForbiddenError, LargeReadError, NotFoundError
from torc_framework.store.records.events import StoredEvent, events_after, last_event_id

_log = logging.getLogger("torc.server")
PAGE_EVENTS: Final = 500
"""Most events that are read from the database at once."""
_PARAMETERS: Final = {"level": Parameter(str, "info"), "last_event_id": Parameter(str)}
_HEADERS: Final = {"Cache-Control": "no-store", "X-Accel-Buffering": "no"}
_NAME: Final = re.compile(r"[\w.:-]{1,100}")
"""Types of events that fit into an ``event:`` line."""
_encode: Final = msgspec.json.Encoder(enc_hook=str).encode


class EventStreamRoutes:
    """The route of event streams, with a count of the open ones by client address."""

    def __init__(
        self, database: Database, waiting_calls: WaitingCalls, limits: LimitSettings, room: AnswerRoom
    ) -> None:
        self._database = database
        self._room = room
        self._waiting_calls = waiting_calls
        self._limits = limits
        self._open: Counter[str] = Counter()

    def routes(self) -> list[Route]:
        """Return the route."""
        return [Route(f"{API_PREFIX}/workflows/{{id}}/events/stream", self.stream, methods=["GET"])]

    async def stream(self, request: Request) -> Response:
        """Begin a stream after ``Last-Event-ID`` if that is given, otherwise after the newest event."""
        workflow_id = workflow_id_of(request)
        query = parse_query("GET /workflows/{id}/events/stream", _PARAMETERS, sent_parameters(request.scope))
        level = LEVELS.get(query["level"], EventSeverity.INFO)
        seen = _last_event_id(request.headers.get("last-event-id") or query["last_event_id"])
        caller = caller_of(request)
        newest = await run_in_threadpool(self._newest, caller, workflow_id)
        host = address_of(request.scope)
        frames = self._frames(caller, workflow_id, level, newest if seen is None else min(seen, newest), host)
        return StreamingResponse(self._counted(host, frames), media_type="text/event-stream", headers=_HEADERS)

    def _newest(self, caller: Caller, workflow_id: int) -> int:
        with self._database.read() as tx:
            if caller.is_restricted:
                check_workflow(tx, caller, workflow_id)
            newest = last_event_id(tx, workflow_id)
        if newest is None:
            raise NotFoundError("Workflow", workflow_id)
        return newest

    def _counted(self, host: str, frames: AsyncIterator[bytes]) -> AsyncIterator[bytes]:
        """Return the frames of a stream that is counted for its client's address until it ends.

        Raises:
            RequestError: this address has ``streams_per_address`` streams open (429).
        """
        limit = self._limits.streams_per_address
        if limit and self._open[host] >= limit:
            raise RequestError(f"{limit} event streams are open from {host} already; close one first", 429)
        return self._while_open(host, frames)

    async def _while_open(self, host: str, frames: AsyncIterator[bytes]) -> AsyncIterator[bytes]:
        with self._counted_stream(host):
            async for frame in frames:
                yield frame

    @contextmanager
    def _counted_stream(self, host: str) -> Iterator[None]:
        self._open[host] += 1
        try:
            yield
        finally:
            self._open[host] -= 1
            if not self._open[host]:
                del self._open[host]

    async def _frames(
        self, caller: Caller, workflow_id: int, level: EventSeverity, seen: int, host: str
    ) -> AsyncIterator[bytes]:
        """Yield frames until the server ends, the workflow is deleted, or the client loses its access to it."""
        with self._waiting_calls.stream(workflow_id) as call:
            yield _id_frame(seen)
            while not call.is_over:
                call.wake.clear()
                try:
                    page = await self._page(caller, workflow_id, level, seen, host)
                except ForbiddenError:
                    yield b": the workflow is no longer shared with you\n\n"
                    return
                except OSError:
                    _log.exception("an event stream ends: there is no space for a large event")
                    yield b": the server has no space for a large event\n\n"
                    return
                if page is None:
                    yield b": the workflow is deleted\n\n"
                    return
                if page.last > seen:
                    seen = page.last
                    with self._room.unread(host, page.size), page:
                        for piece in page:
                            yield piece
                    continue
                try:
                    await asyncio.wait_for(call.wake.wait(), self._limits.heartbeat_secs)
                except TimeoutError:
                    yield b": still here\n" + _id_frame(seen)

    async def _page(
        self, caller: Caller, workflow_id: int, level: EventSeverity, seen: int, host: str
    ) -> "_EventPage | None":
        """Return the next frames; None if the workflow is deleted. An event that is large is read with room for it."""
        size = SMALL_BYTES
        while True:
            async with self._room.place(host, size):
                try:
                    return await run_in_threadpool(self._read_page, caller, workflow_id, level, seen, size)
                except LargeReadError as error:
                    size = error.size

    def _read_page(
        self, caller: Caller, workflow_id: int, level: EventSeverity, seen: int, allowed_bytes: int
    ) -> "_EventPage | None":
        with self._database.read() as tx:
            check_workflow(tx, caller, workflow_id)
            events = events_after(tx, workflow_id, seen, PAGE_EVENTS, allowed_bytes)
        if events is None:
            return None
        if not events:
            return _EventPage(seen, b"")
        last = events[-1].id
        shown = b"".join(_event_frame(workflow_id, event, level) for event in events)
        return _EventPage(last, shown or _id_frame(last))


class _EventPage:
    """The frames of some events, in pieces; those of a large event are in a temporary file.

    Args:
        last: Id of the last event.
        frames: Their frames.
    """

    def __init__(self, last: int, frames: bytes) -> None:
        self.last = last
        self.size = len(frames)
        self._file = tempfile.SpooledTemporaryFile(2 * SMALL_BYTES)  # noqa: SIM115 - the end of the context closes it
        self._file.write(frames)
        self._file.seek(0)

    def __iter__(self) -> Iterator[bytes]:
        return iter(partial(self._file.read, SMALL_BYTES), b"")

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._file.close()


def _last_event_id(text: str | None) -> int | None:
    """Return the id of the last event that the client has, from the header of browsers or the query."""
    if text is None:
        return None
    if not re.fullmatch(r"[0-9]{1,18}", text):
        raise RequestError(f"Last-Event-ID: {text[:100]!r} is not the id of an event")
    return int(text)


def _id_frame(seen: int) -> bytes:
    """Return a frame that holds only the id up to which the client has received all events."""
    return b"id: %d\n\n" % seen


def _event_frame(workflow_id: int, event: StoredEvent, level: EventSeverity) -> bytes:
    """Return the frame of one event; empty if the event is below the level."""
    severity = severity_of(event.data)
    if severity < level:
        return b""
    name, data = event_type_of(event.data), event.data
    if isinstance(data, dict):
        data = {key: value for key, value in data.items() if key != "event_type"}
    content: dict[str, Any] = {
        "workflow_id": workflow_id,
        "timestamp": event.timestamp,
        "event_type": name,
        "severity": severity.label,
        "data": data,
    }
    shown = name if _NAME.fullmatch(name) else "message"
    return b"id: %d\nevent: %s\ndata: %s\n\n" % (event.id, shown.encode(), _encode(content))
