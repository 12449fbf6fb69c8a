"""Work on many hosts at once, with a limited number of connections."""

import asyncio
import contextlib
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from typing import Final, Self, TypeVar

from attrs import define, field, frozen

from torc_framework.api import TorcError
from torc_ssh.addresses import HostAddress
from torc_ssh.connection import ConnectError, SshConnection, SshSettings, connect
from torc_ssh.session import HostSession, SessionLost

_T = TypeVar("_T")
ANSWER_TIMEOUT_S: Final = 90.0
"""Most time that a host gets for work other than moving files; one whose disk hangs answers keepalives."""

FIRST_PAUSE_S: Final = 1.0
"""Pause before the first attempt to connect again; each further one is twice as long."""


class HostConnectionError(TorcError):
    """A host could not be connected to, or the connection was lost.

    Attributes:
        was_connected: It was connected to before.
    """

    def __init__(self, message: str, *, was_connected: bool = False) -> None:
        super().__init__(message)
        self.was_connected = was_connected


class HostError(TorcError):
    """A host is connected to, and could not do what was asked for."""


@frozen
class Host:
    """A host that is connected to."""

    address: HostAddress
    connection: SshConnection
    session: HostSession


@define
class HostPool:
    """Hosts that are connected to when work on them begins.

    Connections are kept for the next work if there are at most as many hosts as connections.

    Args:
        settings: How hosts are connected to.
        limit: Most connections at once.
        hosts: How many hosts there are.
    """

    _settings: SshSettings
    _limit: int
    _hosts: int
    _gate: asyncio.Semaphore = field(init=False)
    _kept: dict[HostAddress, Host] = field(factory=dict, init=False)

    def __attrs_post_init__(self) -> None:
        self._gate = asyncio.Semaphore(self._limit)

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await asyncio.gather(*map(close_host, self._kept.values()), return_exceptions=True)
        self._kept.clear()

    async def for_each(
        self,
        addresses: Sequence[HostAddress],
        work: Callable[[Host], Awaitable[_T]],
        report: Callable[[HostAddress, _T | TorcError], None],
        *,
        timeout_s: float | None = ANSWER_TIMEOUT_S,
        retries: int = 0,
    ) -> None:
        """Do the work on all hosts; report each result or failure as soon as it is known.

        A failure on one host does not end the work on others.

        Args:
            addresses: The hosts.
            work: What is done on each.
            report: Called in the event loop with the result, or with the reason why there is none.
            timeout_s: Most time for the work, without that for connecting; None is unlimited.
            retries: How often the work is begun again after its connection was lost.
        """

        async def do(address: HostAddress) -> None:
            report(address, await self._result(address, work, timeout_s, retries))

        async with asyncio.TaskGroup() as tasks:
            for address in addresses:
                tasks.create_task(do(address))

    def kept(self, address: HostAddress) -> Host | None:
        """Return the connection to a host that is kept; None if there is none."""
        return self._kept.get(address)

    async def reopen(self, address: HostAddress) -> Host:
        """Connect to a host anew, and keep the connection; another one is closed.

        Raises:
            ConnectError: that is not possible.
        """
        if (old := self._kept.pop(address, None)) is not None:
            await close_host(old)
        self._kept[address] = host = await open_host(address, self._settings)
        return host

    async def _result(
        self, address: HostAddress, work: Callable[[Host], Awaitable[_T]], timeout_s: float | None, retries: int
    ) -> _T | TorcError:
        async with self._gate:
            result = await self._try(address, work, timeout_s)
            pause, was_connected = FIRST_PAUSE_S, False
            while retries and isinstance(result, HostConnectionError) and (was_connected or result.was_connected):
                was_connected, retries = True, retries - 1
                await asyncio.sleep(pause)
                pause *= 2
                result = await self._try(address, work, timeout_s)
            return result

    async def _try(
        self, address: HostAddress, work: Callable[[Host], Awaitable[_T]], timeout_s: float | None
    ) -> _T | TorcError:
        try:
            async with self._host(address) as host, asyncio.timeout(timeout_s):
                return await work(host)
        except ConnectError as error:
            return HostConnectionError(f"SSH connection failed to {address}: {error.reason}")
        except SessionLost as error:
            return HostConnectionError(f"the SSH connection to {address} was lost: {error}", was_connected=True)
        except TimeoutError:
            return HostError(f"no answer within {timeout_s:g} s")
        except TorcError as error:
            return error
        except OSError as error:
            return HostError(str(error))

    @contextlib.asynccontextmanager
    async def _host(self, address: HostAddress) -> AsyncIterator[Host]:
        host = self._kept.pop(address, None)
        if host is None or host.session.lost.done():
            host = await open_host(address, self._settings)
        try:
            yield host
        finally:
            if self._hosts <= self._limit and not host.session.lost.done():
                self._kept[address] = host
            else:
                await close_host(host)


async def open_host(address: HostAddress, settings: SshSettings) -> Host:
    """Connect to a host and start the helper there.

    Raises:
        ConnectError: that is not possible.
    """
    connection = await connect(address, settings)
    try:
        return Host(address, connection, await HostSession.open(connection))
    except BaseException:
        await connection.close()
        raise


async def close_host(host: Host) -> None:
    """End the helper and the connection."""
    await host.session.close()
    await host.connection.close()
