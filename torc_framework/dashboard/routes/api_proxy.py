"""The route that passes requests of the page on to the server's API, and its answers back, both as streams."""

import re
from collections.abc import AsyncIterator
from typing import Final
from urllib.parse import unquote

import httpx2
from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response
from starlette.routing import Route

from torc_framework.dashboard.access.guard import session_of
from torc_framework.dashboard.access.login import LoginRoutes
from torc_framework.dashboard.access.sessions import PersonUsage
from torc_framework.dashboard.http.limits import API_BODY_BYTES, API_REQUESTS, API_REQUESTS_OF_PERSON
from torc_framework.dashboard.http.streams import EndingStream
from torc_framework.dashboard.upstream.http_client import HttpClients
from torc_framework.dashboard.upstream.monitor import ServerMonitor
from torc_framework.monitoring.identity import UpstreamServer
from torc_framework.monitoring.refusals import RefusedError

_METHODS: Final = ["GET", "HEAD", "POST", "PUT", "PATCH", "DELETE"]
_SENT: Final = ("accept", "content-type", "if-none-match")
"""Headers of requests that are passed on. The reader's cookies are not."""
_RETURNED: Final = (
    "content-type",
    "content-length",
    "content-disposition",
    "etag",
    "cache-control",
    "retry-after",
)
"""Headers of answers that are passed back. The server's cookies, challenges and addresses are not."""
_PATH: Final = re.compile(r"[A-Za-z0-9._~!$&'()*+,;=:@%-]+(?:/[A-Za-z0-9._~!$&'()*+,;=:@%-]+)*")
_MAX_PATH: Final = 4_000
_STREAM: Final = re.compile(r"workflows/[^/]+/events/stream")


class ApiProxy:
    """Passes requests on to the server, with the reader's identity."""

    def __init__(
        self, upstream: UpstreamServer, clients: HttpClients, monitor: ServerMonitor, logins: LoginRoutes
    ) -> None:
        self._upstream, self._clients, self._monitor, self._logins = upstream, clients, monitor, logins
        self._requests = 0

    def routes(self) -> list[Route]:
        """Return the route."""
        return [Route("/api/{path:path}", self.pass_on, methods=_METHODS)]

    async def pass_on(self, request: Request) -> Response:
        """Pass one request on."""
        session = session_of(request)
        headers = {name: request.headers[name] for name in _SENT if name in request.headers}
        headers |= {"accept-encoding": "identity", **self._logins.require_identity(session).headers}
        url = self._url(request)
        body = None
        if request.method not in ("GET", "HEAD"):
            body = _limited_body(request)
            if "content-length" in request.headers:
                headers["content-length"] = request.headers["content-length"]
        client = self._clients.of(self._upstream)
        outgoing = client.build_request(request.method, url, headers=headers, content=body)
        usage = session.usage
        self._begin(usage)
        try:
            answer = await client.send(outgoing, stream=True)
        except (httpx2.HTTPError, ClientDisconnect) as error:
            self._end(usage)
            raise self._refusal(error) from error
        except BaseException:
            self._end(usage)
            raise
        if answer.status_code == 401:  # the password was changed, or is required now
            session.identity = None
            self._monitor.look_now()
        returned = {name: answer.headers[name] for name in _RETURNED if name in answer.headers}

        async def end() -> None:
            self._end(usage)
            await answer.aclose()

        return EndingStream(self._body(answer), end, status=answer.status_code, headers=returned)

    def _url(self, request: Request) -> str:
        """Return the address at the server.

        Raises:
            RefusedError: the path leads elsewhere than to an endpoint, or is that of a stream (404).
        """
        if self._upstream.base is None:
            raise RefusedError(502, "the server is stopped", upstream="away")
        raw = request.scope["raw_path"].decode("latin-1").partition("?")[0]
        path = raw.partition("/api/")[2]
        segments = unquote(path).split("/")
        if len(path) > _MAX_PATH or not _PATH.fullmatch(path) or not {".", "..", ""}.isdisjoint(segments):
            raise RefusedError(404, "there is no such endpoint")
        if _STREAM.fullmatch(path):
            raise RefusedError(404, "events come from dash/events?workflows=ID, which readers share")
        query = request.scope["query_string"].decode("latin-1")
        return f"{self._upstream.base}/{path}" + (f"?{query}" if query else "")

    def _begin(self, usage: PersonUsage) -> None:
        if usage.api_requests >= API_REQUESTS_OF_PERSON or self._requests >= API_REQUESTS:
            raise RefusedError(429, "too many requests at once")
        usage.api_requests += 1
        self._requests += 1

    def _end(self, usage: PersonUsage) -> None:
        usage.api_requests -= 1
        self._requests -= 1

    def _refusal(self, error: Exception) -> RefusedError:
        """Return the error to answer with instead of one of a request that was passed on."""
        if isinstance(error, ClientDisconnect):
            return RefusedError(400, "the request is incomplete")
        self._monitor.look_now()
        if isinstance(error, httpx2.TimeoutException) and not isinstance(error, httpx2.ConnectTimeout):
            return RefusedError(504, "the server did not answer in time", upstream="away")
        return RefusedError(502, f"no Torc server answers at {self._upstream.shown}", upstream="away")

    async def _body(self, answer: httpx2.Response) -> AsyncIterator[bytes]:
        try:
            async for piece in answer.aiter_raw():
                yield piece
        except httpx2.HTTPError:
            self._monitor.look_now()
            raise


async def _limited_body(request: Request) -> AsyncIterator[bytes]:
    """Yield the body of a request.

    Raises:
        RefusedError: it is too long (413).
    """
    size = 0
    async for piece in request.stream():
        size += len(piece)
        if size > API_BODY_BYTES:
            raise RefusedError(413, f"the body of a request has {API_BODY_BYTES} bytes at most")
        yield piece
