"""A connection without SSH: commands are processes of this machine, started as a login shell would."""

import asyncio
import contextlib
import os
import signal
from collections.abc import Mapping
from pathlib import Path

TAIL_BYTES = 8192


class LocalChannel:
    """A process of this machine as a channel of a connection."""

    def __init__(self, process: asyncio.subprocess.Process) -> None:
        self.process = process
        self._tail = b""
        self._errors = asyncio.ensure_future(self._read_errors())

    async def _read_errors(self) -> None:
        assert self.process.stderr is not None
        while data := await self.process.stderr.read(TAIL_BYTES):
            self._tail = (self._tail + data)[-TAIL_BYTES:]

    async def read(self, n: int) -> bytes:
        assert self.process.stdout is not None
        return await self.process.stdout.read(n)

    def write(self, data: bytes) -> None:
        assert self.process.stdin is not None
        if not self.process.stdin.is_closing():
            self.process.stdin.write(data)

    async def drain(self) -> None:
        assert self.process.stdin is not None
        with contextlib.suppress(OSError):
            await self.process.stdin.drain()

    def write_eof(self) -> None:
        assert self.process.stdin is not None
        self.process.stdin.close()

    async def exit_status(self) -> int | None:
        await self._errors
        return await self.process.wait()

    def stderr_tail(self) -> str:
        return self._tail.decode(errors="replace")

    def close(self) -> None:
        self.write_eof()


class LocalConnection:
    """Starts commands as a host with this home folder would.

    Args:
        home: The home folder.
        environment: Further variables.
        shell: The login shell.
        noise: Shell commands that run before each command, as those of rc files do.
    """

    def __init__(
        self,
        home: Path,
        *,
        environment: Mapping[str, str] | None = None,
        shell: str = "/bin/sh",
        noise: str = "",
    ) -> None:
        self.lost: asyncio.Future[str] = asyncio.get_running_loop().create_future()
        self._home = home
        self._environment = {"HOME": str(home), "PATH": os.defpath, **(environment or {})}
        self._shell = shell
        self._noise = noise
        self.channels: list[LocalChannel] = []

    async def start(self, command: str) -> LocalChannel:
        process = await asyncio.create_subprocess_exec(
            self._shell,
            "-c",
            self._noise + command,
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE,
            cwd=self._home,
            env=self._environment,
            start_new_session=True,
            limit=1 << 20,
        )
        self.channels.append(LocalChannel(process))
        return self.channels[-1]

    async def forward_remote_port(self, local_host: str, local_port: int, remote_port: int = 0) -> int:
        raise NotImplementedError

    def kill(self) -> None:
        """Kill all processes of the channels."""
        for channel in self.channels:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(channel.process.pid, signal.SIGKILL)

    def cut(self, reason: str = "Connection lost") -> None:
        """Lose the connection, and the helper with it."""
        self.lost.set_result(reason)
        self.kill()

    async def close(self) -> None:
        self.lost.cancel()
        for channel in self.channels:
            channel.close()
            while await channel.read(TAIL_BYTES):
                continue
            await channel.exit_status()
