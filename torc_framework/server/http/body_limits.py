"""Limits on request bodies: their size, and the pace at which they arrive.

A request beyond a limit is answered with an error, so that a client that stalls or floods the server does not occupy
memory, a thread or a transaction.
"""

import asyncio
from collections.abc import MutableMapping
from typing import TYPE_CHECKING, Any, Final

from starlette.types import ASGIApp, Message, Receive, Scope, Send

from torc_framework.server.http.responses import RequestError, error_response
from torc_framework.server.settings import LimitSettings

if TYPE_CHECKING:
    pass


MIN_BYTES_PER_S: Final = 1024
"""Average bytes per second at which a body must arrive, after an initial allowance of two times ``stall_secs``."""
_NUL: Final = b"\\u0000"


class BodyLimitMiddleware:
    """Refuses bodies that are too large or arrive too slowly, and addresses with the character NUL."""

    def __init__(self, app: ASGIApp, limits: LimitSettings) -> None:
        self._app = app
        self._most = limits.body_mib * 1024 * 1024
        self._stall_s = limits.stall_secs
        self._too_large = f"the request is larger than {limits.body_mib} MiB"

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one request."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
        elif b"%00" in scope["query_string"] or b"%00" in scope["raw_path"]:
            await error_response(400, "address: a text cannot hold the character NUL (%00)")(scope, receive, send)
        elif _announced(scope) > self._most:
            await error_response(413, self._too_large)(scope, receive, send)
        else:
            await self._app(scope, *self._guarded(receive, send))

    def _guarded(self, receive: Receive, send: Send) -> tuple[Receive, Send]:
        seen, whole, stalled = 0, False, False
        loop = asyncio.get_running_loop()
        begun = loop.time()

        async def guarded() -> Message:
            nonlocal seen, whole, stalled
            if whole:
                return await receive()  # the wait for the end of the connection has no limit
            left = begun + 2 * self._stall_s + seen / MIN_BYTES_PER_S - loop.time()
            try:
                async with asyncio.timeout(min(self._stall_s, left)):
                    message = await receive()
            except TimeoutError:
                stalled = True
                waited = f"nothing of the request's body arrived for {self._stall_s:g} s, after {seen} bytes"
                slow = f"the request's body arrived too slowly, {seen} bytes in {loop.time() - begun:.1f} s"
                raise RequestError(slow if left < self._stall_s else waited, 408) from None
            seen += len(message.get("body", b""))
            whole = not message.get("more_body", False)
            if seen > self._most:
                raise RequestError(self._too_large, 413)
            return message

        async def closing(message: Message) -> None:
            if stalled and message["type"] == "http.response.start":
                message["headers"] = [*message.get("headers", ()), (b"connection", b"close")]
            await send(message)

        return guarded, closing


def refuse_nul(body: bytes) -> None:
    """Refuse a JSON document with the character NUL in a text: neither PostgreSQL nor a command line can hold it.

    Raises:
        RequestError: the document has one.
    """
    place = body.find(_NUL)
    while place >= 0:
        before = place
        while body[before - 1 : before] == b"\\":
            before -= 1
        if (place - before) % 2 == 0:  # else the backslash itself is escaped
            raise RequestError("body: a text cannot hold the character NUL (\\u0000)")
        place = body.find(_NUL, place + 1)


def _announced(scope: MutableMapping[str, Any]) -> int:
    value = next((value for name, value in scope["headers"] if name == b"content-length"), b"0")
    return int(value) if value.isdigit() and len(value) < 19 else 0
