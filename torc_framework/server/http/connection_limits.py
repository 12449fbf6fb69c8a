"""Limits on connections: their number, the size of a request's head, and the time that a client may stall."""

import asyncio
import resource
import socket
import struct
from collections import Counter
from http import HTTPStatus
from typing import TYPE_CHECKING, Any, Final

from torc_framework.server.http.responses import error_response
from torc_framework.server.settings import LimitSettings

if TYPE_CHECKING:
    from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

MAX_OPEN_FILES: Final = 65_536
"""Open files that the process allows itself, where the system does."""
_AT_ONCE: Final = struct.pack("ii", 1, 0)
"""Value of SO_LINGER: the system forgets what was not sent, too, and tells the other side."""


def raise_open_file_limit() -> None:
    """Let the process open as many files, which connections are, as the system allows, within reason."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = MAX_OPEN_FILES if hard == resource.RLIM_INFINITY else min(hard, MAX_OPEN_FILES)
    if soft != resource.RLIM_INFINITY and soft < wanted:
        resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))


def connection_limit(limits: LimitSettings) -> int:
    """Return how many connections one address may hold: the setting, and never more than half of all files."""
    files, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    half = MAX_OPEN_FILES if files == resource.RLIM_INFINITY else files // 2
    return min(limits.connections_per_address, half) if limits.connections_per_address else half


def limited_protocol(limits: LimitSettings) -> "type[HttpToolsProtocol]":
    """Return uvicorn's protocol with the limits that hold before a request is one, and after it was answered.

    A connection has ``stall_secs`` to send the whole head of a request, which has a greatest length, and
    to take something of an answer that waits for it. An address has a greatest number of connections.
    """
    from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

    longest, stall_s = limits.header_kib * 1024, limits.stall_secs
    most, held = connection_limit(limits), Counter[str]()

    class Guarded(HttpToolsProtocol):
        """One connection."""

        _patience: asyncio.TimerHandle | None = None
        _unsent = 0
        _head_bytes = 0
        _in_head = True
        _host: str | None = None

        def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
            super().connection_made(transport)
            host = self.client[0] if self.client else ""
            if held[host] >= most:
                self._refuse(429, f"{most} connections are open from {host} already")
                return
            held[host] += 1
            self._host = host
            self._wait(self._head_is_late)

        def connection_lost(self, exc: Exception | None) -> None:
            self._wait(None)
            if self._host is not None:
                held[self._host] -= 1
                if not held[self._host]:
                    del held[self._host]
            super().connection_lost(exc)

        def data_received(self, data: bytes) -> None:
            if self.transport.is_closing():
                return
            if self._in_head:
                if not self._head_bytes:
                    self._wait(self._head_is_late)
                self._head_bytes += len(data)
            super().data_received(data)
            if self._in_head and self._head_bytes > longest and not self.transport.is_closing():
                self._refuse(431, f"the head of the request is longer than {longest} bytes")

        def on_headers_complete(self) -> None:
            self._in_head = False
            self._head_bytes = 0
            self._wait(None)
            super().on_headers_complete()

        def on_message_complete(self) -> None:
            self._in_head = True
            super().on_message_complete()

        def pause_writing(self) -> None:
            super().pause_writing()
            self._unsent = self.transport.get_write_buffer_size()
            self._wait(self._reader_is_late)

        def resume_writing(self) -> None:
            super().resume_writing()
            self._wait(None)

        def _wait(self, then: Any) -> None:
            """Call a method after ``stall_secs`` instead of whatever was to be called; None calls nothing."""
            if self._patience is not None:
                self._patience.cancel()
            self._patience = None if then is None else self.loop.call_later(stall_s, then)

        def _head_is_late(self) -> None:
            if not self.transport.is_closing():
                self._refuse(408, f"the head of a request did not arrive within {stall_s:g} s")

        def _reader_is_late(self) -> None:
            """Cut off a reader that took nothing; one that is slow may go on."""
            unsent = self.transport.get_write_buffer_size()
            if unsent >= self._unsent:
                connection = self.transport.get_extra_info("socket")
                connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _AT_ONCE)
                self.transport.abort()
                return
            self._unsent = unsent
            self._wait(self._reader_is_late)

        def send_400_response(self, msg: str) -> None:
            self._refuse(400, msg)

        def _refuse(self, status: int, message: str) -> None:
            body = bytes(error_response(status, message).body)
            head = f"Content-Type: application/json\r\nContent-Length: {len(body)}\r\nConnection: close\r\n\r\n"
            self.transport.write(f"HTTP/1.1 {status} {HTTPStatus(status).phrase}\r\n{head}".encode() + body)
            self.transport.close()

    return Guarded
