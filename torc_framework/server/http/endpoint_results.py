"""What the function of an endpoint returns or raises, apart from HTTP: long content, and errors with their statuses."""

from collections.abc import Mapping
from typing import Any, Final

from attrs import frozen

from torc_framework.store.errors import ConflictError, DatabaseError, ForbiddenError, NotFoundError, RuleError

STATUS_OF: Final[dict[type[Exception], int]] = {
    ForbiddenError: 403,
    NotFoundError: 404,
    ConflictError: 409,
    RuleError: 422,
    DatabaseError: 503,
}
"""HTTP status for each class of error that the store raises."""


class RequestError(Exception):
    """The server refuses a request before the store sees it: it is malformed, too large, or one too many.

    Args:
        message: The reason, for the client.
        status: HTTP status.
    """

    def __init__(self, message: str, status: int = 400) -> None:
        self.status = status
        super().__init__(message)


@frozen
class SlicedObject:
    """A JSON object whose lists may be long and are encoded slice by slice.

    Attributes:
        fields: Its fields; a list may be given as an iterator of its slices.
        counts_header: Name of a response header for the lengths of its lists; None for no such header.
    """

    fields: Mapping[str, Any]
    counts_header: str | None = None
