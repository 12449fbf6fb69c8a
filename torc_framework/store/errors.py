"""What the store refuses, and why."""

from torc_framework.errors import OperatorError, TorcError, UserError


class StoreError(TorcError):
    """The store refused a request; nothing was changed."""


class NotFoundError(StoreError):
    """No record has this id."""

    def __init__(self, kind: str, record_id: int | str) -> None:
        self.kind, self.record_id = kind, record_id
        super().__init__(f"{kind} not found with ID: {record_id}")


class RuleError(StoreError):
    """The request breaks a rule of the workflow's life."""


class ConflictError(StoreError):
    """Somebody else was first."""


class ForbiddenError(StoreError):
    """The caller has no right to it."""


class DatabaseError(OperatorError):
    """The database cannot be used."""

    exit_status = UserError.exit_status


class DatabaseGoneError(DatabaseError):
    """The file of the database was deleted or replaced; nothing is read or written until it is back."""


class DatabaseBusyError(DatabaseError):
    """Another process keeps the database; trying again later may help."""
