"""What is done for every request: an id, and a limit on its size."""

import itertools
import os
from collections.abc import MutableMapping
from time import perf_counter
from typing import Any, Final

from starlette.types import ASGIApp, Message, Receive, Scope, Send

from torc_framework.server.access_log import log_request
from torc_framework.server.answers import error_answer

MAX_BODY_BYTES: Final = 256 * 1024 * 1024
"""Largest request: a plan of some hundred thousand jobs."""


class _TooLargeError(Exception):
    """The body grew beyond the limit while it was read."""


class Envelope:
    """Names each answer by ``X-Span-ID`` and refuses bodies that are too large."""

    def __init__(self, app: ASGIApp, max_body_bytes: int = MAX_BODY_BYTES) -> None:
        self._app = app
        self._limit = max_body_bytes
        self._too_large = error_answer(413, f"the request is larger than {max_body_bytes} bytes")
        self._prefix = os.urandom(4).hex()
        self._numbers = itertools.count(1)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one request."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        span = f"{self._prefix}-{next(self._numbers):08x}".encode()
        started, begun = False, perf_counter()

        async def send_named(message: Message) -> None:
            nonlocal started
            if message["type"] == "http.response.start":
                started = True
                log_request(scope, span, message["status"], perf_counter() - begun)
                message["headers"] = [*message.get("headers", ()), (b"x-span-id", span)]
            await send(message)

        if self._announced(scope) > self._limit:
            await self._too_large(scope, receive, send_named)
            return
        try:
            await self._app(scope, self._counted(receive), send_named)
        except _TooLargeError:
            if not started:
                await self._too_large(scope, receive, send_named)

    @staticmethod
    def _announced(scope: MutableMapping[str, Any]) -> int:
        value = next((value for name, value in scope["headers"] if name == b"content-length"), b"0")
        return int(value) if value.isdigit() else 0

    def _counted(self, receive: Receive) -> Receive:
        seen = 0

        async def counted() -> Message:
            nonlocal seen
            message = await receive()
            seen += len(message.get("body", b""))
            if seen > self._limit:
                raise _TooLargeError
            return message

        return counted
