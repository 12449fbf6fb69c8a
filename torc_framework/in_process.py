"""Reads without a server: a command calls the functions of the server's endpoints itself, on the database file.

Making a server takes longer than most reads. A read needs none of it but the functions of the endpoints and the store,
which read a consistent state also while servers write to the same file. Everything else (changes, streams, a database
that has to be made or migrated first) is sent to an embedded server, which is started for the first such request.
"""

import contextlib
import threading
from collections.abc import Callable, Iterator, Mapping
from functools import cache
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Unpack
from urllib.parse import parse_qs, unquote

from torc_framework.client.calls.base import DEFAULT_TIMEOUT_S
from torc_framework.client.http.address import query_string
from torc_framework.client.http.transport import Transport
from torc_framework.errors import ApiError

if TYPE_CHECKING:
    from torc_framework.client.http.connection import Connection, HttpResponse
    from torc_framework.client.http.request_sender import RequestOptions
    from torc_framework.server.dispatch.endpoint import Endpoint
    from torc_framework.store.database.base import Database

_PARAMETER: Final = "{"


class InProcessReads:
    """Carries out the reads of one command in its own process, and sends other requests to a server.

    It has the methods of `Transport`, and may be used from several threads at once.

    Args:
        database: The open database.
        start_server: Starts a server on the same database and returns its base URL; called at most once.
    """

    def __init__(self, database: "Database", start_server: Callable[[], str]) -> None:
        self._database = database
        self._start_server = start_server
        self._transport: Transport | None = None
        self._lock = threading.Lock()

    @property
    def url(self) -> str:
        """The name of the database, for messages."""
        return self._database.name

    @property
    def environment(self) -> Mapping[str, str]:
        """Environment variables with which another process uses the server."""
        return self._server.environment

    @property
    def _server(self) -> Transport:
        """The connections to the server, which is started for the first of them."""
        with self._lock:
            if self._transport is None:
                self._transport = Transport(self._start_server(), timeout=DEFAULT_TIMEOUT_S)
            return self._transport

    def request(self, method: str, path: str, **options: "Unpack[RequestOptions]") -> bytes:
        """Return the body of a successful response; for arguments and errors see `Transport.request`."""
        found = _endpoints().find(path) if method == "GET" and options.get("body") is None else None
        if found is None:
            return self._server.request(method, path, **options)
        endpoint, parameters = found
        with _api_errors():
            return _response(self._database, endpoint, parameters, query_string(options.get("query")))

    def begin(
        self, path: str, *, query: dict[str, Any] | None, headers: str, timeout: float
    ) -> "tuple[Connection, HttpResponse]":
        """Request a response that does not end, of the server; see `Transport.begin`."""
        return self._server.begin(path, query=query, headers=headers, timeout=timeout)

    def save(
        self, path: str, *, query: dict[str, Any] | None, write: Callable[[bytes], object], timeout: float
    ) -> "HttpResponse":
        """Pass the body of a large response of the server on as it arrives; see `Transport.save`."""
        return self._server.save(path, query=query, write=write, timeout=timeout)

    def close(self) -> None:
        """Close the database, and the connections to the server if there are any."""
        self._database.close()
        if self._transport is not None:
            self._transport.close()


def open_to_read(path: Path) -> "Database | None":
    """Return a database that this program can read as it is, open; None for any other, which a server has to judge."""
    if not path.is_file():
        return None
    from torc_framework.store.database.sqlite import SqliteDatabase

    return SqliteDatabase.opened_to_read(str(path))


class _Endpoints:
    """The endpoints that read; their modules are imported until one of them reads the path that is asked for."""

    def __init__(self) -> None:
        from torc_framework.server.routes.reads import read_endpoints

        self._next = read_endpoints()
        self._known: list[Endpoint] = []
        self._lock = threading.Lock()

    def find(self, path: str) -> "tuple[Endpoint, dict[str, str]] | None":
        """Return the endpoint that reads a path, and the texts of the path's parameters; None if there is none."""
        with self._lock:
            for endpoint in chain(self._known, self._import_more()):
                if (parameters := _parameters(endpoint.path, path)) is not None:
                    return endpoint, parameters
        return None

    def _import_more(self) -> "Iterator[Endpoint]":
        for endpoint in self._next:
            self._known.append(endpoint)
            yield endpoint


_endpoints: Final = cache(_Endpoints)


def _parameters(declared: str, path: str) -> dict[str, str] | None:
    """Return the texts of the parameters of a path that was declared so; None if it was not."""
    parts, given = declared.split("/"), path.split("/")
    if len(parts) != len(given):
        return None
    pairs = list(zip(parts, given, strict=True))
    if all(part == text or (part.startswith(_PARAMETER) and text) for part, text in pairs):
        return {part[1:-1]: unquote(text) for part, text in pairs if part.startswith(_PARAMETER)}
    return None


def _response(database: "Database", endpoint: "Endpoint", parameters: Mapping[str, str], query: str) -> bytes:
    """Return the response of an endpoint as JSON, as the server makes it for a caller without restrictions."""
    import msgspec

    from torc_framework.server.dispatch.endpoint import endpoint_name
    from torc_framework.server.dispatch.parameters import parse_path, parse_query
    from torc_framework.server.http.endpoint_calls import EndpointCall
    from torc_framework.server.http.endpoint_results import SlicedObject

    ids, words = parse_path(parameters)
    values = parse_query(
        endpoint_name(endpoint), endpoint.query, parse_qs(query.removeprefix("?"), keep_blank_values=True)
    )
    with database.read() as tx:
        content = endpoint.function(tx, EndpointCall(ids, values, None, words))
        if isinstance(content, SlicedObject):
            content = {name: _whole(value) for name, value in content.fields.items()}
        return msgspec.json.encode(content, enc_hook=str)


def _whole(value: Any) -> Any:
    """Return a field of a `SlicedObject`: a list that is given as its slices becomes one list."""
    return [item for part in value for item in part] if isinstance(value, Iterator) else value


@contextlib.contextmanager
def _api_errors() -> Iterator[None]:
    """Raise the errors with which the server refuses a request as the client raises them."""
    from torc_framework.server.http.endpoint_results import STATUS_OF, RequestError

    try:
        yield
    except RequestError as error:
        raise _api_error(error.status, error) from error
    except (*STATUS_OF,) as error:
        status = next(status for kind, status in STATUS_OF.items() if isinstance(error, kind))
        raise _api_error(status, error) from error


def _api_error(status: int, error: Exception) -> ApiError:
    body = {"error": {"message": str(error)}, "errorNum": status, "errorMessage": str(error), "code": status}
    return ApiError(status, str(error), body)
