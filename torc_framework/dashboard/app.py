"""The application: the routes behind the guard, and what runs beside them."""

import asyncio
import contextlib
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Final

from attrs import frozen
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
from torc_framework.dashboard.errors import RefusedError, error_answer
from torc_framework.dashboard.routes.api_proxy import ApiProxy
from torc_framework.dashboard.upstream.http_client import HttpClients
from torc_framework.dashboard.upstream.identity import PROCESS, Credentials, Identity, UpstreamServer
from torc_framework.dashboard.upstream.monitor import ServerMonitor

STATIC: Final = Path(__file__).parent / "static"
"""Folder of the page."""
_FRESH: Final = {"Cache-Control": "no-cache"}


@frozen
class Access:
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


def make_app(access: Access, upstream: UpstreamServer, credentials: Credentials | None) -> Starlette:
    """Return the application.

    Args:
        credentials: Name and password of this process at the server.
    """
    sessions, clients = SessionStore(access.idle_s), HttpClients()
    process = Identity(PROCESS, upstream, credentials)
    monitor = ServerMonitor(upstream, clients, process)
    logins = LoginRoutes(
        sessions, upstream, clients, process, token=access.token, cookie=access.cookie, is_standalone=False
    )

    @contextlib.asynccontextmanager
    async def lifespan(_app: Starlette) -> AsyncIterator[None]:
        watch = asyncio.create_task(monitor.run())
        yield
        watch.cancel()
        await clients.close()

    async def page(request: Request) -> Response:
        if (answer := logins.redirect_with_token(request)) is not None:
            return answer
        return FileResponse(STATIC / "index.html", headers=_FRESH)

    guard = Middleware(
        Guard,
        sessions=sessions,
        cookie=access.cookie,
        host=access.host,
        allowed_hosts=access.allowed_hosts,
        base_path=access.base_path,
        frame_ancestors=access.frame_ancestors,
    )
    return Starlette(
        routes=[
            Route("/", page, methods=["GET"]),
            Route("/index.html", page, methods=["GET"]),
            Mount("/static", _FreshFiles(directory=STATIC, check_dir=False)),
            *logins.routes(),
            *ApiProxy(upstream, clients, monitor, logins).routes(),
        ],
        middleware=[guard],
        exception_handlers={RefusedError: _refused, HTTPException: _http_error},
        lifespan=lifespan,
    )


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


async def _http_error(_request: Request, error: Exception) -> Response:
    assert isinstance(error, HTTPException)
    return error_answer(error.status_code, error.detail)
