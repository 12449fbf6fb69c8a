"""Refusals of requests, as exceptions with the status of the answer."""

from typing import Any

import msgspec
from starlette.responses import Response


class RefusedError(Exception):
    """The request is refused.

    Args:
        status: HTTP status of the answer.
        message: The reason, for the reader.
        facts: Further fields of the answer.
    """

    def __init__(self, status: int, message: str, **facts: Any) -> None:
        self.status, self.facts = status, facts
        super().__init__(message)


def json_answer(values: Any, status: int = 200) -> Response:
    """Return JSON values as an answer that no cache keeps."""
    content = msgspec.json.encode(values, enc_hook=str)
    return Response(content, status, {"Cache-Control": "no-store"}, media_type="application/json")


def error_answer(status: int, message: str, **facts: Any) -> Response:
    """Return an error in the shape of the server's errors."""
    return json_answer({"error": {"message": message}, **facts}, status)
