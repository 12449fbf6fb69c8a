"""The router finds for each request what Starlette's own router finds."""

import asyncio
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from starlette.requests import Request
from starlette.responses import PlainTextResponse
from starlette.routing import Route, Router

from torc_framework.server.dispatch.indexed_router import IndexedRouter
from torc_framework.server.process.app import create_app
from torc_framework.server.settings import API_PREFIX, ServerSettings

WORDS = ("workflows", "jobs", "files", "views", "events", "exchange", "metrics", "7", "x", "", "%2F", "7:8")
Routers = tuple[Router, IndexedRouter, list[Route]]


@pytest.fixture(scope="module")
def routers(tmp_path_factory: pytest.TempPathFactory) -> Routers:
    """Both routers with the server's routes, each of which answers with its own number and its parameters."""
    app = create_app(ServerSettings(database=str(tmp_path_factory.mktemp("routing") / "torc.db")))
    declared = [route for route in app.routes if isinstance(route, Route)]
    assert isinstance(app.router, IndexedRouter)

    def answer(number: int) -> Any:
        async def handle(request: Request) -> PlainTextResponse:
            return PlainTextResponse(f"{number} {sorted(request.path_params.items())}")

        return handle

    routes = [
        Route(route.path, answer(number), methods=sorted(route.methods or ())) for number, route in enumerate(declared)
    ]
    app.state.waiting_calls.close()
    return Router(routes), IndexedRouter(Router(routes)), declared


def response(router: Router, method: str, path: str) -> tuple[int, bytes]:
    """Return status and body of a router's response."""
    sent: list[dict[str, Any]] = []

    async def send(message: Any) -> None:
        sent.append(message)

    async def receive() -> Any:
        return {"type": "http.request"}

    scope = {"type": "http", "method": method, "path": path, "headers": [], "query_string": b"", "root_path": ""}
    asyncio.run(router(scope, receive, send))
    return sent[0]["status"], b"".join(message.get("body", b"") for message in sent)


def test_every_route_is_found(routers: Routers) -> None:
    """With words and numbers in place of its parameters."""
    plain, indexed, declared = routers
    for route in declared:
        for word in ("7", "jobs", "x y"):
            path = "/".join(word if part.startswith("{") else part for part in route.path.split("/"))
            for method in sorted(route.methods or ()):
                assert response(indexed, method, path) == response(plain, method, path), (method, path)


@given(
    method=st.sampled_from(("GET", "POST", "PUT", "PATCH", "DELETE", "HEAD", "OPTIONS")),
    begin=st.sampled_from((API_PREFIX, "", "/torc-service", "/x/v1")),
    words=st.lists(st.sampled_from(WORDS), max_size=6),
)
def test_any_path_gets_the_same_answer(routers: Routers, method: str, begin: str, words: list[str]) -> None:
    """Also one that no route takes, one with a slash at its end, and one with another method."""
    plain, indexed, _ = routers
    path = "/".join([begin, *words]) or "/"
    assert response(indexed, method, path) == response(plain, method, path)


def test_a_parameter_may_be_a_word_of_another_route() -> None:
    """The routes' order decides."""

    def handle(request: Request) -> PlainTextResponse:
        return PlainTextResponse(str(request.path_params))

    paths = ("/a/b/names/{name}", "/a/b/names/all", "/a/b/{kind}/all")
    plain = Router([Route(path, handle) for path in paths])
    for path in ("/a/b/names/all", "/a/b/names/x", "/a/b/x/all", "/a/b/x/y", "/a/b"):
        assert response(IndexedRouter(plain), "GET", path) == response(plain, "GET", path)


def test_many_parameters_of_a_query_are_parsed_in_a_moment(tmp_path: Path) -> None:
    """As many as an address may hold; the first ones are named in the refusal."""
    from starlette.testclient import TestClient

    with TestClient(
        create_app(ServerSettings(database=str(tmp_path / "torc.db"))), base_url="http://localhost"
    ) as client:
        answer = client.get(f"{API_PREFIX}/workflows?" + "&".join(f"a{n}=1" for n in range(5_000)))
    assert answer.status_code == 422
    assert answer.json()["error"]["message"].startswith("query 'a0'; 'a1'; ")
    assert "; and 4980 more: unknown here; known: name, user, " in answer.json()["error"]["message"]
