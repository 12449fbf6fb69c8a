"""`EventStream`: an iterator over a workflow's events as they happen, which reconnects when its connection breaks."""

import contextlib
import re
import socket
import threading
from collections import deque
from collections.abc import Iterator
from types import TracebackType
from typing import Any, Final, Self

import msgspec
from attrs import define, frozen

from torc_framework.client.http.connection import Connection, HttpResponse
from torc_framework.client.http.request_sender import RequestSender
from torc_framework.client.http.retries import FIRST_PAUSE_S, Backoff, FailedRequest, RetryRule
from torc_framework.errors import ApiError, ServerUnreachableError

SILENCE_S: Final = 60.0
"""Seconds without data after which a connection counts as broken; servers send a heartbeat every 15 by default."""
_FOREVER_S: Final = float(10**9)
_LINE_END: Final = re.compile(rb"\r\n|\n|\r(?=.)", re.DOTALL)


@frozen
class StreamedEvent:
    """One event.

    Attributes:
        id: Its id; the stream has returned every event with a smaller one.
        timestamp: Milliseconds since the epoch.
        severity: debug, info, warning or error.
        data: Further fields, which depend on the type.
    """

    id: int
    workflow_id: int
    timestamp: int
    event_type: str
    severity: str
    data: Any


@define
class _Content:
    """The JSON of a frame."""

    workflow_id: int
    timestamp: int
    event_type: str
    severity: str
    data: Any = None


class EventStream:
    """An iterator over events, oldest first, each exactly once; it ends when the workflow is deleted.

    When the connection breaks, such as at a restart of the server, the stream reconnects and continues after the last
    returned event. Use it as a context, or call `close`, which may be called from another thread and ends the
    iteration.

    Args:
        last_event_id: Begin after this event; 0 begins with the first event, None after the newest one.
        level: debug, info, warning or error; events of a lower severity are left out.
        patience: Seconds for which the stream tries to reconnect; None has no limit.

    Raises, in the constructor and in the iteration:
        ServerUnreachableError: no server answers, or none within ``patience``.
        ApiError: the server refused; 404 means that there is no such workflow.
    """

    def __init__(
        self,
        transport: RequestSender,
        workflow_id: int,
        *,
        last_event_id: int | None = None,
        level: str = "info",
        patience: float | None = None,
    ) -> None:
        self._transport = transport
        self._path = f"/workflows/{workflow_id}/events/stream"
        self._level = level
        self._patience_s = _FOREVER_S if patience is None else patience
        self._closed = threading.Event()
        self.last_event_id = last_event_id
        """Id up to which all events were returned; None until the server has sent where the stream begins."""
        self._connection, self._response = self._connect()
        self._frames = _Frames()
        self._arrived: deque[tuple[int, bytes | None]] = deque()
        """Id and content of events that have arrived and were not returned yet."""
        self._reader: int | None = None
        """The thread that waits for the next event; other threads do not close the connection meanwhile."""
        self._parse_arrived()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def __iter__(self) -> Self:
        return self

    def __next__(self) -> StreamedEvent:
        """Return the next event; wait for it.

        After any exception, such as KeyboardInterrupt, the next call continues after the last returned event.
        """
        try:
            self._reader = threading.get_ident()
            return self._next()
        except BaseException:
            self._disconnect()
            raise
        finally:
            self._reader = None

    def close(self) -> None:
        """End the iteration; may be called again."""
        self._closed.set()
        sock = self._connection.sock
        if sock is not None:
            with contextlib.suppress(OSError):
                sock.shutdown(socket.SHUT_RDWR)  # wakes a thread that waits in the iteration
        if self._reader in (None, threading.get_ident()):
            self._disconnect()

    def _disconnect(self) -> None:
        """Close the connection and drop the events that were not returned; the next connection sends them again."""
        self._connection.close()
        self._arrived.clear()
        self._frames = _Frames()

    def _connect(self) -> tuple[Connection, HttpResponse]:
        since = "" if self.last_event_id is None else f"Last-Event-ID: {self.last_event_id}\r\n"
        headers = f"Accept: text/event-stream\r\n{since}"
        return self._transport.begin(self._path, query={"level": self._level}, headers=headers, timeout=SILENCE_S)

    def _next(self) -> StreamedEvent:
        """Return the next event.

        Raises:
            StopIteration: the stream is closed, or the workflow is deleted.
        """
        while not self._closed.is_set():
            while self._arrived:
                id_, content = self._arrived.popleft()
                event = None if content is None else self._event(id_, content)
                self.last_event_id = id_
                if event is not None:
                    return event
            if self._connection.sock is None:
                self._reconnect()
            else:
                self._read_more()
        raise StopIteration

    def _read_more(self) -> None:
        """Wait until more data arrive or the connection ends."""
        try:
            self._connection.read_more(self._response)
        except OSError:
            self._connection.close()
        self._parse_arrived()

    def _parse_arrived(self) -> None:
        """Parse the events in the data that have arrived; close the connection if the response is complete."""
        self._arrived.extend(self._frames.feed(self._response.take_body()))
        if self._response.is_complete:
            self._connection.close()

    def _event(self, id_: int, content: bytes) -> StreamedEvent:
        try:
            event = msgspec.json.decode(content, type=_Content)
        except msgspec.DecodeError as error:
            raise ApiError(200, f"{self._transport.url} sent an event that is none: {error}", content[:500]) from error
        return StreamedEvent(id_, event.workflow_id, event.timestamp, event.event_type, event.severity, event.data)

    def _reconnect(self) -> None:
        """Open another connection; close the stream if the workflow is deleted."""
        self._disconnect()
        backoff = Backoff(self._patience_s)
        self._closed.wait(FIRST_PAUSE_S)
        while not self._closed.is_set():
            try:
                self._connection, self._response = self._connect()
            except ServerUnreachableError as error:
                failure = FailedRequest(error, RetryRule.ALWAYS)
            except ApiError as error:
                if error.status == 404:
                    self._closed.set()
                    return
                failure = FailedRequest(
                    error, RetryRule.ALWAYS if error.status == 429 or error.status >= 500 else RetryRule.NEVER
                )
            else:
                self._parse_arrived()
                return
            pause = backoff.pause_before_retry(failure, is_idempotent=True)
            if pause is None:
                raise failure.error
            self._closed.wait(pause)


class _Frames:
    """Parser of server-sent events that arrive in pieces of any size."""

    def __init__(self) -> None:
        self._rest = b""
        self._id = 0
        self._data: list[bytes] = []

    def feed(self, piece: bytes) -> Iterator[tuple[int, bytes | None]]:
        """Yield id and data of each complete frame; data is None for a frame that holds only an id."""
        *lines, self._rest = _LINE_END.split(self._rest + piece)
        for line in lines:
            if not line:
                yield self._id, b"\n".join(self._data) if self._data else None
                self._data = []
                continue
            name, _, value = line.partition(b":")
            value = value.removeprefix(b" ")
            if name == b"data":
                self._data.append(value)
            elif name == b"id" and value.isdigit():
                self._id = int(value)
