"""Answers in JSON, and errors as answers."""

from typing import Any

import msgspec
from starlette.responses import Response


def json_answer(values: Any, status: int = 200) -> Response:
    """Return JSON values as an answer that no cache keeps."""
    content = msgspec.json.encode(values, enc_hook=str)
    return Response(content, status, {"Cache-Control": "no-store"}, media_type="application/json")


def error_answer(status: int, message: str, **facts: Any) -> Response:
    """Return an error in the shape of the server's errors."""
    return json_answer({"error": {"message": message}, **facts}, status)
