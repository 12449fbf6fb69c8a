"""The application: the routes behind the guard, and what runs beside them."""

import asyncio
import contextlib
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Final

from attrs import define, field, frozen
from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.middleware import Middleware
from starlette.requests import Request
from starlette.responses import FileResponse, Response
from starlette.routing import Mount, Route
from starlette.staticfiles import StaticFiles

from torc_framework.dashboard.access.guard import Guard
from torc_framework.dashboard.access.login import LoginRoutes
from torc_framework.dashboard.access.sessions import SessionStore
from torc_framework.dashboard.http.errors import error_answer
from torc_framework.dashboard.routes.api_proxy import ApiProxy
from torc_framework.dashboard.routes.command_routes import CommandRoutes
from torc_framework.dashboard.routes.event_streams import EventStreams
from torc_framework.dashboard.routes.log_routes import LogRoutes
from torc_framework.dashboard.routes.server_routes import ServerRoutes
from torc_framework.dashboard.routes.work_calls import WorkCalls
from torc_framework.dashboard.routes.workflow_routes import WorkflowRoutes
from torc_framework.dashboard.upstream.event_feed import EventHub
from torc_framework.dashboard.upstream.http_client import HttpClients
from torc_framework.dashboard.upstream.monitor import ServerMonitor
from torc_framework.dashboard.work.command_runs import CommandRuns
from torc_framework.monitoring.context import WorkContext
from torc_framework.monitoring.identity import Identity, UpstreamServer
from torc_framework.monitoring.refusals import RefusedError
from torc_framework.monitoring.standalone import StandaloneServer

STATIC: Final = Path(__file__).parent / "static"
"""Folder of the page."""
_FRESH: Final = {"Cache-Control": "no-cache"}


@frozen
class DashboardAccess:
    """How readers come in.

    Attributes:
        token: The start token.
        host: Address that the dashboard listens on.
        port: Port, also that of the cookie's name: browsers send the cookies of all ports of a host.
        allowed_hosts: Further host names of the dashboard.
        base_path: Prefix that a proxy leaves in paths.
        frame_ancestors: Pages that may show the dashboard in a frame.
        idle_s: Seconds without a request after which a session ends.
    """

    token: str
    host: str
    port: int
    allowed_hosts: tuple[str, ...] = ()
    base_path: str = ""
    frame_ancestors: str = "'none'"
    idle_s: float = 12 * 3600.0

    @property
    def cookie(self) -> str:
        """The name of the cookie."""
        return f"torc_dash_{self.port}"


@define(eq=False)
class Dashboard:
    """The parts of the application.

    Attributes:
        access: How readers come in.
        upstream: The server.
        process: The identity of this process.
        context: What the routes need of this machine.
        server: The server of ``--standalone``.
    """

    access: DashboardAccess
    upstream: UpstreamServer
    process: Identity
    context: WorkContext
    server: StandaloneServer | None = None
    sessions: SessionStore = field(init=False)
    clients: HttpClients = field(factory=HttpClients, init=False)
    monitor: ServerMonitor = field(init=False)
    hub: EventHub = field(init=False)
    runs: CommandRuns = field(init=False)

    def __attrs_post_init__(self) -> None:
        self.sessions = SessionStore(self.access.idle_s)
        self.monitor = ServerMonitor(self.upstream, self.clients, self.process)
        self.hub = EventHub(self.upstream, self.clients, self.monitor)
        self.runs = CommandRuns(self.context, stops_long=self.server is not None)

    def app(self) -> Starlette:
        """Return the application."""
        logins = LoginRoutes(
            self.sessions,
            self.upstream,
            self.clients,
            self.process,
            token=self.access.token,
            cookie=self.access.cookie,
            is_standalone=self.server is not None,
        )

        async def page(request: Request) -> Response:
            return logins.redirect_with_token(request) or FileResponse(STATIC / "index.html", headers=_FRESH)

        return Starlette(
            routes=[
                Route("/", page, methods=["GET"]),
                Mount("/static", _FreshFiles(directory=STATIC, check_dir=False)),
                *logins.routes(),
                *self._routes(logins),
            ],
            middleware=[self._guard()],
            exception_handlers={RefusedError: _refused, HTTPException: _http_error, Exception: _defect},
            lifespan=self._lifespan,
        )

    def _routes(self, logins: LoginRoutes) -> list[Route]:
        """Return the routes that need a session."""
        calls = WorkCalls(self.monitor)
        return [
            *ApiProxy(self.upstream, self.clients, self.monitor, logins).routes(),
            *WorkflowRoutes(self.context, self.upstream, logins, calls).routes(),
            *EventStreams(self.hub, logins, self.sessions).routes(),
            *LogRoutes(self.context, logins, calls).routes(),
            *CommandRoutes(self.context, self.runs, logins, calls).routes(),
            *ServerRoutes(self.server, self.upstream, calls, self.monitor).routes(),
        ]

    def _guard(self) -> Middleware:
        return Middleware(
            Guard,
            sessions=self.sessions,
            cookie=self.access.cookie,
            host=self.access.host,
            allowed_hosts=self.access.allowed_hosts,
            base_path=self.access.base_path,
            frame_ancestors=self.access.frame_ancestors,
        )

    @contextlib.asynccontextmanager
    async def _lifespan(self, _app: Starlette) -> AsyncIterator[None]:
        await self.monitor.look()
        watch = asyncio.create_task(self.monitor.run())
        try:
            yield
        finally:
            watch.cancel()
            await self.hub.close()
            await self.runs.close()
            await self.clients.close()


class _FreshFiles(StaticFiles):
    """Files that browsers ask for again, and get only if they have changed."""

    def file_response(self, *args: object, **settings: object) -> Response:
        """Return the answer with a file, or without it if the browser has it."""
        answer = super().file_response(*args, **settings)  # type: ignore[arg-type]  # passed on as they came
        answer.headers.update(_FRESH)
        return answer


async def _refused(_request: Request, error: Exception) -> Response:
    assert isinstance(error, RefusedError)
    return error_answer(error.status, str(error), **error.facts)


async def _defect(_request: Request, _error: Exception) -> Response:
    """Answer an error of this program; it is logged with its traceback, which the reader does not get."""
    return error_answer(500, "torc-dash has an error here; its standard error has the details")


async def _http_error(_request: Request, error: Exception) -> Response:
    assert isinstance(error, HTTPException)
    return error_answer(error.status_code, error.detail)
