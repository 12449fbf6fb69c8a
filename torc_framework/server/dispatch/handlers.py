"""Request handlers of endpoints, made from their declarations.

A handler reads the body, validates path, query and body, checks the permission, runs the endpoint's function inside a
transaction, and encodes the response. Unknown fields are ignored, and named in the header ``Warning`` and in the log.
"""

from collections.abc import Awaitable, Callable, Iterable, Mapping
from contextlib import AbstractContextManager
from typing import Any, Final, cast

from attrs import fields_dict, has
from starlette.concurrency import run_in_threadpool
from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response
from starlette.routing import Route

from torc_framework.server.auth.permissions import RecordOfWorkflow
from torc_framework.server.dispatch.asgi_endpoint import AsgiEndpoint
from torc_framework.server.dispatch.change_queue import ChangeQueue
from torc_framework.server.dispatch.endpoint import Endpoint, endpoint_name
from torc_framework.server.dispatch.large_bodies import LargeBodyPool
from torc_framework.server.dispatch.parameters import parse_path, parse_query, sent_parameters
from torc_framework.server.http.access_log import add_log_fields
from torc_framework.server.http.answer_room import SMALL_BYTES, UNKNOWN_BYTES, AnswerRoom, address_of
from torc_framework.server.http.endpoint_calls import EndpointCall, caller_of
from torc_framework.server.http.endpoint_results import SlicedObject
from torc_framework.server.http.entity_tags import NOT_MODIFIED, entity_tag, has_tag
from torc_framework.server.http.ignored_fields import IGNORED, IgnoredFields, ignored_header
from torc_framework.server.http.request_bodies import parse_body, parse_json
from torc_framework.server.http.responses import MAX_IN_MEMORY_BYTES, json_response, kept_in_file, sliced_response
from torc_framework.server.settings import API_PREFIX
from torc_framework.store.database.base import Database
from torc_framework.store.database.sql import Tx
from torc_framework.store.errors import LargeReadError

_OWNERS: Final = {"/workflows/{id}/": "workflow_id", "/access_groups/{id}/": "group_id"}
"""Field of the body that is filled from the path's ``id``, by the begin of the path."""


PARSED_IN_LOOP_BYTES: Final = 16 * 1024
"""Largest body that is parsed in the event loop, which takes less than a millisecond."""


def endpoint_routes(
    database: Database, endpoints: Iterable[Endpoint], large_bodies: LargeBodyPool, changes: ChangeQueue
) -> list[Route]:
    """Return the routes of endpoints.

    Args:
        database: The database that their functions use.
        endpoints: The declarations.
        large_bodies: The workers that carry out requests with large bodies.
        changes: The queue of the changes.
    """
    routes, ignored_fields = [], IgnoredFields()
    for endpoint in endpoints:
        handler = (
            _change_handler(endpoint, database, changes) if endpoint.changes else _read_handler(endpoint, database)
        )
        handle = _with_body(endpoint, handler, large_bodies, ignored_fields)
        routes.append(Route(API_PREFIX + endpoint.path, AsgiEndpoint(handle), methods=[endpoint.method]))
    return routes


_Handler = Callable[[Request, bytes], Awaitable[Response]]


def _with_body(
    endpoint: Endpoint, handler: _Handler, large_bodies: LargeBodyPool, ignored_fields: IgnoredFields
) -> Callable[[Request], Awaitable[Response]]:
    """Return a handler that reads the body and passes a large one to a worker."""
    name = endpoint_name(endpoint)

    async def handle(request: Request) -> Response:
        body = b"" if endpoint.body is None else await request.body()
        if large_bodies.takes(body):
            response = await large_bodies.carry_out(name, request, body)
        else:
            response = await handler(request, body)
        if IGNORED in response.headers:
            ignored_fields.count(request, response)
        return response

    return handle


def _read_handler(endpoint: Endpoint, database: Database) -> _Handler:
    do = endpoint_operation(endpoint, database)

    def read(request: Request, body: bytes, allowed_bytes: int | None) -> Response:
        return kept_in_file(do(request, body, allowed_bytes))

    async def handle(request: Request, body: bytes) -> Response:
        room: AnswerRoom = request.app.state.answer_room
        address = address_of(request.scope)
        size = UNKNOWN_BYTES if endpoint.has_any_size else SMALL_BYTES
        while True:
            if size > SMALL_BYTES:
                await request.body()  # `is_disconnected` looks at what follows
            async with room.place(address, size):
                if size > SMALL_BYTES and await request.is_disconnected():
                    raise ClientDisconnect
                if size > MAX_IN_MEMORY_BYTES:
                    room.check_unread(address)
                try:
                    return await run_in_threadpool(read, request, body, None if endpoint.has_any_size else size)
                except LargeReadError as error:
                    size = error.size

    return handle


