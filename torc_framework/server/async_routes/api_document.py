"""``GET /openapi.json`` and ``GET /docs``: the OpenAPI document, and a page that shows it in a browser."""

from typing import Final

from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import HTMLResponse, Response
from starlette.routing import Route

from torc_framework.server.dispatch.asgi_endpoint import AsgiEndpoint
from torc_framework.server.http.responses import json_response
from torc_framework.server.routes.table import all_endpoints
from torc_framework.server.settings import API_PREFIX

_PAGE: Final = """<!DOCTYPE html>
<html>
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<link rel="stylesheet" href="https://cdn.jsdelivr.net/npm/swagger-ui-dist@5/swagger-ui.css">
<title>torc - Swagger UI</title>
</head>
<body>
<div id="swagger-ui"></div>
<script src="https://cdn.jsdelivr.net/npm/swagger-ui-dist@5/swagger-ui-bundle.js"></script>
<script>
SwaggerUIBundle({
  url: "openapi.json",
  dom_id: "#swagger-ui",
  deepLinking: true,
  showExtensions: true,
  showCommonExtensions: true,
  presets: [SwaggerUIBundle.presets.apis, SwaggerUIBundle.SwaggerUIStandalonePreset],
});
</script>
</body>
</html>
"""
"""Swagger UI as its documentation shows it ("Installation", section "unpkg"), loaded from a public mirror of npm."""

_ABOVE_API: Final = "../.."
"""The address to which the document's paths are appended, relative to the document (OpenAPI 3, Server Object)."""


def api_document_routes() -> list[Route]:
    """Return the two routes."""
    return [
        Route(f"{API_PREFIX}/openapi.json", AsgiEndpoint(_openapi), methods=["GET"]),
        Route(f"{API_PREFIX}/docs", _docs),
    ]


async def _openapi(request: Request) -> Response:
    """Answer with the document; an embedded server's names the address above the API, without its secret token."""
    return await run_in_threadpool(_document, is_embedded=bool(request.scope.get("root_path")))


def _document(*, is_embedded: bool) -> Response:
    from torc_framework.server.dispatch.openapi import openapi_document

    servers = {"servers": [{"url": _ABOVE_API}]} if is_embedded else {}
    return json_response({**openapi_document(all_endpoints()), **servers})


def _docs(_request: Request) -> Response:
    return HTMLResponse(_PAGE)
