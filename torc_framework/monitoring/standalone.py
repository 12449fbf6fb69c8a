"""The server of ``torc-dash --standalone`` and of ``torc tui``: started, stopped, and ended with it."""

import threading
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from attrs import evolve, frozen

from torc_framework.client import TorcClient
from torc_framework.errors import OperatorError, ServerUnreachableError, UserError
from torc_framework.monitoring.identity import UpstreamServer

if TYPE_CHECKING:
    from torc_framework.embedded.server import EmbeddedServer


@frozen
class ServerOptions:
    """How a server is started.

    Attributes:
        database: Path or URL of the database, as a person writes it.
        port: Port on the loopback interface; 0 takes a free one.
        log_level: How much it writes to standard error; one of `torc_framework.models.settings.LOG_LEVELS`.
    """

    database: Path | str
    port: int = 0
    log_level: str = "warn"


class StandaloneServer:
    """The server, and its address for all requests.

    Args:
        make: Makes a server that is not started yet.
        upstream: Where the address is noted.
        options: Those of the first start.
    """

    def __init__(
        self, make: "Callable[[ServerOptions], EmbeddedServer]", upstream: UpstreamServer, options: ServerOptions
    ) -> None:
        self._make, self._upstream, self.options = make, upstream, options
        self._server: EmbeddedServer | None = None
        self._lock = threading.Lock()
        self._was_started = False

    def start(self, options: ServerOptions | None = None) -> None:
        """Start the server unless it runs; wait until it answers.

        Args:
            options: None for those of the last start.

        Raises:
            UserError: it runs with other options.
            TorcError: it did not start; the message has its own.
        """
        with self._lock:
            if self._is_running():
                if options not in (None, self.options):
                    raise UserError("the server runs; stop it before you start it with other options")
                return
            if self._server is not None:  # it ended by itself
                self._server.close()
                self._server = None
            options = options or self.options
            server = self._make(options)
            server.start()
            try:
                _require_answer(server)
                self._upstream.move(server.url)
            except BaseException:
                server.close()
                raise
            self._server, self._was_started = server, True
            self.options = evolve(options, database=server.database)

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
        server, database = self._server, self.options.database
        return {
            "standalone": True,
            "running": self._is_running(),
            "pid": None if server is None else server.pid,
            "url": self._upstream.shown,
            "database": str(database) if isinstance(database, Path) else None,  # a URL may hold a password
            "port": self.options.port,
            "log_level": self.options.log_level,
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
