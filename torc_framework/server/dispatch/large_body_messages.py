"""The messages between the server and a worker process for large bodies."""

from typing import Any, Final

from attrs import Factory, define, frozen

from torc_framework.store.database.base import CommittedChanges

WRITE_LOCK_WANTED: Final = "turn"
"""Message: the worker wants to change the database, and waits for its turn."""
WRITE_LOCK_RELEASED: Final = "turn is over"


@frozen
class LargeBodyOrder:
    """One request: the name of its operation, and what of its scope the operation looks at."""

    operation: str
    scope: dict[str, Any]


@define
class LargeBodyResult:
    """What became of a request: its answer, the facts for its line in the log, and what was committed."""

    status: int
    headers: dict[str, str]
    content: bytes
    facts: dict[str, Any]
    committed: CommittedChanges = Factory(CommittedChanges)


def too_costly_message(size: int) -> str:
    """Return why a body of this size is refused that takes too much memory or time."""
    return (
        f"the body of {size} bytes holds so many small values that it takes too much memory or time; send less at once"
    )
