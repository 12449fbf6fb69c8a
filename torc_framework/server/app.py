"""The ASGI application: every endpoint under one prefix."""

from fastapi import APIRouter, FastAPI

from torc_framework.server.settings import API_PREFIX, ServerSettings


def create_app(settings: ServerSettings) -> FastAPI:
    """Return the application for one database."""
    app = FastAPI(title="torc", openapi_url=f"{API_PREFIX}/openapi.json", docs_url=f"{API_PREFIX}/docs")
    app.state.settings = settings
    router = APIRouter(prefix=API_PREFIX)

    @router.get("/ping")
    def ping() -> dict[str, str]:
        return {"status": "ok"}

    app.include_router(router)
    return app
