"""An endpoint is one declaration: method, path, what it takes, and a function on a transaction.

The function gets a `EndpointCall` and returns what is to be answered; it runs in a thread, inside a
transaction that is committed when it returns. Everything it does not say is the same for all:
reading the body, parsing ids and query, encoding the answer, naming what was ignored. The OpenAPI
document is made from the same declarations.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from attrs import Factory, field, frozen

from torc_framework.server.auth.permissions import Permission
from torc_framework.server.http.endpoint_calls import MAX_LIMIT, EndpointCall, Parameter
from torc_framework.server.http.responses import SlicedObject
from torc_framework.store.database.sql import Tx

EndpointFunction = Callable[[Tx, EndpointCall], Any]


@frozen
class Endpoint:
    """One endpoint.

    Attributes:
        summary: What it does, in one line.
        scope: How the workflow that the caller must have a right to is found; see ``scopes``.
        changes: It may change something.
        body: Class of its body's values; None if the body is not looked at.
        partial: Required fields of the body may be absent.
        answers: Class of what it answers, for the documentation; nothing checks that it does.
    """

    method: str
    path: str
    work: EndpointFunction
    changes: bool = False
    query: Mapping[str, Parameter] = Factory(dict)
    body: type[Any] | None = None
    partial: bool = False
    answers: Any = None
    tags: Sequence[str] = field(default=("workflows",))
    scope: Permission = field(kw_only=True)
    summary: str = field(default="", kw_only=True)


def page(items: list[Any], offset: int, total: int) -> SlicedObject:
    """Return one page as Torc's clients expect it."""
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
    """Return the name of an endpoint among operations."""
    return f"{endpoint.method} {endpoint.path}"
