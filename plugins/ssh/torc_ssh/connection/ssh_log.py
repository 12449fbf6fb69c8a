"""What a master of the system's ssh writes on its standard error, as long as it lives."""

import asyncio
import os
from typing import Final

LOG_BYTES: Final = 1 << 14
"""So much of the end is kept."""
END_S: Final = 1.0
"""So long is waited for the last messages of a program that has ended."""

_UNIMPORTANT: Final = (b"debug", b"OpenSSH_", b"Authenticated ", b"Transferred:", b"Bytes per second")


class MasterLog(asyncio.Protocol):
    """The reading end of a pipe; ``writing_end`` is for the standard error of ``ssh -v``.

    Only with ``-v`` does a master in the background keep its standard error, and that of ``ssh`` to a jump host.
    """

    def __init__(self) -> None:
        self._text, self._line = bytearray(), b""
        self._ended = asyncio.Event()
        self._transport: asyncio.BaseTransport | None = None
        self.writing_end = -1

    @classmethod
    async def open(cls) -> "MasterLog":
        """Make the pipe, and begin to read."""
        log = cls()
        reading_end, log.writing_end = os.pipe()
        await asyncio.get_running_loop().connect_read_pipe(lambda: log, os.fdopen(reading_end, "rb", buffering=0))
        return log

    def close_writing_end(self) -> None:
        """Leave the writing end to the programs that were started with it."""
        if self.writing_end >= 0:
            os.close(self.writing_end)
            self.writing_end = -1

    def close(self) -> None:
        """End the reading."""
        self.close_writing_end()
        if self._transport is not None:
            self._transport.close()

    def clear(self) -> None:
        """Forget what was written so far."""
        self._text.clear()

    async def text(self) -> str:
        """Return the messages, those of debugging left out; wait a moment for the last ones."""
        try:
            async with asyncio.timeout(END_S):
                await self._ended.wait()
        except TimeoutError:
            pass
        return self._text.decode(errors="replace")

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Keep the transport of the pipe."""
        self._transport = transport

    def data_received(self, data: bytes) -> None:
        """Keep the lines that are messages."""
        *lines, self._line = (self._line + data).split(b"\n")
        self._line = self._line[-LOG_BYTES:]
        for line in lines:
            if not line.startswith(_UNIMPORTANT):
                self._text += line + b"\n"
        del self._text[:-LOG_BYTES]

    def connection_lost(self, exc: Exception | None) -> None:
        """Take note of the end: all programs that wrote have ended."""
        self._text += self._line
        self._ended.set()
