"""Is the server fit to work? ``GET /health``, for load balancers, service managers and people."""

import asyncio
from typing import Final

import anyio.to_thread
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from torc_framework import __version__
from torc_framework.models.responses import Health as State
from torc_framework.server.http.responses import answer
from torc_framework.server.settings import API_PREFIX
from torc_framework.store.database.base import Database
from torc_framework.store.runs.counts import check_readable

CHECK_TIMEOUT_S: Final = 5.0
"""A database that takes longer to answer a small question is not well."""


class HealthRoutes:
    """Asks the database."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def routes(self) -> list[Route]:
        """Return the routes."""
        return [Route(path, self.health, methods=["GET"]) for path in ("/health", f"{API_PREFIX}/health")]

    async def health(self, _request: Request) -> Response:
        """Answer 200 if the database can be used, else 503 with the reason."""
        try:
            async with asyncio.timeout(CHECK_TIMEOUT_S):
                await anyio.to_thread.run_sync(self._ask, abandon_on_cancel=True)
        except TimeoutError:
            return _answer(f"no answer within {CHECK_TIMEOUT_S:g} s")
        except Exception as error:  # whatever it is, it is the answer
            return _answer(str(error))
        return _answer(None)

    def _ask(self) -> None:
        self._database.check()
        with self._database.read() as tx:
            check_readable(tx)


def _answer(fault: str | None) -> Response:
    status = "ok" if fault is None else "unavailable"
    return answer(State(status, fault or "ok", __version__), 200 if fault is None else 503)
