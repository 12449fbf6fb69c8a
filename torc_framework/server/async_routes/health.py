"""``GET /health``: whether the server can use its database, for load balancers, service managers and people."""

import asyncio
from typing import Final

import anyio.to_thread
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from torc_framework import __version__
from torc_framework.models.responses import Health as State
from torc_framework.server.http.responses import json_response
from torc_framework.server.settings import API_PREFIX
from torc_framework.store.database.base import Database
from torc_framework.store.runs.counts import check_readable

CHECK_TIMEOUT_S: Final = 5.0
"""Seconds within which the database must answer a small query."""


class HealthRoutes:
    """The route of health checks."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def routes(self) -> list[Route]:
        """Return the routes."""
        return [Route(path, self.health, methods=["GET"]) for path in ("/health", f"{API_PREFIX}/health")]

    async def health(self, _request: Request) -> Response:
        """Answer with status 200 if the database can be used, otherwise with 503 and the reason."""
        try:
            async with asyncio.timeout(CHECK_TIMEOUT_S):
                await anyio.to_thread.run_sync(self._ask, abandon_on_cancel=True)
        except TimeoutError:
            return _answer(f"no answer within {CHECK_TIMEOUT_S:g} s")
        except Exception as error:  # any failure of the database is what this route reports
            return _answer(str(error))
        return _answer(None)

    def _ask(self) -> None:
        self._database.check()
        with self._database.read() as tx:
            check_readable(tx)


def _answer(fault: str | None) -> Response:
    status = "ok" if fault is None else "unavailable"
    return json_response(State(status, fault or "ok", __version__), 200 if fault is None else 503)
