"""Bodies of requests, with a limit on their size."""

from typing import TypeVar

import msgspec
from starlette.requests import ClientDisconnect, Request

from torc_framework.monitoring.refusals import RefusedError

_T = TypeVar("_T")


def has_body(request: Request) -> bool:
    """Return whether a request says that it has a body (RFC 9112, section 6)."""
    return "transfer-encoding" in request.headers or request.headers.get("content-length", "0") != "0"


async def read_body(request: Request, most: int) -> bytes:
    """Return the body of a request.

    Raises:
        RefusedError: it has more than ``most`` bytes (413).
    """
    length = request.headers.get("content-length", "0")
    if not length.isdigit() or int(length) > most:
        raise RefusedError(413, f"the body of a request has {most} bytes at most")
    found = bytearray()
    try:
        async for piece in request.stream():
            found += piece
            if len(found) > most:
                raise RefusedError(413, f"the body of a request has {most} bytes at most")
    except ClientDisconnect as error:
        raise RefusedError(400, "the request is incomplete") from error
    return bytes(found)


async def read_json(request: Request, kind: type[_T], most: int) -> _T:
    """Return the body of a request as a value of a type.

    Raises:
        RefusedError: it is too long (413), or not such a value (400).
    """
    if not request.headers.get("content-type", "").startswith("application/json"):
        raise RefusedError(415, "the body has to be JSON, with Content-Type: application/json")
    content = await read_body(request, most)
    try:
        return msgspec.json.decode(content, type=kind)
    except (msgspec.DecodeError, RecursionError) as error:
        raise RefusedError(400, f"the body is not as expected: {error}") from error
