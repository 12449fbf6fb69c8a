"""Connections that tests in the client's network make, with asyncssh and with the system's ssh."""

import asyncio
from typing import Final

import pytest
from torc_ssh.addresses import parse_address
from torc_ssh.connection import Channel, ConnectError, SshConnection, SshSettings, connect

SETTINGS: Final = SshSettings(connect_timeout_s=10)
SYSTEM: Final = SshSettings(connect_timeout_s=10, ssh_command="ssh")
BOTH: Final = pytest.mark.parametrize("settings", [SETTINGS, SYSTEM], ids=["asyncssh", "system"])


async def output(channel: Channel) -> bytes:
    """Return the standard output up to its end."""
    found = []
    while data := await channel.read(65536):
        found.append(data)
    return b"".join(found)


async def answer(connection: SshConnection, command: str) -> tuple[bytes, int | None]:
    """Return the standard output of a command and its exit status."""
    channel = await connection.start(command)
    return await output(channel), await channel.exit_status()


async def answer_when_possible(connection: SshConnection, command: str) -> tuple[bytes, int | None]:
    """Return what `answer` does, as soon as the host takes another session."""
    async with asyncio.timeout(20):
        while True:
            try:
                return await answer(connection, command)
            except ConnectError:
                await asyncio.sleep(0.05)


async def ask(host: str, command: str = "hostname", settings: SshSettings = SETTINGS) -> bytes:
    """Connect to a host, and return what a command prints."""
    connection = await connect(parse_address(host), settings)
    try:
        return (await answer(connection, command))[0]
    finally:
        await connection.close()


def refusal(host: str, settings: SshSettings = SETTINGS) -> ConnectError:
    """Return the error with which a host cannot be connected to."""
    with pytest.raises(ConnectError) as caught:
        asyncio.run(ask(host, settings=settings))
    assert "\n" not in caught.value.reason
    return caught.value
