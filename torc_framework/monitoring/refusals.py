"""Refusals of what a person asked for, as an exception with a status of HTTP."""

from typing import Any


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
