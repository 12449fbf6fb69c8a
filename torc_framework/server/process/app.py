"""The ASGI application of the server: all endpoints, the middleware around them, and the responses to exceptions."""

import logging
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response
from starlette.routing import Route

from torc_framework import __version__
from torc_framework.models.api_version import version_text
from torc_framework.server.async_routes.api_document import api_document_routes
from torc_framework.server.async_routes.event_stream import EventStreamRoutes
from torc_framework.server.async_routes.health import HealthRoutes
from torc_framework.server.async_routes.metrics import MetricsRoutes
from torc_framework.server.async_routes.runner_api import RunnerApi
from torc_framework.server.async_routes.waiting_calls import WaitingCalls
from torc_framework.server.auth.middleware import add_authentication
from torc_framework.server.dispatch.change_queue import ChangeQueue
from torc_framework.server.dispatch.handlers import endpoint_routes
from torc_framework.server.dispatch.indexed_router import IndexedRouter
from torc_framework.server.dispatch.large_bodies import LargeBodyPool
from torc_framework.server.http.access_log import log_events
from torc_framework.server.http.answer_room import MIB, AnswerRoom
from torc_framework.server.http.body_limits import BodyLimitMiddleware
from torc_framework.server.http.endpoint_results import STATUS_OF, RequestError
from torc_framework.server.http.request_metrics import RequestMetrics
from torc_framework.server.http.responses import (
    error_response,
    json_response,
    request_error_response,
    store_error_response,
)
from torc_framework.server.http.span_middleware import SpanMiddleware
from torc_framework.server.process.deletion_thread import DeletionThread
from torc_framework.server.routes.table import all_endpoints
from torc_framework.server.settings import API_PREFIX, ServerSettings
from torc_framework.store.database.base import Database
from torc_framework.store.database.opening import open_database
from torc_framework.system.processes import NO_THREAD_MESSAGE, SHORTAGE_ADVICE

_log = logging.getLogger("torc.server")


def create_app(settings: ServerSettings, database: Database | None = None) -> Starlette:
    """Return the application for one database.

    Args:
        database: An open database; by default that of the settings is opened.

    Raises:
        DatabaseError: the database cannot be opened.
    """
    database = database or open_database(settings.database)
    log_events(database)
    waiting_calls = WaitingCalls(database)
    deletions = DeletionThread(database)
    changes = ChangeQueue(database)

    @asynccontextmanager
    async def lifespan(_app: Starlette) -> AsyncIterator[None]:
        deletions.start()
        yield
        deletions.close()
        waiting_calls.close()
        large_bodies.close()
        changes.close()
        database.close()

    room = AnswerRoom(settings.limits.unread_mib_per_address * MIB)
    streams = EventStreamRoutes(database, waiting_calls, settings.limits, room)
    request_metrics = RequestMetrics()
    metrics = MetricsRoutes(database, waiting_calls, request_metrics, is_open=settings.open_metrics)
    large_bodies = LargeBodyPool(database, is_shared=settings.parent_fd is None)
    plain = (RunnerApi(database, changes, waiting_calls, large_bodies), streams, metrics, HealthRoutes(database))
    app = Starlette(
        routes=[
            *(route for part in plain for route in part.routes()),
            Route(f"{API_PREFIX}/ping", _ping),
            Route(f"{API_PREFIX}/version", _version),
            *api_document_routes(),
            *endpoint_routes(database, all_endpoints(), large_bodies, changes),
        ],
        lifespan=lifespan,
    )
    app.router = IndexedRouter(app.router)
    app.state.waiting_calls = waiting_calls
    app.state.answer_room = room
    request_metrics.add_routes(app.routes)
    for kind in STATUS_OF:
        app.add_exception_handler(kind, store_error_response)
    app.add_exception_handler(RequestError, request_error_response)
    app.add_exception_handler(HTTPException, _http_error)
    app.add_exception_handler(ClientDisconnect, _disconnected)
    app.add_exception_handler(RuntimeError, _out_of_threads)
    app.add_exception_handler(Exception, _internal_error)
    add_authentication(app, settings, database)
    app.add_middleware(BodyLimitMiddleware, limits=settings.limits)
    app.add_middleware(SpanMiddleware, request_metrics=request_metrics)
    return app


async def _ping(_request: Request) -> Response:
    return json_response({"status": "ok"})


async def _version(_request: Request) -> Response:
    return json_response(version_text(__version__))


def _http_error(_request: Request, error: Exception) -> Response:
    assert isinstance(error, HTTPException)
    return error_response(error.status_code, str(error.detail))


def _disconnected(_request: Request, _error: Exception) -> Response:
    return error_response(400, "the request ended before it was complete")  # the client no longer reads it


async def _out_of_threads(_request: Request, error: Exception) -> Response:
    """Answer a request for which no thread could be started; a coroutine, because a function would need a thread."""
    if str(error) != NO_THREAD_MESSAGE:
        raise error
    _log.error("%s", error)
    return error_response(503, f"the server {error}; {SHORTAGE_ADVICE}")


def _internal_error(request: Request, error: Exception) -> Response:
    """Log an unexpected exception and answer with status 500."""
    _log.error("%s %s failed", request.method, request.url.path, exc_info=error)
    return error_response(500, "An internal error occurred")
