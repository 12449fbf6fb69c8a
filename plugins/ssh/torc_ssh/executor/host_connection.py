"""One connection to a host that is made again whenever it is lost: connected, or reconnecting with growing pauses."""

import asyncio
import logging
import random
import time
from collections.abc import Mapping
from contextlib import suppress
from typing import Any, Final, Protocol

from torc_framework.api import TorcError
from torc_ssh.addresses import HostAddress
from torc_ssh.connection import ConnectError, SshConnection, SshSettings, connect
from torc_ssh.executor.hindrances import LinkHindrances
from torc_ssh.session import HelperError, HostSession, SessionLost

FIRST_PAUSE_S: Final = 1.0
LONGEST_PAUSE_S: Final = 30.0
"""Pauses between two attempts to connect: the first, and the longest to which it doubles."""
STEADY_S: Final = 30.0
"""The host of a session that was lost earlier is connected to again after a pause, which doubles as well."""
PREPARATION_S: Final = 90.0
"""How long the helper may take, beyond the connection, until it takes orders."""
LAST_ANSWER_S: Final = 15.0
"""How long the end of a session may take."""
_LOG: Final = logging.getLogger("torc_framework.ssh")


class ConnectionOwner(Protocol):
    """Who uses a connection, and is called when it is lost and made again."""

    def begin_session(self, session: HostSession) -> None:
        """Send the first requests of a new session; nothing is known of the host yet."""

    async def prepare(self, connection: SshConnection, session: HostSession) -> None:
        """Bring a new session to the state in which it takes orders."""

    def take_event(self, event: Mapping[str, Any]) -> None:
        """Take an event of the helper."""

    def connected(self) -> None:
        """Take note that there is a session which is prepared."""

    def disconnected(self) -> None:
        """Take note that there is no session any more."""


class HostConnection:
    """Keeps a session with the helper of one host.

    Args:
        address: The host.
        settings: How it is connected to.
        python: The interpreter on the host.
        owner: Is called when the connection is lost and made again.
        hindrances: Takes note of the state.
    """

    def __init__(
        self,
        address: HostAddress,
        settings: SshSettings,
        python: str,
        owner: ConnectionOwner,
        hindrances: LinkHindrances,
    ) -> None:
        self.address, self._settings, self._python = address, settings, python
        self._owner, self._hindrances = owner, hindrances
        self._connection: SshConnection | None = None
        self._session: HostSession | None = None
        self._newest: HostSession | None = None
        """The newest session, also before it is prepared and after it was lost."""
        self._is_connected = asyncio.Event()
        self._keeper: asyncio.Task[None] | None = None

    async def open(self) -> None:
        """Connect for the first time, and stay connected from then on.

        Raises:
            ConnectError: the host cannot be connected to.
            HelperError: the helper cannot work there.
            SessionLost: the connection was lost meanwhile.
        """
        await self._connect()
        self._keeper = asyncio.ensure_future(self._keep_connected(0.0))

    def follow(self, reason: str) -> None:
        """Connect as soon as the host answers, and stay connected from then on."""
        self._note_loss(reason)
        self._keeper = asyncio.ensure_future(self._keep_connected(FIRST_PAUSE_S))

    @property
    def clock_offset_s(self) -> float:
        """Seconds by which the host's clock is ahead of this machine's, as the newest session measured it."""
        return self._newest.clock_offset_s if self._newest is not None else 0.0

    @property
    def round_trip_s(self) -> float:
        """Seconds from a request to its answer, 0 if it is not known."""
        return self._newest.round_trip_s if self._newest is not None else 0.0

    def session(self) -> HostSession:
        """Return the present session.

        Raises:
            SessionLost: there is none.
        """
        if self._session is None or self._session.lost.done():
            raise SessionLost(f"host {self.address} is not connected")
        return self._session

    async def wait(self) -> None:
        """Wait until there is a session."""
        while True:
            await self._is_connected.wait()
            if self._session is not None and not self._session.lost.done():
                return
            await asyncio.sleep(0)  # the session is lost, and the keeper notes that in its next turn

    async def _keep_connected(self, pause_s: float) -> None:
        while True:
            if self._session is not None:
                since = time.monotonic()
                await self._lose(await asyncio.shield(self._session.lost))
                if time.monotonic() - since >= STEADY_S:
                    pause_s = 0.0
            await asyncio.sleep(pause_s * random.uniform(0.8, 1.2))
            pause_s = min(LONGEST_PAUSE_S, max(FIRST_PAUSE_S, pause_s * 2))
            try:
                await self._connect()
            except TorcError as error:
                if isinstance(error, ConnectError) and error.is_permanent:
                    pause_s = LONGEST_PAUSE_S
                self._hindrances.not_connected(str(error))
            except Exception as error:
                _LOG.exception("event=reconnect_failed host=%s", self.address)
                pause_s = LONGEST_PAUSE_S
                self._hindrances.not_connected(f"{type(error).__name__}: {error}")

    async def _connect(self) -> None:
        """Connect, start the helper and prepare the session; the errors are those of `open`."""
        connection = await connect(self.address, self._settings)
        session: HostSession | None = None
        try:
            async with asyncio.timeout(PREPARATION_S):
                session = await HostSession.open(
                    connection,
                    python=self._python,
                    on_event=self._owner.take_event,
                    on_begin=self._owner.begin_session,
                )
                self._newest = session
                await self._owner.prepare(connection, session)
        except TimeoutError:
            await _close(session, connection)
            reason = f"the helper on the host was not ready within {PREPARATION_S:.0f} s"
            raise ConnectError(reason, is_permanent=False) from None
        except BaseException:
            await _close(session, connection)
            raise
        self._connection, self._session = connection, session
        _LOG.info("event=connected host=%s", self.address)
        self._hindrances.connected()
        self._is_connected.set()
        self._owner.connected()

    async def _lose(self, reason: str) -> None:
        connection, session = self._connection, self._session
        self._connection = self._session = None
        self._note_loss(reason)
        if connection is not None:
            await _close(session, connection)

    def _note_loss(self, reason: str) -> None:
        self._is_connected.clear()
        self._hindrances.disconnected(reason)
        _LOG.info("event=disconnected host=%s reason=%r", self.address, reason)
        self._owner.disconnected()

    async def close(self, last_request: str) -> None:
        """Send a last request, if there is a session, and end the connection."""
        if self._keeper is not None:
            self._keeper.cancel()
            await asyncio.gather(self._keeper, return_exceptions=True)
        if self._connection is not None:
            with suppress(SessionLost, HelperError, TimeoutError):
                async with asyncio.timeout(LAST_ANSWER_S):
                    await self.session().request(last_request)
            await _close(self._session, self._connection)


async def _close(session: HostSession | None, connection: SshConnection) -> None:
    with suppress(Exception):  # an error of the old connection does not concern the next one
        async with asyncio.timeout(LAST_ANSWER_S):
            if session is not None:
                await session.close()
            await connection.close()
