"""Servers that break the protocol; runs in the client's network, by `test_ssh_connection.py`."""

import asyncio
import contextlib
import os
from collections.abc import AsyncIterator, Callable, Coroutine
from contextlib import asynccontextmanager
from typing import Final

import pytest
from attrs import evolve
from ssh_connections import SETTINGS, SYSTEM
from torc_ssh.addresses import parse_address
from torc_ssh.connection import ConnectError, SshSettings, connect

pytestmark = pytest.mark.usefixtures("ssh_folder")


@asynccontextmanager
async def server_that(sends: Callable[[asyncio.StreamWriter], Coroutine[None, None, None]]) -> AsyncIterator[str]:
    """Run a server on the loopback that sends something to each client; yield its address."""

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        tasks.append(asyncio.ensure_future(sends(writer)))
        await asyncio.wait(tasks[-1:])
        writer.close()
        with contextlib.suppress(OSError):
            await writer.wait_closed()
        await asyncio.gather(*tasks, return_exceptions=True)

    tasks: list[asyncio.Future[None]] = []
    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    try:
        yield f"127.0.0.1:{server.sockets[0].getsockname()[1]}"
    finally:
        server.close()
        for task in tasks:
            task.cancel()
        await asyncio.sleep(0.05)


async def nothing(writer: asyncio.StreamWriter) -> None:
    await asyncio.sleep(60)


async def endless_line(writer: asyncio.StreamWriter) -> None:
    while True:
        writer.write(b"x" * 65536)
        await writer.drain()


async def endless_lines(writer: asyncio.StreamWriter) -> None:
    while True:
        writer.write(b"please wait\r\n" * 5000)
        await writer.drain()


async def slow_lines(writer: asyncio.StreamWriter) -> None:
    while True:
        writer.write(b"please wait\r\n")
        await writer.drain()
        await asyncio.sleep(0.1)


async def old_version(writer: asyncio.StreamWriter) -> None:
    writer.write(b"SSH-1.5-old\r\n")


async def garbage(writer: asyncio.StreamWriter) -> None:
    writer.write(b"SSH-2.0-garbage\r\n" + os.urandom(100_000))
    await asyncio.sleep(60)


async def refuses_with_a_long_text(writer: asyncio.StreamWriter) -> None:
    text = b"\x1b[2Jgo away\n" * 3000
    body = b"\x01" + (2).to_bytes(4, "big") + len(text).to_bytes(4, "big") + text + (0).to_bytes(4, "big")
    padding = 8 - (len(body) + 5) % 8 + 8
    packet = (len(body) + padding + 1).to_bytes(4, "big") + bytes([padding]) + body + bytes(padding)
    writer.write(b"SSH-2.0-rude\r\n" + packet)
    await asyncio.sleep(60)


HOSTILE: Final = [nothing, endless_line, endless_lines, slow_lines, old_version, garbage, refuses_with_a_long_text]
HOSTILE_TO_SSH: Final = [nothing, slow_lines, garbage, refuses_with_a_long_text]


@pytest.mark.parametrize(
    ("sends", "settings"),
    [*((sends, SETTINGS) for sends in HOSTILE), *((sends, SYSTEM) for sends in HOSTILE_TO_SSH)],
)
def test_a_hostile_server_ends_in_time(
    sends: Callable[[asyncio.StreamWriter], Coroutine[None, None, None]], settings: SshSettings
) -> None:
    async def main() -> None:
        async with server_that(sends) as address, asyncio.timeout(30):
            with pytest.raises(ConnectError) as caught:
                await connect(parse_address(address), evolve(settings, connect_timeout_s=2))
            assert caught.value.reason.isprintable()
            assert 5 < len(caught.value.reason) < 700

    asyncio.run(main())
