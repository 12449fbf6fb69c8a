"""Connections that several users share: one to each host, also if it is a jump host (``ProxyJump``) of others."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any, Protocol
from weakref import WeakKeyDictionary

from torc_ssh.addresses import HostAddress
from torc_ssh.connection.interface import SshSettings

Hops = tuple[HostAddress, ...]
"""Hosts in the order of the connections, of which each one goes through the one before; the first as configured."""


class OpenConnection(Protocol):
    """What a connection that is shared has."""

    lost: asyncio.Future[str]
    connection: Any

    async def close(self) -> None:
        """End the connection."""


class _Shared:
    """A connection, or the attempt to make it, and the number of its users."""

    def __init__(self, attempt: asyncio.Task[OpenConnection]) -> None:
        self.attempt, self.users = attempt, 0

    def is_usable(self) -> bool:
        """Return whether the attempt is under way, or the connection is not lost."""
        made = self._made()
        return not self.attempt.done() if made is None else not made.lost.done()

    async def end(self) -> None:
        """End the attempt or the connection."""
        self.attempt.cancel()
        await asyncio.wait([self.attempt])
        made = self._made()
        if made is not None:
            await made.close()

    def _made(self) -> OpenConnection | None:
        """Return the connection if the attempt has made one."""
        is_made = self.attempt.done() and not self.attempt.cancelled() and self.attempt.exception() is None
        return self.attempt.result() if is_made else None


class ConnectionLease:
    """The use of a shared connection by one user."""

    def __init__(self, hops: Hops, shared: _Shared, made: OpenConnection) -> None:
        self.hops, self._shared, self._made, self._is_released = hops, shared, made, False

    @property
    def connection(self) -> Any:
        """The connection of asyncssh."""
        return self._made.connection

    @property
    def lost(self) -> asyncio.Future[str]:
        """Gets the reason when the connection is lost; it belongs to all users."""
        return self._made.lost

    async def release(self) -> None:
        """End the use; the last user ends the connection. May be called several times."""
        if not self._is_released:
            self._is_released = True
            await _release(self._shared)


_shared: WeakKeyDictionary[asyncio.AbstractEventLoop, dict[tuple[Hops, SshSettings], _Shared]] = WeakKeyDictionary()


async def lease_connection(
    hops: Hops, settings: SshSettings, connect: Callable[[Hops, SshSettings], Awaitable[OpenConnection]]
) -> ConnectionLease:
    """Return the use of a connection to the last of some hosts, which is made if there is none.

    Args:
        hops: the hosts.
        settings: how to connect.
        connect: makes a connection; its exceptions are raised for all who wait for the connection.
    """
    of_loop = _shared.setdefault(asyncio.get_running_loop(), {})
    shared = of_loop.get((hops, settings))
    if shared is None or not shared.is_usable():
        shared = of_loop[hops, settings] = _Shared(asyncio.ensure_future(connect(hops, settings)))
    shared.users += 1
    try:
        return ConnectionLease(hops, shared, await asyncio.shield(shared.attempt))
    except BaseException:
        await _release(shared)
        raise


async def _release(shared: _Shared) -> None:
    shared.users -= 1
    if not shared.users:
        of_loop = _shared.get(asyncio.get_running_loop(), {})
        for key in [key for key, value in of_loop.items() if value is shared]:
            del of_loop[key]
        await shared.end()
