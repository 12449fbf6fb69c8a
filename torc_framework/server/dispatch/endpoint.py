"""Declarations of endpoints: method, path, parameters, permission, and a function on a transaction.

The function gets a transaction and an `EndpointCall` and returns the content of the response. It runs in a thread,
inside the transaction, which is committed when it returns. `dispatch.handlers` does the rest in the same way for all
endpoints, and `dispatch.openapi` makes the OpenAPI document from the same declarations.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from attrs import Factory, field, frozen

from torc_framework.server.auth.permissions import Permission
from torc_framework.server.http.endpoint_calls import MAX_LIMIT, EndpointCall, Parameter
from torc_framework.server.http.endpoint_results import SlicedObject
from torc_framework.store.database.base import Database
from torc_framework.store.database.sql import Tx
from torc_framework.store.records.kind import PageRequest

EndpointFunction = Callable[[Tx, EndpointCall], Any]
"""Carries out a call inside a transaction; returns the content of the response."""
EndpointTag = Callable[[Tx, EndpointCall], str]
"""Returns a text for a call, inside its transaction."""


@frozen
class Endpoint:
    """One endpoint.

    Attributes:
        method: HTTP method.
        path: Path below the API's prefix, with parameters in braces.
        function: Carries out a call.
        changes: The function may change the database; otherwise its transaction is read-only.
        query: Query parameters by name.
        body: Class of the body; None if the endpoint does not read the body.
        partial: Required fields of the body may be absent.
        response: Class of the response's content, for the OpenAPI document; it is not enforced.
        tags: Groups in the OpenAPI document.
        permission: Who may call the endpoint.
        afterwards: Called with the database after the commit, before the response is sent. The endpoint has no body.
        tag: Returns a text that changes whenever the content does, apart from the parameters of the call. It becomes
            the header ``ETag``; a request that has it in ``If-None-Match`` is answered with 304 (RFC 9110, 13.1.2).
        has_any_size: The size of the content has no limit and is not known before it is made.
        summary: Effect of the endpoint in one line, for the OpenAPI document.
    """

    method: str
    path: str
    function: EndpointFunction
    changes: bool = False
    query: Mapping[str, Parameter] = Factory(dict)
    body: type[Any] | None = None
    partial: bool = False
    response: Any = None
    tags: Sequence[str] = field(default=("workflows",))
    permission: Permission = field(kw_only=True)
    afterwards: Callable[[Database], None] | None = field(default=None, kw_only=True)
    tag: EndpointTag | None = field(default=None, kw_only=True)
    has_any_size: bool = field(default=False, kw_only=True)
    summary: str = field(default="", kw_only=True)


def page_request(call: EndpointCall) -> PageRequest:
    """Return the part of a list that a call asks for."""
    query = call.query
    return PageRequest(
        query["offset"],
        min(query["limit"], MAX_LIMIT),
        query.get("sort_by"),
        bool(query.get("reverse_sort")),
        query.get("after_id"),
        call.allowed_bytes,
    )


def page(items: list[Any], offset: int, total: int) -> SlicedObject:
    """Return one page of a list in the shape that Torc's clients expect."""
    return SlicedObject(
        {
            "items": items,
            "offset": offset,
            "max_limit": MAX_LIMIT,
            "count": len(items),
            "total_count": total,
            "has_more": offset + len(items) < total,
        }
    )


def endpoint_name(endpoint: Endpoint) -> str:
    """Return the name of an endpoint for the workers that carry out requests with large bodies."""
    return f"{endpoint.method} {endpoint.path}"
