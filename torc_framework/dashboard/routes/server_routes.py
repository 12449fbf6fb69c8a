"""The routes of the server of ``torc-dash --standalone``: its state, start and stop. They are for the owner only."""

from collections.abc import Callable
from typing import Annotated

import msgspec
from attrs import evolve
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from torc_framework.dashboard.access.guard import session_of
from torc_framework.dashboard.http.bodies import has_body, read_json
from torc_framework.dashboard.http.errors import json_answer
from torc_framework.dashboard.http.limits import BODY_BYTES
from torc_framework.dashboard.routes.queries import require_owner
from torc_framework.dashboard.routes.work_calls import WorkCalls
from torc_framework.dashboard.upstream.monitor import ServerMonitor
from torc_framework.models.settings import LOG_LEVELS
from torc_framework.monitoring.identity import UpstreamServer
from torc_framework.monitoring.refusals import RefusedError
from torc_framework.monitoring.standalone import ServerOptions, StandaloneServer


class ServerStart(msgspec.Struct, forbid_unknown_fields=True):
    """How a person wants the server to be started; what is None stays as it was.

    Attributes:
        database: Path or URL of the database; a relative path begins at the folder of ``torc-dash``.
        port: Port on the loopback interface; 0 takes a free one.
        log_level: How much it writes to standard error.
    """

    database: Annotated[str, msgspec.Meta(min_length=1, max_length=4096, pattern=r"^[^\x00-\x1f]*\Z")] | None = None
    port: Annotated[int, msgspec.Meta(ge=0, le=65535)] | None = None
    log_level: Annotated[str, msgspec.Meta(pattern=rf"^({'|'.join(LOG_LEVELS)})\Z")] | None = None

    def changed(self, options: ServerOptions) -> ServerOptions:
        """Return options with these changes."""
        return evolve(
            options, **{name: value for name, value in msgspec.structs.asdict(self).items() if value is not None}
        )


class ServerRoutes:
    """The routes of the server."""

    def __init__(
        self, server: StandaloneServer | None, upstream: UpstreamServer, calls: WorkCalls, monitor: ServerMonitor
    ) -> None:
        self._server, self._upstream, self._calls, self._monitor = server, upstream, calls, monitor

    def routes(self) -> list[Route]:
        """Return the routes."""
        return [
            Route("/dash/server", self.show, methods=["GET"]),
            Route("/dash/server/start", self.start, methods=["POST"]),
            Route("/dash/server/stop", self.stop, methods=["POST"]),
        ]

    async def show(self, request: Request) -> Response:
        """Answer the state of the server."""
        require_owner(request)
        if self._server is not None:
            return json_answer(self._server.as_dict())
        return json_answer({"standalone": False, "running": None, "pid": None, "url": self._upstream.shown})

    async def start(self, request: Request) -> Response:
        """Start the server, as before or with the options of the body."""
        require_owner(request)
        wanted = await read_json(request, ServerStart, BODY_BYTES) if has_body(request) else ServerStart()
        return await self._change(request, lambda server: server.start(wanted.changed(server.options)))

    async def stop(self, request: Request) -> Response:
        """Stop the server."""
        return await self._change(request, lambda server: server.stop())

    async def _change(self, request: Request, change: Callable[[StandaloneServer], None]) -> Response:
        require_owner(request)
        server = self._server
        if server is None:
            raise RefusedError(409, "this dashboard uses a server of its own only with --standalone")
        await self._calls.run(session_of(request), lambda: change(server))
        await self._monitor.look()
        return json_answer(server.as_dict())
