"""JSON responses: plain ones, large ones that are encoded in slices, and errors in the shape of Torc's error bodies."""

import logging
import tempfile
from collections.abc import AsyncIterator, Callable, Generator, Iterator, Mapping
from typing import IO, Any, Final

import msgspec
from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import Response, StreamingResponse
from starlette.types import Receive, Scope, Send

from torc_framework.models.responses import DATABASE_GONE
from torc_framework.server.http.endpoint_results import STATUS_OF, RequestError, SlicedObject
from torc_framework.store.database.disk_full import is_disk_full
from torc_framework.store.errors import DatabaseError, DatabaseGoneError, ForbiddenError

_log = logging.getLogger("torc.server")
_encode: Final = msgspec.json.Encoder(enc_hook=str).encode

_ERROR_CODES: Final[dict[type[Exception], str]] = {ForbiddenError: "Forbidden", DatabaseGoneError: DATABASE_GONE}
"""Value of the field ``error.error`` for some errors, for programs to compare."""
INSUFFICIENT_STORAGE: Final = 507
"""HTTP status when the database, or the folder for temporary files, is full (RFC 4918, section 11.5)."""
OUT_OF_SPACE_ADVICE: Final = "nothing of this request was stored; make room where the database is, and runners go on"


MAX_IN_MEMORY_BYTES: Final = 1024 * 1024
"""Largest response that is kept in memory while the client reads it; a larger one is kept in a temporary file."""
_PIECE_BYTES: Final = 64 * 1024
_ITEMS_AT_ONCE: Final = 64


def json_response(content: Any, status: int = 200, headers: dict[str, str] | None = None) -> Response:
    """Return a JSON response."""
    return Response(_encode(content), status, headers, media_type="application/json")


class SpooledResponse(StreamingResponse):
    """A response from a temporary file, which is closed when the client has received it or has disconnected.

    Attributes:
        unread: Bytes that the client has not taken.
        on_read: Called with the number of bytes of each piece that the client has taken.
    """

    def __init__(self, file: IO[bytes], size: int, headers: Mapping[str, str], status: int = 200) -> None:
        self.unread = size
        self.on_read: Callable[[int], None] | None = None
        self._file = file
        super().__init__(self._pieces(), status, headers={**headers, "Content-Length": str(size)})

    async def _pieces(self) -> AsyncIterator[bytes]:
        while piece := await run_in_threadpool(self._file.read, _PIECE_BYTES):
            yield piece
            self.unread -= len(piece)
            if self.on_read is not None:
                self.on_read(len(piece))

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Send the file as fast as the client reads."""
        try:
            await super().__call__(scope, receive, send)
        finally:
            self._file.close()


def kept_in_file(response: Response, most: int = MAX_IN_MEMORY_BYTES) -> Response:
    """Return a response whose body is in a temporary file if it has more bytes than these.

    Raises:
        RequestError: the folder for temporary files is full (status 507).
    """
    if isinstance(response, SpooledResponse) or len(response.body) <= most:
        return response
    file = tempfile.TemporaryFile()  # noqa: SIM115 - SpooledResponse closes it
    try:
        file.write(response.body)
        file.seek(0)
    except OSError as error:
        file.close()
        raise _no_space(error) from error
    headers = {name: value for name, value in response.headers.items() if name != "content-length"}
    return SpooledResponse(file, len(response.body), headers, response.status_code)


def _no_space(error: OSError) -> RequestError:
    folder = tempfile.gettempdir()
    return RequestError(
        f"no space for the response in {folder}: {error.strerror}; free some there, or request less at once",
        INSUFFICIENT_STORAGE,
    )


def sliced_response(content: SlicedObject, headers: Mapping[str, str] | None = None) -> Response:
    """Return a JSON response of any size that keeps at most `MAX_IN_MEMORY_BYTES` in memory while the client reads it.

    Raises:
        RequestError: the folder for temporary files is full (status 507).
    """
    file = tempfile.SpooledTemporaryFile(MAX_IN_MEMORY_BYTES)  # noqa: SIM115 - SpooledResponse closes the file of a large response
    counts: dict[str, int] = {}
    try:
        for piece in _pieces(content.fields, counts):
            file.write(piece)
        size = file.tell()
        file.seek(0)
        if content.counts_header is not None:
            listed = ",".join(f"{name}={count}" for name, count in counts.items())
            headers = {**(headers or {}), content.counts_header: listed}
        if size > MAX_IN_MEMORY_BYTES:
            return SpooledResponse(file, size, {**(headers or {}), "Content-Type": "application/json"})
        whole = file.read()
    except OSError as error:
        file.close()
        raise _no_space(error) from error
    except BaseException:
        file.close()
        raise
    file.close()
    return Response(whole, headers=headers, media_type="application/json")


def _pieces(fields: Mapping[str, Any], counts: dict[str, int]) -> Iterator[bytes | memoryview]:
    """Yield the JSON text of an object; add the length of each list to ``counts`` when its text is complete."""
    before = b"{"
    for name, value in fields.items():
        yield before + _encode(name) + b":"
        before = b","
        if isinstance(value, list):
            slices = (value[start : start + _ITEMS_AT_ONCE] for start in range(0, len(value), _ITEMS_AT_ONCE))
            counts[name] = yield from _list(slices)
        elif isinstance(value, Iterator):
            counts[name] = yield from _list(value)
        else:
            yield _encode(value)
    yield b"}"


def _list(slices: Iterator[list[Any]]) -> Generator[bytes | memoryview, None, int]:
    """Yield the JSON text of a list that is given as slices, none of them empty; return its length."""
    count = 0
    for part in slices:
        yield b"," if count else b"["
        yield memoryview(_encode(part))[1:-1]
        count += len(part)
    yield b"]" if count else b"[]"
    return count


def error_response(status: int, message: str, **more: Any) -> Response:
    """Return an error response in the shape of Torc's error bodies."""
    body = {"error": {"message": message, **more}, "errorNum": status, "errorMessage": message, "code": status}
    return json_response(body, status)


def store_error_response(_request: Request, error: Exception) -> Response:
    """Return the response to a request that the store refused or could not carry out."""
    if isinstance(error, DatabaseError) and is_disk_full(error):
        _log.error("%s", error)
        return error_response(INSUFFICIENT_STORAGE, f"{error}; {OUT_OF_SPACE_ADVICE}")
    status = next(status for kind, status in STATUS_OF.items() if isinstance(error, kind))
    if status >= 500:
        _log.error("%s", error, exc_info=error)
    code = next((code for kind, code in _ERROR_CODES.items() if isinstance(error, kind)), None)
    return error_response(status, str(error), **({} if code is None else {"error": code}))


def request_error_response(_request: Request, error: Exception) -> Response:
    """Return the response to a request that raised `RequestError`."""
    return error_response(getattr(error, "status", 400), str(error))
