"""The server process: listen, announce the port, serve, end cleanly."""

import asyncio
import contextlib
import gc
import os
import signal
import socket
from collections.abc import Generator
from typing import Any, Final

from torc_framework.errors import ExitStatus, OperatorError
from torc_framework.server.settings import ServerSettings

GRACE_S: Final = 2
"""Seconds that requests under way get at shutdown."""
_BACKLOG: Final = 2048


class ListenError(OperatorError):
    """The address cannot be listened on."""

    exit_status = ExitStatus.USAGE


def serve(settings: ServerSettings) -> int:
    """Serve until SIGTERM, SIGINT or the end of the parent; return the exit code of the process.

    The port is announced as soon as connections are accepted by the system; they are answered when
    the rest is loaded.

    Raises:
        DatabaseError: the database cannot be used.
        ListenError: the address is in use or is not ours.
    """
    from torc_framework.store.probe import check_database

    check_database(settings.database)
    listener = _listen(settings)
    if settings.port == 0:
        print(f"TORC_SERVER_PORT={listener.getsockname()[1]}", flush=True)
    app = _load(settings)
    with asyncio.Runner(loop_factory=_loop_factory()) as runner:
        runner.run(_serve(app, listener, settings))
    return int(ExitStatus.OK)


def _load(settings: ServerSettings) -> Any:
    """Import the rest and make the application.

    The garbage collector is off meanwhile and never looks at what was imported: that saves a seventh
    of the start.
    """
    gc.disable()
    from torc_framework.server.app import create_app
    from torc_framework.server.logs import configure_logging

    configure_logging(settings.log_level)
    app = create_app(settings)
    gc.freeze()
    gc.enable()
    return app


def _listen(settings: ServerSettings) -> socket.socket:
    try:
        family, _, _, _, address = socket.getaddrinfo(settings.url, settings.port, type=socket.SOCK_STREAM)[0]
        listener = socket.create_server(address[:2], family=family, backlog=_BACKLOG)
    except OSError as error:
        raise ListenError(f"cannot listen on {settings.url}:{settings.port}: {error.strerror or error}") from error
    listener.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    return listener


def _loop_factory() -> Any:
    """Return uvloop's, if it is there."""
    try:
        import uvloop
    except ImportError:
        return None
    return uvloop.new_event_loop


async def _serve(app: Any, listener: socket.socket, settings: ServerSettings) -> None:
    import uvicorn

    stopped = asyncio.Event()

    class Server(uvicorn.Server):
        """Ends at a word of ours and at once, and leaves signals to us, so that a clean end is exit code 0."""

        @contextlib.contextmanager
        def capture_signals(self) -> Generator[None, None, None]:
            yield

        async def main_loop(self) -> None:
            await stopped.wait()

        async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
            if self.server_state.connections or self.server_state.tasks:
                await super().shutdown(sockets)
                return
            for listening in (*self.servers, *(sockets or ())):
                listening.close()
            await self.lifespan.shutdown()

    config = uvicorn.Config(
        app,
        log_config=None,
        access_log=settings.log_level == "debug",
        timeout_graceful_shutdown=GRACE_S,
        timeout_keep_alive=75,
        proxy_headers=False,
        server_header=False,
        date_header=False,
        lifespan="on",
    )
    server = Server(config)

    def stop() -> None:
        app.state.room.close()
        server.force_exit = server.should_exit
        server.should_exit = True
        stopped.set()

    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, stop)
    if settings.parent_fd is not None:
        loop.add_reader(settings.parent_fd, _stop_at_end_of_file, loop, settings.parent_fd, stop)
    await server.serve(sockets=[listener])


def _stop_at_end_of_file(loop: asyncio.AbstractEventLoop, fd: int, stop: Any) -> None:
    if not os.read(fd, 4096):
        loop.remove_reader(fd)
        stop()
