"""The end of a server that is idle: it has no requests, waiting calls and streams among them, for some time."""

import asyncio
import time
from collections.abc import Callable
from typing import Final

from attrs import frozen
from starlette.types import ASGIApp, Receive, Scope, Send

CHECK_S: Final = 15.0
"""Seconds between two checks; a server that becomes idle for less than that checks as often as that."""


@frozen
class IdleEnd:
    """When a server ends by itself.

    Attributes:
        idle_s: Seconds without a request after which it ends.
        begin_end: Called then; returns whether the server may end. After False it is called again at the next check.
    """

    idle_s: float
    begin_end: Callable[[], bool]


class RequestActivity:
    """The application of a server, with the number of requests in progress and the time of the last one."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app
        self._in_progress = 0
        self._last_end = time.monotonic()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one request."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        self._in_progress += 1
        try:
            await self._app(scope, receive, send)
        finally:
            self._in_progress -= 1
            self._last_end = time.monotonic()

    async def end_when_idle(self, idle_end: IdleEnd, stop: Callable[[], None]) -> None:
        """Wait until the server is idle and may end; then stop it."""
        while not (self._is_idle_for(idle_end.idle_s) and idle_end.begin_end()):
            await asyncio.sleep(min(idle_end.idle_s, CHECK_S))
        stop()

    def _is_idle_for(self, seconds: float) -> bool:
        return not self._in_progress and time.monotonic() - self._last_end >= seconds
