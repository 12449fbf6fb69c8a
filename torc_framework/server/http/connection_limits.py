"""Limits on connections: their number, the size of a request's head, and the time that a client may stall."""

import asyncio
import resource
import socket
import struct
from collections import Counter
from collections.abc import Callable
from http import HTTPStatus
from typing import ClassVar, Final

from attrs import Factory, frozen
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

from torc_framework.server.http.responses import error_response
from torc_framework.server.settings import LimitSettings

MAX_OPEN_FILES: Final = 65_536
"""Most open files that the process allows itself, if the system's hard limit permits them."""
_RESET_ON_CLOSE: Final = struct.pack("ii", 1, 0)
"""Value of SO_LINGER: on close, the kernel drops unsent data and resets the connection."""


def raise_open_file_limit() -> None:
    """Raise the limit on open files, which include connections, to the hard limit or `MAX_OPEN_FILES`."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = MAX_OPEN_FILES if hard == resource.RLIM_INFINITY else min(hard, MAX_OPEN_FILES)
    if soft != resource.RLIM_INFINITY and soft < wanted:
        resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))


def connection_limit(limits: LimitSettings) -> int:
    """Return the most connections of one address: the setting, but at most half of the open files."""
    files, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    half = MAX_OPEN_FILES if files == resource.RLIM_INFINITY else files // 2
    return min(limits.connections_per_address, half) if limits.connections_per_address else half


@frozen
class ConnectionLimits:
    """The limits of all connections of one server, and the number of open connections by address."""

    head_bytes: int
    stall_s: float
    connections: int
    open_connections: Counter[str] = Factory(Counter)


class LimitedProtocol(HttpToolsProtocol):
    """uvicorn's HTTP protocol of one connection, with limits that hold before and after a request.

    A connection has ``stall_s`` seconds to send the head of a request, of at most ``head_bytes``, and to take some part
    of a response that waits for it. An address has at most ``connections`` connections.
    """

    limits: ClassVar[ConnectionLimits]
    _timer: asyncio.TimerHandle | None = None
    _unsent = 0
    _head_bytes = 0
    _in_head = True
    _host: str | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]  # uvicorn narrows it too
        super().connection_made(transport)
        host = self.client[0] if self.client else ""
        if self.limits.open_connections[host] >= self.limits.connections:
            self._refuse(429, f"{self.limits.connections} connections are open from {host} already")
            return
        self.limits.open_connections[host] += 1
        self._host = host
        self._set_timer(self._head_is_late)

    def connection_lost(self, exc: Exception | None) -> None:
        self._set_timer(None)
        if self._host is not None:
            self.limits.open_connections[self._host] -= 1
            if not self.limits.open_connections[self._host]:
                del self.limits.open_connections[self._host]
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        if self.transport.is_closing():
            return
        if self._in_head:
            if not self._head_bytes:
                self._set_timer(self._head_is_late)
            self._head_bytes += len(data)
        super().data_received(data)
        if self._in_head and self._head_bytes > self.limits.head_bytes and not self.transport.is_closing():
            self._refuse(431, f"the head of the request is longer than {self.limits.head_bytes} bytes")

    def on_headers_complete(self) -> None:
        self._in_head = False
        self._head_bytes = 0
        self._set_timer(None)
        super().on_headers_complete()

    def on_message_complete(self) -> None:
        self._in_head = True
        super().on_message_complete()

    def pause_writing(self) -> None:
        super().pause_writing()
        self._unsent = self.transport.get_write_buffer_size()
        self._set_timer(self._client_is_late)

    def resume_writing(self) -> None:
        super().resume_writing()
        self._set_timer(None)

    def _set_timer(self, then: Callable[[], None] | None) -> None:
        """Replace the timer by one that calls a method after ``stall_s``; None sets none."""
        if self._timer is not None:
            self._timer.cancel()
        self._timer = None if then is None else self.loop.call_later(self.limits.stall_s, then)

    def _head_is_late(self) -> None:
        if not self.transport.is_closing():
            self._refuse(408, f"the head of a request did not arrive within {self.limits.stall_s:g} s")

    def _client_is_late(self) -> None:
        """Close the connection of a client that took nothing since the timer was set; wait on for a slow one."""
        unsent = self.transport.get_write_buffer_size()
        if unsent >= self._unsent:
            connection = self.transport.get_extra_info("socket")
            connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _RESET_ON_CLOSE)
            self.transport.abort()
            return
        self._unsent = unsent
        self._set_timer(self._client_is_late)

    def send_400_response(self, msg: str) -> None:
        self._refuse(400, msg)

    def _refuse(self, status: int, message: str) -> None:
        body = bytes(error_response(status, message).body)
        head = f"Content-Type: application/json\r\nContent-Length: {len(body)}\r\nConnection: close\r\n\r\n"
        self.transport.write(f"HTTP/1.1 {status} {HTTPStatus(status).phrase}\r\n{head}".encode() + body)
        self.transport.close()


def limited_protocol(settings: LimitSettings) -> type[LimitedProtocol]:
    """Return the protocol class of one server."""

    class Protocol(LimitedProtocol):
        """The protocol with the limits of one server; uvicorn makes an instance for each connection."""

        limits = ConnectionLimits(settings.header_kib * 1024, settings.stall_secs, connection_limit(settings))

    return Protocol
