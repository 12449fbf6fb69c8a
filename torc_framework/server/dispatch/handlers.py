"""Request handlers of endpoints, made from their declarations.

A handler reads the body, validates path, query and body, checks the permission, runs the endpoint's function inside a
transaction, and encodes the response. Unknown fields and parameters are ignored and named in the header ``Warning``.
"""

from collections.abc import Awaitable, Callable, Iterable, Mapping
from typing import Any, Final

from attrs import fields_dict, has
from fastapi import FastAPI
from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import Response

from torc_framework.server.dispatch.endpoint import Endpoint, endpoint_name
from torc_framework.server.dispatch.large_bodies import LargeBodyPool
from torc_framework.server.http.access_log import add_log_fields
from torc_framework.server.http.endpoint_calls import EndpointCall, caller_of, is_integer_parameter, parse_integer
from torc_framework.server.http.request_bodies import parse_body, parse_json
from torc_framework.server.http.responses import RequestError, SlicedObject, json_response, sliced_response
from torc_framework.server.settings import API_PREFIX
from torc_framework.store.database.base import Database

_OWNERS: Final = {"/workflows/{id}/": "workflow_id", "/access_groups/{id}/": "group_id"}
"""Field of the body that is filled from the path's ``id``, by the begin of the path."""


def mount(app: FastAPI, database: Database, endpoints: Iterable[Endpoint], large_bodies: LargeBodyPool) -> None:
    """Add endpoints to the application.

    Args:
        app: The application.
        database: The database that their functions use.
        endpoints: The declarations.
        large_bodies: The workers that carry out requests with large bodies.
    """
    for endpoint in endpoints:
        app.add_api_route(
            API_PREFIX + endpoint.path,
            _handler(endpoint, database, large_bodies),
            methods=[endpoint.method],
            response_model=None,
            include_in_schema=False,
        )


def _handler(
    endpoint: Endpoint, database: Database, large_bodies: LargeBodyPool
) -> Callable[[Request], Awaitable[Response]]:
    do, name = endpoint_operation(endpoint, database), endpoint_name(endpoint)

    async def handle(request: Request) -> Response:
        body = b"" if endpoint.body is None else await request.body()
        if large_bodies.takes(body):
            return await large_bodies.carry_out(name, request, body)
        return await run_in_threadpool(do, request, body)

    return handle


def endpoint_operation(endpoint: Endpoint, database: Database) -> Callable[[Request, bytes], Response]:
    """Return the function that carries out a request to an endpoint, given the request's body."""
    begin = database.write if endpoint.changes else database.read

    def do(request: Request, sent: bytes) -> Response:
        ids, words = _parse_path(request)
        query, ignored = _parse_query(endpoint, request)
        body = None
        if endpoint.body is not None:
            values = _with_owner_id(parse_json(sent), endpoint, ids)
            body, unknown = parse_body(endpoint.body, values, complete=not endpoint.partial)
            ignored += unknown
        call = EndpointCall(ids, query, body, words, caller_of(request))
        with begin() as tx:
            if call.caller.is_restricted:
                endpoint.permission.check(tx, call)
            content = endpoint.function(tx, call)
            if isinstance(content, SlicedObject):
                return sliced_response(content, _ignored_header(ignored))
        if endpoint.changes:
            _log_ids(request, endpoint, content)
        return json_response(content, headers=_ignored_header(ignored))

    return do


_IDS: Final = ("id", "workflow_id", "job_id")


def _log_ids(request: Request, endpoint: Endpoint, content: Any) -> None:
    """Add the ids in a response to the log line of its request."""
    values = content if isinstance(content, dict) else {name: getattr(content, name, None) for name in _IDS}
    found = {name: values[name] for name in _IDS if values.get(name) is not None}
    own = endpoint.path.split("/")[1].removesuffix("s") + "_id"
    facts: dict[str, Any] = {own if name == "id" else name: value for name, value in found.items()}
    add_log_fields(request, **facts)


def _parse_path(request: Request) -> tuple[dict[str, int], dict[str, str]]:
    """Return the integer parameters and the text parameters of a path."""
    ids: dict[str, int] = {}
    words: dict[str, str] = {}
    for name, text in request.path_params.items():
        if is_integer_parameter(name):
            ids[name] = parse_integer(f"path: {name}", text)
        else:
            words[name] = text
    return ids, words


def _with_owner_id(sent: Any, endpoint: Endpoint, ids: Mapping[str, int]) -> Any:
    """Return the body with the id of the workflow or group in the path, if the body's class has a field for it."""
    owner = next((name for path, name in _OWNERS.items() if endpoint.path.startswith(path)), None)
    kind = endpoint.body
    names = fields_dict(kind) if kind is not None and has(kind) else {}
    return {**sent, owner: ids["id"]} if owner in names and isinstance(sent, dict) else sent


def _parse_query(endpoint: Endpoint, request: Request) -> tuple[dict[str, Any], list[str]]:
    """Return the values of all parameters, and the names of unknown ones."""
    given = request.query_params
    query: dict[str, Any] = {}
    for name, parameter in endpoint.query.items():
        texts = given.getlist(name)
        if texts:
            values = [parameter.parse(name, text) for text in texts]
            query[name] = values if parameter.repeated else values[-1]
        elif parameter.required:
            raise RequestError(f"query {name!r} is missing")
        else:
            query[name] = parameter.default
    return query, [name for name in given if name not in endpoint.query]


def _ignored_header(ignored: list[str]) -> dict[str, str] | None:
    """Return the header that names the ignored fields and parameters; None without any."""
    if not ignored:
        return None
    names = ", ".join(sorted(set(ignored)))[:500]
    printable = "".join(letter if " " <= letter <= "~" and letter != '"' else "?" for letter in names)
    return {"Warning": f'299 torc "ignored: {printable}"'}
