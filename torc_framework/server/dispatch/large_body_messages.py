"""The messages between the server and a worker process for large bodies."""

from typing import Any, Final

from attrs import Factory, define, frozen

from torc_framework.store.database.base import CommittedChanges

WRITE_LOCK_WANTED: Final = "turn"
"""Message from the worker: it waits for the server's write lock on the database. Any reply grants the lock."""
WRITE_LOCK_RELEASED: Final = "turn is over"
"""Message from the worker: the lock that it was granted is free again."""


@frozen
class LargeBodyOrder:
    """A request for a worker.

    Attributes:
        operation: Name of the operation.
        scope: The parts of the ASGI scope that operations use.
        spooled_bytes: Size of a body that is passed as an open file; None if the body itself follows.
    """

    operation: str
    scope: dict[str, Any]
    spooled_bytes: int | None = None


@define
class LargeBodyResult:
    """The result of a request: its response, the fields of its log line, and the changes that it committed."""

    status: int
    headers: dict[str, str]
    content: bytes
    facts: dict[str, Any]
    committed: CommittedChanges = Factory(CommittedChanges)


def too_costly_message(size: int) -> str:
    """Return the error message for a body of this size that takes too much memory or time."""
    return (
        f"the body of {size} bytes holds so many small values that it takes too much memory or time; send less at once"
    )