def _change_handler(endpoint: Endpoint, database: Database, changes: ChangeQueue) -> _Handler:
    async def handle(request: Request, body: bytes) -> Response:
        if len(body) <= PARSED_IN_LOOP_BYTES:
            first = _parse_call(endpoint, request, body)
        else:
            first = await run_in_threadpool(_parse_call, endpoint, request, body)
        parsed = [first]

        def change(tx: Tx) -> Response:
            call, ignored = parsed.pop() if parsed else _parse_call(endpoint, request, body)
            return _response(endpoint, tx, request, call, ignored)

        response = cast("Response", await changes.carry_out(change, endpoint.permission.concerns(first[0])))
        if endpoint.afterwards is not None:
            await run_in_threadpool(endpoint.afterwards, database)
        return response

    return handle


def endpoint_operation(endpoint: Endpoint, database: Database) -> Callable[..., Response]:
    """Return the function that carries out a request to an endpoint, given the request's body.

    A third argument is the size up to which records may be read; beyond it, the function raises `LargeReadError`.
    """

    def do(request: Request, sent: bytes, allowed_bytes: int | None = None) -> Response:
        call, ignored = _parse_call(endpoint, request, sent, allowed_bytes)
        with _write(endpoint, database, call) if endpoint.changes else database.read() as tx:
            return _response(endpoint, tx, request, call, ignored)

    return do


def _write(endpoint: Endpoint, database: Database, call: EndpointCall) -> AbstractContextManager[Tx]:
    """Begin the change that a request asks for."""
    concerned = endpoint.permission.concerns(call)
    if isinstance(concerned, RecordOfWorkflow):
        concerned = database.workflow_of(concerned.kind.table, concerned.id)
    return database.write(concerned)


def _parse_call(
    endpoint: Endpoint, request: Request, sent: bytes, allowed_bytes: int | None = None
) -> tuple[EndpointCall, list[str]]:
    """Return the parsed request, and the names of fields that are ignored."""
    ids, words = parse_path(request.path_params)
    query = parse_query(endpoint_name(endpoint), endpoint.query, sent_parameters(request.scope))
    body: Any = None
    ignored: list[str] = []
    if endpoint.body is not None:
        values = _with_owner_id(parse_json(sent), endpoint, ids)
        body, ignored = parse_body(endpoint.body, values, complete=not endpoint.partial)
    return EndpointCall(ids, query, body, words, caller_of(request), allowed_bytes), ignored


def _response(endpoint: Endpoint, tx: Tx, request: Request, call: EndpointCall, ignored: list[str]) -> Response:
    """Return the response to a parsed request, which the endpoint's function carries out in a transaction."""
    if call.caller.is_restricted:
        endpoint.permission.check(tx, call)
    headers = ignored_header(ignored) if ignored else {}
    if endpoint.tag is not None:
        tag = entity_tag(endpoint.tag(tx, call))
        headers |= {"ETag": tag, "Cache-Control": "private, no-cache"}
        if has_tag(request.headers.get("If-None-Match"), tag):
            return Response(status_code=NOT_MODIFIED, headers=headers)
    content = endpoint.function(tx, call)
    if isinstance(content, SlicedObject):
        return sliced_response(content, headers)
    if endpoint.changes:
        _log_ids(request, endpoint, content)
    return json_response(content, headers=headers)


_IDS: Final = ("id", "workflow_id", "job_id")


def _log_ids(request: Request, endpoint: Endpoint, content: Any) -> None:
    """Add the ids in a response to the log line of its request."""
    values = content if isinstance(content, dict) else {name: getattr(content, name, None) for name in _IDS}
    found = {name: values[name] for name in _IDS if values.get(name) is not None}
    own = endpoint.path.split("/")[1].removesuffix("s") + "_id"
    facts: dict[str, Any] = {own if name == "id" else name: value for name, value in found.items()}
    add_log_fields(request, **facts)


def _with_owner_id(sent: Any, endpoint: Endpoint, ids: Mapping[str, int]) -> Any:
    """Return the body with the id of the workflow or group in the path, if the body's class has a field for it."""
    owner = next((name for path, name in _OWNERS.items() if endpoint.path.startswith(path)), None)
    kind = endpoint.body
    names = fields_dict(kind) if kind is not None and has(kind) else {}
    return {**sent, owner: ids["id"]} if owner in names and isinstance(sent, dict) else sent
