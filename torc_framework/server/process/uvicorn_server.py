"""uvicorn's server with a stop method of its own and messages to the service manager."""

import asyncio
import contextlib
import os
import socket
from collections.abc import Callable, Generator
from typing import TYPE_CHECKING, Any, Final

import uvicorn

from torc_framework.server.http.connection_limits import limited_protocol
from torc_framework.server.settings import LimitSettings

if TYPE_CHECKING:
    from torc_framework.server.process.tls import TlsFiles

GRACE_S: Final = 2
"""Seconds that requests in progress may still take at shutdown."""


class StoppableServer(uvicorn.Server):
    """A server that ends when `stop` is called.

    It handles no signals, so that a process that was ended by one can still exit with code 0, and it is woken by
    `stop`, where uvicorn's own loop would look for its end ten times a second.

    Args:
        config: uvicorn's configuration.
        on_ready: Called when the server answers requests.
    """

    def __init__(self, config: uvicorn.Config, on_ready: Callable[[], None]) -> None:
        super().__init__(config)
        self._on_ready = on_ready
        self._stopped = asyncio.Event()

    def stop(self) -> None:
        """End the server; at the second call without waiting for requests in progress."""
        self.force_exit = self.should_exit
        self.should_exit = True
        self._stopped.set()

    @contextlib.contextmanager
    def capture_signals(self) -> Generator[None, None, None]:
        """Handle no signals."""
        yield

    async def main_loop(self) -> None:
        """Wait until the server is stopped."""
        self._on_ready()
        _notify("READY=1")
        await self._stopped.wait()
        _notify("STOPPING=1")

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        """End at once if there are no connections; otherwise uvicorn waits for them up to `GRACE_S` seconds."""
        if self.server_state.connections or self.server_state.tasks:
            await super().shutdown(sockets)
            return
        for listening in (*self.servers, *(sockets or ())):
            listening.close()
        await self.lifespan.shutdown()


def server_config(app: Any, limits: LimitSettings, certificate: "TlsFiles | None") -> uvicorn.Config:
    """Return uvicorn's configuration for an application."""
    return uvicorn.Config(
        app,
        log_config=None,
        access_log=False,
        ssl_certfile=certificate.certificate if certificate else None,
        ssl_keyfile=certificate.key if certificate else None,
        timeout_graceful_shutdown=GRACE_S,
        timeout_keep_alive=75,
        http=limited_protocol(limits),
        ws="none",  # there is no WebSocket, and to import a library for them takes a twentieth of the start
        proxy_headers=False,
        server_header=False,
        date_header=False,
        lifespan="on",
    )


def _notify(state: str) -> None:
    """Send a state such as ``READY=1`` to the service manager (sd_notify), if one started this process."""
    address = os.environ.get("NOTIFY_SOCKET", "")
    if address.startswith(("/", "@")):
        with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as manager, contextlib.suppress(OSError):
            manager.sendto(state.encode(), "\0" + address[1:] if address.startswith("@") else address)
