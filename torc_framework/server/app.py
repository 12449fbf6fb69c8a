"""The ASGI application: every endpoint under one prefix."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from fastapi import APIRouter, FastAPI
from fastapi.exceptions import RequestValidationError
from starlette.requests import Request
from starlette.responses import Response

from torc_framework import __version__
from torc_framework.server.answers import STATUS_OF, RequestError, error_answer, misunderstood, refused
from torc_framework.server.crud import record_router
from torc_framework.server.hot import Hot
from torc_framework.server.middleware import Envelope
from torc_framework.server.settings import API_PREFIX, ServerSettings
from torc_framework.server.waiting import WaitingRoom
from torc_framework.server.workflows import workflow_router
from torc_framework.store.database import Database


def create_app(settings: ServerSettings, database: Database | None = None) -> FastAPI:
    """Return the application for one database.

    Args:
        database: An open database; by default that of the settings is opened.

    Raises:
        DatabaseError: the database cannot be opened.
    """
    database = database or Database.open(settings.database)
    room = WaitingRoom(database)

    @asynccontextmanager
    async def lifespan(_app: FastAPI) -> AsyncIterator[None]:
        yield
        room.close()
        database.close()

    app = FastAPI(
        title="torc",
        version=__version__,
        openapi_url=f"{API_PREFIX}/openapi.json",
        docs_url=f"{API_PREFIX}/docs",
        redoc_url=None,
        lifespan=lifespan,
    )
    app.state.room = room
    app.router.routes[:0] = Hot(database, room).routes()
    router = APIRouter(prefix=API_PREFIX)
    router.include_router(workflow_router(database))
    router.include_router(record_router(database))

    @router.get("/ping")
    async def ping() -> dict[str, str]:
        return {"status": "ok"}

    @router.get("/version")
    async def version() -> str:
        return __version__

    app.include_router(router)
    _answer_errors(app)
    app.add_middleware(Envelope)
    return app


def _answer_errors(app: FastAPI) -> None:
    for kind in STATUS_OF:
        app.add_exception_handler(kind, refused)
    app.add_exception_handler(RequestError, misunderstood)
    app.add_exception_handler(RequestValidationError, _invalid)


def _invalid(_request: Request, error: Exception) -> Response:
    """Answer a path, query or body that does not parse: 400, every finding named."""
    assert isinstance(error, RequestValidationError)
    findings = [f"{'.'.join(map(str, found['loc']))}: {found['msg']}" for found in error.errors()]
    return error_answer(400, "; ".join(findings))
