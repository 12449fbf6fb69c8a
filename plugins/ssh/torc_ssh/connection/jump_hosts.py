"""Connections to jump hosts (``ProxyJump``): one for all hosts behind it, while one of them is in use."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any, Protocol
from weakref import WeakKeyDictionary

from torc_ssh.addresses import HostAddress
from torc_ssh.connection.interface import ConnectError, SshSettings

Hops = tuple[HostAddress, ...]
"""Jump hosts in the order of the connections."""


class JumpConnection(Protocol):
    """What a connection to a jump host has."""

    lost: asyncio.Future[str]
    connection: Any

    async def close(self) -> None:
        """End the connection."""


Connect = Callable[[HostAddress, SshSettings, Hops | None, tuple[str, ...]], Awaitable[JumpConnection]]
"""Connects to a host through others: the address, settings, jump hosts or None for the configured ones, the way."""


class _SharedJump:
    """A connection to a jump host, or the attempt to make it, and the number of its users."""

    def __init__(self, attempt: asyncio.Task[JumpConnection]) -> None:
        self.attempt, self.users = attempt, 0

    def is_usable(self) -> bool:
        """Return whether the attempt is under way, or the connection is not lost."""
        if not self.attempt.done():
            return True
        return (
            not self.attempt.cancelled() and self.attempt.exception() is None and not self.attempt.result().lost.done()
        )

    async def end(self) -> None:
        """End the attempt or the connection."""
        self.attempt.cancel()
        await asyncio.wait([self.attempt])
        if not self.attempt.cancelled() and self.attempt.exception() is None:
            await self.attempt.result().close()


class JumpLease:
    """The use of a jump host's connection by one other connection."""

    def __init__(self, hops: Hops, shared: _SharedJump, jump: JumpConnection) -> None:
        self.hops, self._shared, self._jump = hops, shared, jump

    @property
    def connection(self) -> Any:
        """The connection to the jump host."""
        return self._jump.connection

    def loss_reason(self) -> str:
        """Return why the connection to the jump host is lost; empty if it is not."""
        lost = self._jump.lost
        return f"jump host {self.hops[-1]}: {lost.result()}" if lost.done() and not lost.cancelled() else ""

    async def release(self) -> None:
        """End the use; the last user ends the connection."""
        await _release(self._shared)


_shared: WeakKeyDictionary[asyncio.AbstractEventLoop, dict[Any, _SharedJump]] = WeakKeyDictionary()


async def lease_jump(hops: Hops, settings: SshSettings, way: tuple[str, ...], connect: Connect) -> JumpLease:
    """Return the use of a connection to the last of some jump hosts, which is made if there is none.

    Args:
        hops: the jump hosts.
        settings: how to connect.
        way: the hosts that are reached through this one, the first one last.
        connect: connects to a host.

    Raises:
        ConnectError: the jump host cannot be connected to; the reason names it.
    """
    last = hops[-1]
    if str(last) in way:
        raise ConnectError(f"ProxyJump of {last} leads back to {last}", is_permanent=True)
    of_loop = _shared.setdefault(asyncio.get_running_loop(), {})
    shared = of_loop.get((hops, settings))
    if shared is None or not shared.is_usable():
        attempt = connect(last, settings, hops[:-1] or None, way)
        shared = of_loop[hops, settings] = _SharedJump(asyncio.ensure_future(attempt))
    shared.users += 1
    try:
        return JumpLease(hops, shared, await asyncio.shield(shared.attempt))
    except ConnectError as error:
        await _release(shared)
        raise ConnectError(f"jump host {last}: {error.reason}", is_permanent=error.is_permanent) from None
    except BaseException:
        await _release(shared)
        raise


async def _release(shared: _SharedJump) -> None:
    shared.users -= 1
    if not shared.users:
        of_loop = _shared.get(asyncio.get_running_loop(), {})
        for key in [key for key, value in of_loop.items() if value is shared]:
            del of_loop[key]
        await shared.end()
