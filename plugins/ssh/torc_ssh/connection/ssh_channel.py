"""A channel of a connection by the system's ssh: one process of ``ssh``, which uses the control socket."""

import asyncio
import contextlib
from typing import Final

from torc_ssh.connection.ssh_program import end_program, kill_program

STDERR_BYTES: Final = 8192
"""So much of the end of the standard error is kept."""
FAILED_STATUS: Final = 255
"""Exit code of ``ssh`` for errors of its own; a command may have it also."""
LOSS_S: Final = 2.0


class ProcessChannel:
    """A command on the host; the methods are those of `Channel`.

    Args:
        process: ``ssh``, with pipes.
        lost: the future of the connection.
    """

    def __init__(self, process: asyncio.subprocess.Process, lost: asyncio.Future[str]) -> None:
        self._process, self._lost = process, lost
        self._stderr = bytearray()
        self._reading = asyncio.Lock()
        self._errors = asyncio.ensure_future(self._keep_errors())

    async def read(self, n: int) -> bytes:
        assert self._process.stdout is not None
        async with self._reading:
            return await self._process.stdout.read(n)

    def write(self, data: bytes) -> None:
        assert self._process.stdin is not None
        if not self._process.stdin.is_closing():
            self._process.stdin.write(data)

    async def drain(self) -> None:
        assert self._process.stdin is not None
        with contextlib.suppress(OSError):
            await self._process.stdin.drain()

    def write_eof(self) -> None:
        assert self._process.stdin is not None
        if not self._process.stdin.is_closing():
            self._process.stdin.write_eof()

    async def exit_status(self) -> int | None:
        status = await self._process.wait()
        await self._errors
        if status == FAILED_STATUS:  # that of ssh, if the connection is lost; the master may be noticed to end later
            await asyncio.wait([self._lost], timeout=LOSS_S)
        return None if status < 0 or (self._lost.done() and status == FAILED_STATUS) else status

    def stderr_tail(self) -> str:
        return self._stderr.decode("utf-8", "replace")

    def close(self) -> None:
        kill_program(self._process)

    @property
    def is_open(self) -> bool:
        """Whether the process has not ended, as far as is known."""
        return self._process.returncode is None

    async def wait_closed(self) -> None:
        """Wait until the process that was killed has ended and its pipes are closed, and drop what was not read."""
        await end_program(self._process)
        while await self.read(1 << 16):
            pass
        await self._errors

    async def _keep_errors(self) -> None:
        assert self._process.stderr is not None
        while data := await self._process.stderr.read(4096):
            self._stderr += data
            del self._stderr[:-STDERR_BYTES]
