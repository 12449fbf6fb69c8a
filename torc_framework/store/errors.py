"""The exceptions of the store."""

from torc_framework.errors import ExitStatus, OperatorError, TorcError, UserError


class StoreError(TorcError):
    """The store refused a request; nothing was changed."""


class NotFoundError(StoreError):
    """There is no record of this id."""

    def __init__(self, kind: str, record_id: int | str) -> None:
        self.kind, self.record_id = kind, record_id
        super().__init__(f"{kind} not found with ID: {record_id}")


class RuleError(StoreError):
    """The request is not allowed in the present state, or a value in it is not allowed."""


class ConflictError(StoreError):
    """Another request has changed what this one relies on, or a record of the same name exists."""


class ForbiddenError(StoreError):
    """The caller has no permission."""


class DatabaseError(OperatorError):
    """The database cannot be used."""

    exit_status = UserError.exit_status


class DatabaseAwayError(DatabaseError):
    """The server of the database does not answer; a later try may succeed."""

    exit_status = ExitStatus.UNAVAILABLE


class DatabaseGoneError(DatabaseError):
    """The file of the database was deleted or replaced; until it is back, the store neither reads nor writes."""


class DatabaseBusyError(DatabaseError):
    """Another process has been writing for too long; a later try may succeed."""


class LargeReadError(Exception):
    """A read would take more memory than its caller allows; it may be repeated with as much as it takes.

    Args:
        size: About the bytes of the records that it would hold.
    """

    def __init__(self, size: int) -> None:
        self.size = size
        super().__init__(f"the records have about {size} bytes")
