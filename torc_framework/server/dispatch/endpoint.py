"""An endpoint is one declaration: method, path, what it takes, and a function on a transaction.

The function gets a `EndpointCall` and returns what is to be answered; it runs in a thread, inside a
transaction that is committed when it returns. Everything it does not say is the same for all:
reading the body, parsing ids and query, encoding the answer, naming what was ignored. The OpenAPI
document is made from the same declarations.
"""

from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from typing import Any, Final

from attrs import Factory, field, fields_dict, frozen, has
from fastapi import FastAPI
from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import Response

from torc_framework.server.auth.permissions import Permission
from torc_framework.server.dispatch.large_bodies import LargeBodyPool
from torc_framework.server.http.access_log import note
from torc_framework.server.http.request_bodies import parse_body, parse_json
from torc_framework.server.http.responses import RequestError, SlicedObject, answer, sliced_response
from torc_framework.server.settings import API_PREFIX
from torc_framework.store.access.checks import UNRESTRICTED_CALLER, Caller
from torc_framework.store.database.base import Database
from torc_framework.store.database.sql import Tx

MAX_LIMIT: Final = 10_000
"""Most items of one page; a larger ``limit`` means this."""
_TRUTH: Final = {"true": True, "1": True, "false": False, "0": False}


@frozen
class Parameter:
    """One query parameter.

    Attributes:
        kind: int, str or bool; ``repeated`` ones are lists of it.
        default: Its value when it is not given.
        required: It must be given.
        least: Smallest value of a number.
    """

    kind: type[Any]
    default: Any = None
    required: bool = False
    repeated: bool = False
    least: int = -(2**63)

    def parse(self, name: str, text: str) -> Any:
        """Return the value that a text stands for.

        Raises:
            RequestError: it stands for none.
        """
        if self.kind is bool:
            if text.lower() not in _TRUTH:
                raise RequestError(f"query {name!r}: {text!r} is neither true nor false")
            return _TRUTH[text.lower()]
        if self.kind is int:
            return _integer(f"query {name!r}", text, self.least)
        return text


FORCE: Final = {"force": Parameter(bool, default=True)}
"""Whether pending and running jobs are deleted, too. Torc's clients cannot say it, and expect that they are."""
PAGE_PARAMETERS: Final = {
    "offset": Parameter(int, 0, least=0),
    "limit": Parameter(int, MAX_LIMIT, least=0),
}
"""Query parameters of everything that comes in pages."""


@frozen
class EndpointCall:
    """One request, parsed.

    Attributes:
        ids: Numbers in the path: ``id``, and whatever is named so, such as ``run_id``.
        words: Everything else in the path.
        caller: Who asks.
    """

    ids: Mapping[str, int]
    query: Mapping[str, Any]
    body: Any
    words: Mapping[str, str] = Factory(dict)
    caller: Caller = UNRESTRICTED_CALLER

    @property
    def id(self) -> int:
        """The id in the path."""
        return self.ids["id"]


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


_OWNERS: Final = {"/workflows/{id}/": "workflow_id", "/access_groups/{id}/": "group_id"}
"""Fields of bodies that the path says."""


def mount(app: FastAPI, database: Database, endpoints: Iterable[Endpoint], large: LargeBodyPool) -> None:
    """Add endpoints to the application.

    Args:
        large: Carries out requests with large bodies.
    """
    for endpoint in endpoints:
        app.add_api_route(
            API_PREFIX + endpoint.path,
            _handler(endpoint, database, large),
            methods=[endpoint.method],
            response_model=None,
            include_in_schema=False,
        )


def endpoint_name(endpoint: Endpoint) -> str:
    """Return the name of an endpoint among operations."""
    return f"{endpoint.method} {endpoint.path}"


def _handler(endpoint: Endpoint, database: Database, large: LargeBodyPool) -> Callable[[Request], Awaitable[Response]]:
    do, name = endpoint_operation(endpoint, database), endpoint_name(endpoint)

    async def handle(request: Request) -> Response:
        body = b"" if endpoint.body is None else await request.body()
        if large.takes(body):
            return await large.carry_out(name, request, body)
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
            values = _placed(parse_json(sent), endpoint, ids)
            body, unknown = parse_body(endpoint.body, values, complete=not endpoint.partial)
            ignored += unknown
        call = EndpointCall(ids, query, body, words, caller_of(request))
        with begin() as tx:
            if call.caller.is_restricted:
                endpoint.scope.check(tx, call)
            content = endpoint.work(tx, call)
            if isinstance(content, SlicedObject):
                return sliced_response(content, _warning(ignored))
        if endpoint.changes:
            _note_ids(request, endpoint, content)
        return answer(content, headers=_warning(ignored))

    return do


_IDS: Final = ("id", "workflow_id", "job_id")


def _note_ids(request: Request, endpoint: Endpoint, content: Any) -> None:
    """Let the line of a change say what was made or changed."""
    values = content if isinstance(content, dict) else {name: getattr(content, name, None) for name in _IDS}
    found = {name: values[name] for name in _IDS if values.get(name) is not None}
    own = endpoint.path.split("/")[1].removesuffix("s") + "_id"
    facts: dict[str, Any] = {own if name == "id" else name: value for name, value in found.items()}
    note(request, **facts)


def caller_of(request: Request) -> Caller:
    """Return who asks."""
    caller: Caller = request.scope.get("torc.caller", UNRESTRICTED_CALLER)
    return caller


def workflow_id_of(request: Request) -> int:
    """Return the id in the path of a plain route.

    Raises:
        RequestError: no record can have it.
    """
    return _integer("path: id", str(request.path_params["id"]))


def is_integer_parameter(name: str) -> bool:
    """Say whether a name in a path stands for a number."""
    return name in ("id", "limit") or name.endswith("_id")


def _parse_path(request: Request) -> tuple[dict[str, int], dict[str, str]]:
    """Return the numbers and the words of a path."""
    ids: dict[str, int] = {}
    words: dict[str, str] = {}
    for name, text in request.path_params.items():
        if is_integer_parameter(name):
            ids[name] = _integer(f"path: {name}", text)
        else:
            words[name] = text
    return ids, words


def _placed(sent: Any, endpoint: Endpoint, ids: Mapping[str, int]) -> Any:
    """Return a body that says what it belongs to, if the path says so."""
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


def _integer(what: str, text: str, least: int = -(2**63)) -> int:
    try:
        number = int(text)
    except ValueError:
        raise RequestError(f"{what}: {text[:100]!r} is not an integer") from None
    if not least <= number < 2**63:
        raise RequestError(f"{what}: {text[:100]} is out of range")
    return number


def _warning(ignored: list[str]) -> dict[str, str] | None:
    """Return the header that names what was ignored."""
    if not ignored:
        return None
    names = ", ".join(sorted(set(ignored)))[:500]
    printable = "".join(letter if " " <= letter <= "~" and letter != '"' else "?" for letter in names)
    return {"Warning": f'299 torc "ignored: {printable}"'}
