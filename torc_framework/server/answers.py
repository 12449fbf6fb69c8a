"""What every answer has in common: JSON, and errors as Torc's clients expect them."""

import logging
from typing import Any, Final

import msgspec
from starlette.requests import Request
from starlette.responses import Response

from torc_framework.models.answers import DATABASE_GONE
from torc_framework.store.errors import (
    ConflictError,
    DatabaseError,
    DatabaseGoneError,
    ForbiddenError,
    NotFoundError,
    RuleError,
)
from torc_framework.store.full import is_full

_log = logging.getLogger("torc.server")
_encode: Final = msgspec.json.Encoder(enc_hook=str).encode

STATUS_OF: Final[dict[type[Exception], int]] = {
    ForbiddenError: 403,
    NotFoundError: 404,
    ConflictError: 409,
    RuleError: 422,
    DatabaseError: 503,
}
"""HTTP statuses of what the store refuses."""


_WORDS: Final[dict[type[Exception], str]] = {ForbiddenError: "Forbidden", DatabaseGoneError: DATABASE_GONE}
"""What stands in the field ``error`` of some refusals, for programs."""
INSUFFICIENT_STORAGE: Final = 507
"""Status of what the database has no room for (RFC 4918, section 11.5)."""
MAKE_ROOM: Final = "nothing of this request was stored; make room where the database is, and runners go on"


class RequestError(Exception):
    """The request itself is wrong: it does not parse, or does not fit."""

    def __init__(self, message: str, status: int = 400) -> None:
        self.status = status
        super().__init__(message)


def answer(content: Any, status: int = 200, headers: dict[str, str] | None = None) -> Response:
    """Return a JSON answer."""
    return Response(_encode(content), status, headers, media_type="application/json")


def error_answer(status: int, message: str, **more: Any) -> Response:
    """Return an error with its reason, in the shape of Torc's error bodies."""
    body = {"error": {"message": message, **more}, "errorNum": status, "errorMessage": message, "code": status}
    return answer(body, status)


def refused(_request: Request, error: Exception) -> Response:
    """Answer what the store refused."""
    if isinstance(error, DatabaseError) and is_full(error):
        _log.error("%s", error)
        return error_answer(INSUFFICIENT_STORAGE, f"{error}; {MAKE_ROOM}")
    status = next(status for kind, status in STATUS_OF.items() if isinstance(error, kind))
    if status >= 500:
        _log.error("%s", error, exc_info=error)
    word = next((word for kind, word in _WORDS.items() if isinstance(error, kind)), None)
    return error_answer(status, str(error), **({} if word is None else {"error": word}))


def misunderstood(_request: Request, error: Exception) -> Response:
    """Answer a request that is wrong in itself."""
    return error_answer(getattr(error, "status", 400), str(error))
