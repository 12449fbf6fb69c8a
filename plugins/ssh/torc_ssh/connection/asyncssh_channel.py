"""A channel of a connection by asyncssh."""

import asyncio
import signal
from collections import deque
from typing import Final

import asyncssh

STDERR_BYTES: Final = 8192
"""So much of the end of the standard error is kept."""
BUFFERED_BYTES: Final = 1 << 20
"""The host is told to wait while more than this has not been read."""


class AsyncsshChannel(asyncssh.SSHClientSession[bytes]):
    """A command on the host: the methods that asyncssh calls, and those of `Channel`."""

    def __init__(self) -> None:
        self._channel: asyncssh.SSHClientChannel[bytes] | None = None
        self._chunks: deque[bytes] = deque()
        self._buffered = 0
        self._is_paused = False
        self._is_at_end = False
        self._stderr = bytearray()
        self._status: int | None = None
        self._may_read, self._may_write, self._ended = asyncio.Event(), asyncio.Event(), asyncio.Event()
        self._may_write.set()

    def connection_made(self, chan: asyncssh.SSHClientChannel[bytes]) -> None:
        self._channel = chan

    def data_received(self, data: bytes, datatype: int | None) -> None:
        if datatype == asyncssh.EXTENDED_DATA_STDERR:
            self._stderr += data
            del self._stderr[:-STDERR_BYTES]
            return
        self._chunks.append(data)
        self._buffered += len(data)
        self._may_read.set()
        if self._buffered > BUFFERED_BYTES and not self._is_paused and self._channel is not None:
            self._is_paused = True
            self._channel.pause_reading()

    def eof_received(self) -> bool:
        self._end_output()
        return True  # the channel stays open for the exit status

    def exit_status_received(self, status: int) -> None:
        self._status = status

    def exit_signal_received(self, signal: str, core_dumped: bool, msg: str, lang: str) -> None:
        self._status = _signal_status(signal)

    def connection_lost(self, exc: Exception | None) -> None:
        self._end_output()
        self._may_write.set()
        self._ended.set()

    def pause_writing(self) -> None:
        self._may_write.clear()

    def resume_writing(self) -> None:
        self._may_write.set()

    async def read(self, n: int) -> bytes:
        while not self._chunks and not self._is_at_end:
            self._may_read.clear()
            await self._may_read.wait()
        if not self._chunks:
            return b""
        chunk = self._chunks.popleft()
        if len(chunk) > n:
            self._chunks.appendleft(chunk[n:])
            chunk = chunk[:n]
        self._buffered -= len(chunk)
        if self._is_paused and self._buffered <= BUFFERED_BYTES and self._channel is not None:
            self._is_paused = False
            self._channel.resume_reading()
        return chunk

    def write(self, data: bytes) -> None:
        if self._channel is not None and not self._channel.is_closing():
            self._channel.write(data)

    async def drain(self) -> None:
        await self._may_write.wait()

    def write_eof(self) -> None:
        if self._channel is not None and not self._channel.is_closing():
            self._channel.write_eof()

    async def exit_status(self) -> int | None:
        await self._ended.wait()
        return self._status

    def stderr_tail(self) -> str:
        return self._stderr.decode("utf-8", "replace")

    def close(self) -> None:
        if self._channel is not None:
            self._channel.close()

    def _end_output(self) -> None:
        self._is_at_end = True
        self._may_read.set()


def _signal_status(name: str) -> int | None:
    """Return the negative number of a signal by its name without SIG; None if the host could not name it."""
    number = getattr(signal, f"SIG{name}", None)
    return -number if isinstance(number, signal.Signals) else None
