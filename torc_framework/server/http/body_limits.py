"""Limits on request bodies: their size, and the pace at which they arrive.

A request beyond a limit is answered with an error, so that a client that stalls or floods the server does not occupy
memory, a thread or a transaction.
"""

import asyncio
from collections.abc import MutableMapping
from typing import Any, Final

from starlette.types import ASGIApp, Message, Receive, Scope, Send

from torc_framework.models.plan_parts import PLAN_LINES, PLAN_PATH
from torc_framework.server.http.endpoint_results import RequestError
from torc_framework.server.http.responses import error_response
from torc_framework.server.settings import LimitSettings

_TOO_LARGE: Final = "the request is larger than {} MiB"
MIN_BYTES_PER_S: Final = 1024
"""Average bytes per second at which a body must arrive, after an initial allowance of two times ``stall_secs``."""


class BodyLimitMiddleware:
    """Refuses bodies that are too large or arrive too slowly, and addresses with the character NUL."""

    def __init__(self, app: ASGIApp, limits: LimitSettings) -> None:
        self._app = app
        self._limits = limits
        self._stall_s = limits.stall_secs

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one request."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        if b"%00" in scope["query_string"] or b"%00" in scope["raw_path"]:
            await error_response(400, "address: a text cannot hold the character NUL (%00)")(scope, receive, send)
            return
        max_mib = self._limits.plan_mib if _is_plan_in_parts(scope) else self._limits.body_mib
        if _announced_size(scope) > max_mib * 1024 * 1024:
            await error_response(413, _TOO_LARGE.format(max_mib))(scope, receive, send)
        else:
            await self._app(scope, *self._limited(receive, send, max_mib))

    def _limited(self, receive: Receive, send: Send, max_mib: int) -> tuple[Receive, Send]:
        """Return functions that receive a body within the limits and close a stalled connection with the response."""
        received, is_complete, is_stalled = 0, False, False
        loop = asyncio.get_running_loop()
        began = loop.time()

        async def receive_limited() -> Message:
            nonlocal received, is_complete, is_stalled
            if is_complete:
                return await receive()  # the wait for the end of the connection has no limit
            left = began + 2 * self._stall_s + received / MIN_BYTES_PER_S - loop.time()
            try:
                async with asyncio.timeout(min(self._stall_s, left)):
                    message = await receive()
            except TimeoutError:
                is_stalled = True
                waited = f"nothing of the request's body arrived for {self._stall_s:g} s, after {received} bytes"
                slow = f"the request's body arrived too slowly, {received} bytes in {loop.time() - began:.1f} s"
                raise RequestError(slow if left < self._stall_s else waited, 408) from None
            received += len(message.get("body", b""))
            is_complete = not message.get("more_body", False)
            if received > max_mib * 1024 * 1024:
                raise RequestError(_TOO_LARGE.format(max_mib), 413)
            return message

        async def send_closing(message: Message) -> None:
            if is_stalled and message["type"] == "http.response.start":
                message["headers"] = [*message.get("headers", ()), (b"connection", b"close")]
            await send(message)

        return receive_limited, send_closing


def _is_plan_in_parts(scope: MutableMapping[str, Any]) -> bool:
    """Return whether the body is kept in a file; of any other request the whole body is in memory."""
    if not scope["path"].endswith(PLAN_PATH):
        return False
    kind = _header(scope, b"content-type").partition(b";")[0].strip().lower()
    return kind == PLAN_LINES.encode()


def _announced_size(scope: MutableMapping[str, Any]) -> int:
    value = _header(scope, b"content-length")
    return int(value) if value.isdigit() and len(value) < 19 else 0


def _header(scope: MutableMapping[str, Any], wanted: bytes) -> bytes:
    value: bytes
    for name, value in scope["headers"]:  # a generator would take twice as long, in every request
        if name == wanted:
            return value
    return b""
