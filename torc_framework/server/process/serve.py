"""The main function of the server process: listens, announces the port, serves, and ends cleanly on a signal."""

import asyncio
import gc
import logging
import os
import signal
import socket
from collections.abc import Callable
from importlib import import_module
from typing import TYPE_CHECKING, Any, Final

from torc_framework.errors import ExitStatus, OperatorError
from torc_framework.server.settings import API_PREFIX, ServerSettings

if TYPE_CHECKING:
    from torc_framework.server.process.idle_end import IdleEnd
    from torc_framework.server.process.tls import TlsFiles

_log = logging.getLogger("torc.server")
_APPLICATION: Final = (
    "anyio.to_thread",
    "torc_framework.server.logs",
    "torc_framework.server.process.app",
    "torc_framework.server.process.uvicorn_server",
)
"""Modules of the application, which are not imported before the port is announced."""
_BACKLOG: Final = 2048
"""Connections that the kernel holds while they wait to be accepted."""


class ListenError(OperatorError):
    """The server cannot listen on the address."""

    exit_status = ExitStatus.USAGE


class StartError(OperatorError):
    """The application did not start."""


def serve(
    settings: ServerSettings, ready: Callable[[int], None] | None = None, idle_end: "IdleEnd | None" = None
) -> int:
    """Serve until SIGTERM, SIGINT, the end of the parent or the idle end; return the exit code of the process.

    A free port (``port`` 0), or that of an embedded server, is printed as soon as the kernel accepts connections;
    requests are answered once the application is imported.

    Args:
        ready: Called with the port when requests are answered. A daemon passes it: then no port is printed and nothing
            is logged on standard error.
        idle_end: When the server ends by itself.

    Raises:
        ConfigError: certificate, key or log file cannot be used.
        DatabaseError: the database cannot be used.
        ListenError: the address is in use or does not belong to this machine.
        StartError: the application did not start; the log holds the exception.
    """
    from torc_framework.store.database.probe import check_database

    certificate = _certificate(settings)
    check_database(settings.database)
    listener = _listen(settings)
    port = listener.getsockname()[1]
    if (settings.port == 0 or settings.parent_fd is not None) and ready is None:
        print(f"TORC_SERVER_PORT={port}", flush=True)
    app = _load(settings, on_stderr=ready is None)

    def on_ready() -> None:
        _log_start(settings, port)
        if ready is not None:
            ready(port)

    with asyncio.Runner(loop_factory=_loop_factory()) as runner:
        runner.run(_serve(app, listener, settings, certificate, on_ready=on_ready, idle_end=idle_end))
    _log.info("the server ends", extra={"fields": {"pid": os.getpid()}})
    return int(ExitStatus.OK)


def _certificate(settings: ServerSettings) -> "TlsFiles | None":
    if not (settings.https or settings.tls_cert or settings.tls_key):
        return None
    from torc_framework.server.process.tls import tls_files

    return tls_files(settings)


def _log_start(settings: ServerSettings, port: int) -> None:
    from torc_framework import __version__
    from torc_framework.server.logs import log_fields, url_without_password

    scheme = "https" if settings.https else "http"
    facts = log_fields(
        version=__version__,
        pid=os.getpid(),
        url=f"{scheme}://{settings.url}:{port}{API_PREFIX}",
        database=url_without_password(settings.database),
    )
    _log.info("the server listens", extra=facts)


def _load(settings: ServerSettings, *, on_stderr: bool) -> Any:
    """Import the application and make it; the garbage collector never visits the imported objects."""
    import_application()
    from torc_framework.server.logs import configure_logging
    from torc_framework.server.process.app import create_app

    configure_logging(settings.log_level, settings.logging, on_stderr=on_stderr)
    app = create_app(settings)
    gc.freeze()
    gc.enable()
    return app


def import_application() -> None:
    """Import what a server needs, without the garbage collector, which saves a seventh of the start."""
    gc.disable()
    for name in _APPLICATION:
        import_module(name)
    _loop_factory()


def _listen(settings: ServerSettings) -> socket.socket:
    try:
        family, _, _, _, address = socket.getaddrinfo(settings.url, settings.port, type=socket.SOCK_STREAM)[0]
        listener = socket.create_server(address[:2], family=family, backlog=_BACKLOG)
    except OSError as error:
        raise ListenError(f"cannot listen on {settings.url}:{settings.port}: {error.strerror or error}") from error
    listener.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    return listener


def _loop_factory() -> Any:
    """Return uvloop's function for new event loops; None if uvloop is not installed."""
    try:
        import uvloop
    except ImportError:
        return None
    return uvloop.new_event_loop


async def _serve(
    app: Any,
    listener: socket.socket,
    settings: ServerSettings,
    certificate: "TlsFiles | None",
    *,
    on_ready: Callable[[], None],
    idle_end: "IdleEnd | None",
) -> None:
    """Serve on the listening socket until a signal, the end of the parent or the idle end."""
    import anyio.to_thread

    from torc_framework.server.http.connection_limits import raise_open_file_limit
    from torc_framework.server.process.idle_end import RequestActivity
    from torc_framework.server.process.uvicorn_server import StoppableServer, server_config

    raise_open_file_limit()
    if settings.threads is not None:
        anyio.to_thread.current_default_thread_limiter().total_tokens = settings.threads
    activity = None if idle_end is None else RequestActivity(app)
    server = StoppableServer(server_config(activity or app, settings.limits, certificate), on_ready)

    def stop() -> None:
        app.state.waiting_calls.close()
        app.state.answer_room.close()
        server.stop()

    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, stop)
    if settings.parent_fd is not None:
        loop.add_reader(settings.parent_fd, _stop_at_end_of_file, loop, settings.parent_fd, stop)
    if activity is None or idle_end is None:
        await server.serve(sockets=[listener])
    else:
        watch = loop.create_task(activity.end_when_idle(idle_end, stop))
        await server.serve(sockets=[listener])
        watch.cancel()
    if not server.started:
        raise StartError("the server could not start; see its log")


def _stop_at_end_of_file(loop: asyncio.AbstractEventLoop, fd: int, stop: Callable[[], None]) -> None:
    if not os.read(fd, 4096):
        loop.remove_reader(fd)
        stop()
