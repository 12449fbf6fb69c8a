"""The outermost middleware: gives each request an id, logs it and counts it."""

import itertools
import os
from time import perf_counter
from typing import TYPE_CHECKING

from starlette.types import ASGIApp, Message, Receive, Scope, Send

from torc_framework.server.http.access_log import log_request

if TYPE_CHECKING:
    from torc_framework.server.http.request_metrics import RequestMetrics


class SpanMiddleware:
    """Adds ``X-Span-ID`` to each response; logs and counts the request with the time until its response began."""

    def __init__(self, app: ASGIApp, request_metrics: "RequestMetrics") -> None:
        self._app = app
        self._request_metrics = request_metrics
        self._prefix = os.urandom(4).hex()
        self._numbers = itertools.count(1)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one request."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        span = f"{self._prefix}-{next(self._numbers):08x}".encode()
        begun = perf_counter()

        async def send_named(message: Message) -> None:
            if message["type"] == "http.response.start":
                seconds = perf_counter() - begun
                self._request_metrics.record(scope, message["status"], seconds)
                log_request(scope, span, message["status"], seconds)
                message["headers"] = [*message.get("headers", ()), (b"x-span-id", span)]
            await send(message)

        await self._app(scope, receive, send_named)
