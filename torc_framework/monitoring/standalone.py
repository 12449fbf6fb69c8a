"""The server of ``torc-dash --standalone`` and of ``torc tui``: started, stopped, and ended with it."""

import threading
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from torc_framework.client import TorcClient
from torc_framework.errors import OperatorError, ServerUnreachableError
from torc_framework.monitoring.identity import UpstreamServer

if TYPE_CHECKING:
    from torc_framework.embedded import EmbeddedServer


class StandaloneServer:
    """The server, and its address for all requests.

    Args:
        make: Makes a server that is not started yet.
        upstream: Where the address is noted.
    """

    def __init__(self, make: "Callable[[], EmbeddedServer]", upstream: UpstreamServer) -> None:
        self._make, self._upstream = make, upstream
        self._server: EmbeddedServer | None = None
        self._lock = threading.Lock()
        self._was_started = False

    def start(self) -> None:
        """Start the server unless it runs; wait until it answers.

        Raises:
            TorcError: it did not start; the message has its own.
        """
        with self._lock:
            if self._is_running():
                return
            if self._server is not None:  # it ended by itself
                self._server.close()
                self._server = None
            server = self._make()
            server.start()
            try:
                _require_answer(server)
                self._upstream.move(server.url)
            except BaseException:
                server.close()
                raise
            self._server, self._was_started = server, True

    def stop(self) -> None:
        """Stop the server and wait for its end."""
        with self._lock:
            server, self._server = self._server, None
            if server is not None:
                self._upstream.move(None)
                server.close()

    @property
    def was_started(self) -> bool:
        """Whether it runs or has run."""
        return self._was_started

    def output(self) -> str:
        """Return the end of what the present server wrote to standard error."""
        server = self._server
        return "" if server is None else server.output()

    def _is_running(self) -> bool:
        return self._server is not None and self._server.is_alive

    def as_dict(self) -> dict[str, Any]:
        """Return its state as JSON values."""
        server = self._server
        database = None if server is None or not isinstance(server.database, Path) else str(server.database)
        return {
            "standalone": True,
            "running": self._is_running(),
            "pid": None if server is None else server.pid,
            "url": self._upstream.shown,
            "database": database,
        }


def _require_answer(server: "EmbeddedServer") -> None:
    """Wait until a server answers: it listens before it has opened its database.

    Raises:
        OperatorError: it has ended, such as for a full disk.
    """
    try:
        with TorcClient(server.url) as client:
            client.ping()
    except ServerUnreachableError:
        if not server.has_failed():
            raise
        server.close()
        raise OperatorError(f"the embedded server has ended: {server.last_error_line}") from None
