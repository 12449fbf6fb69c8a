"""The base class of the two databases, SQLite and PostgreSQL: transactions, and listeners to what they commit.

A committed change survives a crash of the machine. On SQLite all changes go through one connection, one transaction at
a time, also between processes; on PostgreSQL changes of different workflows do not wait for each other. Changes that
wait together may share a transaction (`group_commit`). Readers have connections of their own, see one state each and do
not wait for a change. `sqlite` and `postgres` have the two subclasses, `opening` the function that opens either.
"""

import contextlib
import threading
from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager
from typing import Any, ClassVar, Final

import sqlalchemy as sa
from attrs import Factory, define

from torc_framework.store.database.group_commit import Change, GroupTransaction, Outcome
from torc_framework.store.database.sql import Tx
from torc_framework.store.errors import DatabaseBusyError, DatabaseError
from torc_framework.store.migrations.upgrade import create_or_migrate

BUSY_TIMEOUT_MS: Final = 30_000
"""How long a transaction that writes waits for another process's."""

NEW_WORKFLOW: Final = 0
"""In place of a workflow's id: a change that creates a workflow, and concerns no other."""

WorkflowListener = Callable[[set[int]], None]
EventListener = Callable[[list[tuple[int, int, str]]], None]


@define
class CommittedChanges:
    """What one or several transactions changed, for the listeners of a `Database`; the attributes are those of `Tx`."""

    workflows_to_wake: set[int] = Factory(set)
    workflows_with_ready_jobs: set[int] = Factory(set)
    workflows_with_events: set[int] = Factory(set)
    events: list[tuple[int, int, str]] = Factory(list)
    transition_counts: Counter[str] = Factory(Counter)


class Database(ABC):
    """One database, open for any number of threads.

    Attributes:
        is_local: No transaction waits for a network, so that a short one may run in an event loop.
        writers: Number of transactions that change the database at the same time through this object.
        source: The path or URL that it was opened with; may hold a password.
        name: Its name in messages; holds no password.
        transition_counts: How many jobs changed their status through this object, by the name of the transition.
    """

    is_local: ClassVar[bool]
    writers: ClassVar[int]

    def __init__(self, source: str, name: str, engine: sa.Engine) -> None:
        self.source = source
        self.name = name
        self._wake_listeners: list[WorkflowListener] = []
        self._ready_listeners: list[WorkflowListener] = []
        self._workflow_event_listeners: list[WorkflowListener] = []
        self._event_listeners: list[EventListener] = []
        self.transition_counts = Counter[str]()
        self._counts_lock = threading.Lock()
        self._engine = engine
        self._writer = engine.connect()

    def _prepare(self) -> None:
        """Bring the tables to the present version; close all connections if that fails."""
        try:
            create_or_migrate(self._writer, self.name, self._schema_transaction)
        except Exception as error:
            self.close()
            if isinstance(error, sa.exc.DBAPIError):
                raise DatabaseError(f"cannot use database {self.name}: {self._driver_message(error)}") from error
            raise
        except BaseException:
            self.close()
            raise

    def close(self) -> None:
        """Close every connection."""
        self._writer.close()
        self._engine.dispose()

    def on_workflows_to_wake(self, listener: WorkflowListener) -> None:
        """Call ``listener`` after each commit with `Tx.workflows_to_wake`, if any, in the thread that committed."""
        self._wake_listeners.append(listener)

    def on_workflows_with_ready_jobs(self, listener: WorkflowListener) -> None:
        """Call ``listener`` after each commit with `Tx.workflows_with_ready_jobs`, if any, likewise."""
        self._ready_listeners.append(listener)

    def on_workflows_with_events(self, listener: WorkflowListener) -> None:
        """Call ``listener`` after each commit with `Tx.workflows_with_events`, if any, in the thread that committed."""
        self._workflow_event_listeners.append(listener)

    def on_stored_events(self, listener: EventListener) -> None:
        """Call ``listener`` after each commit with `Tx.events`, if any, in the thread that committed."""
        self._event_listeners.append(listener)

    @abstractmethod
    def hold_write_lock(self) -> AbstractContextManager[None]:
        """Return a context in which this object begins no change that a child process of the server would wait for."""

    @abstractmethod
    def use_write_lock(self, lock: AbstractContextManager[None]) -> None:
        """Make each further change within ``lock`` instead of this object's own lock, if it has one.

        A child process of the server passes a lock that the server holds for it (`hold_write_lock`).
        """

    def notify_listeners(self, committed: Tx | CommittedChanges) -> None:
        """Call the listeners of this object with what it, or a child process of the server, has committed."""
        if committed.transition_counts:
            with self._counts_lock:
                self.transition_counts.update(committed.transition_counts)
        for workflow_ids, listeners in (
            (committed.workflows_to_wake, self._wake_listeners),
            (committed.workflows_with_ready_jobs, self._ready_listeners),
            (committed.workflows_with_events, self._workflow_event_listeners),
        ):
            if workflow_ids:
                for listener in listeners:
                    listener(workflow_ids)
        if committed.events:
            for event_listener in self._event_listeners:
                event_listener(committed.events)

    @contextlib.contextmanager
    def write(self, workflow_id: int | None = None) -> Iterator[Tx]:
        """Begin a change; commit at the end of the block, roll back if it raises.

        Args:
            workflow_id: The workflow that the change concerns, or `NEW_WORKFLOW`; None if it may concern several, or
                what no workflow owns. On PostgreSQL, changes of different workflows do not wait for each other.

        Raises:
            DatabaseBusyError: another process kept writing for half a minute.
            DatabaseError: the database cannot be reached or written, such as when the disk is full.
            RuleError: a column cannot hold a value.
        """
        with self._writing_connection() as writer, self._write_transaction(writer, workflow_id) as tx:
            yield tx
        self.notify_listeners(tx)

    def write_first_free(
        self, workflow_ids: Sequence[int | None], take: Callable[[int | None], Sequence[Change]]
    ) -> list[Outcome]:
        """Make changes of one workflow in one transaction, each as if it were alone: of the first one that is free.

        A workflow is free if no other process changes it. If none is, the transaction waits for the first one. The
        first changes are made, at least one; if they take long, the others are left for a later call.

        Args:
            workflow_ids: The workflows, as for `write`. They have different keys (`group_key`).
            take: Called once with the chosen one before its changes are made; returns them. If the transaction cannot
                begin, the first one counts as chosen. An empty answer makes no change.

        Returns:
            The outcomes of the changes that were made, after the commit. Errors become outcomes: see `write`.
        """
        group, changes = GroupTransaction(self._translated, []), None
        chosen = workflow_ids[0]
        try:
            with self._writing_connection() as writer:
                chosen = self._begin_first_free(writer, workflow_ids)
                with self._begun_transaction(writer) as tx:
                    changes = take(chosen)
                    group.make(tx, changes)
            self.notify_listeners(tx)
        except Exception as error:
            changes = take(chosen) if changes is None else changes
            if len(changes) > 1 and group.is_repeatable(error):
                return [self._written_alone(change, chosen) for change in changes]
            return [Outcome(error=error)] * len(changes)
        return group.outcomes

    def _written_alone(self, change: Change, workflow_id: int | None) -> Outcome:
        try:
            with self.write(workflow_id) as tx:
                value = change(tx)
        except Exception as error:
            return Outcome(error=error)
        return Outcome(value)

    @contextlib.contextmanager
    def write_bulk(self, workflow_id: int | None = None) -> Iterator[Tx]:
        """Begin a change as `write` does; the caller has checked all references.

        It deletes only rows to which no row refers, except rows that will be deleted as well.
        """
        with self.write(workflow_id) as tx:
            yield tx

    @contextlib.contextmanager
    def write_if_free(self) -> Iterator[Tx | None]:
        """Begin a change as `write` does if that needs no waiting; yield None otherwise."""
        tx: Tx | None = None
        with self._writing_connection(wait=False) as writer:
            if writer is not None and self._begin_write(writer, None, wait=False):
                with self._begun_transaction(writer) as tx:
                    yield tx
            else:
                yield None
        if tx is not None:
            self.notify_listeners(tx)

    @contextlib.contextmanager
    def read(self) -> Iterator[Tx]:
        """Begin a reading transaction; it sees the state of its beginning, also while others write.

        Raises:
            DatabaseError: the database cannot be reached.
            RuleError: a column cannot hold a value.
        """
        try:
            with (
                self._reading_connection() as connection,
                connection.begin(),
                contextlib.closing(self._new_tx(connection)) as tx,
            ):
                yield tx
        except Exception as error:
            self._raise_translated(error)
            raise

    @contextlib.contextmanager
    def _write_transaction(self, writer: sa.Connection, workflow_id: int | None) -> Iterator[Tx]:
        """Begin a change as soon as no other process makes one that excludes it; commit it at the end of the block."""
        self._begin_waiting(writer, workflow_id)
        with self._begun_transaction(writer) as tx:
            yield tx

    def _begin_waiting(self, writer: sa.Connection, workflow_id: int | None) -> None:
        """Begin a change as soon as no other process makes one that excludes it."""
        if not self._begin_write(writer, workflow_id, wait=True):
            raise self._busy_error()

    def _busy_error(self) -> DatabaseBusyError:
        return DatabaseBusyError(f"database {self.name} is busy: another process has been writing to it")

    def _begin_first_free(self, writer: sa.Connection, workflow_ids: Sequence[int | None]) -> int | None:
        """Begin a change of one of these workflows, as `write_first_free` chooses it, and return it.

        Where all changes exclude each other there is one key, and so one workflow.
        """
        self._begin_waiting(writer, workflow_ids[0])
        return workflow_ids[0]

    @contextlib.contextmanager
    def _begun_transaction(self, writer: sa.Connection) -> Iterator[Tx]:
        """Commit at the end of the block the change that `_begin_write` began."""
        try:
            with writer.begin(), contextlib.closing(self._new_tx(writer)) as tx:
                yield tx
                self._before_commit(tx)
        except Exception as error:
            self._raise_translated(error)
            raise

    def _raise_translated(self, error: Exception) -> None:
        """Raise the error of the store that an error of the driver means, if it means one."""
        if (translated := self._translated(error)) is not None:
            raise translated from error

    # --- what the two databases do differently ------------------------------------------------------

    def check(self) -> None:  # noqa: B027 - a PostgreSQL database has nothing to look at
        """Check that the opened file still exists under its name.

        Raises:
            DatabaseGoneError: it was deleted, renamed or replaced.
        """

    @abstractmethod
    def others_committed(self) -> bool:
        """Return whether another process may have committed since the last call.

        True may be returned without such a commit. A commit that is missed by one call is reported by a later one.
        """

    @abstractmethod
    def group_key(self, workflow_id: int | None) -> int | None:
        """Return a key for the changes of a workflow: those of one key wait for each other, and share transactions."""

    @abstractmethod
    def workflow_of(self, table: sa.Table, record_id: int) -> int | None:
        """Return the workflow of a record, for `write`; None if there is no such record, or if it is not needed."""

    @abstractmethod
    def _schema_transaction(
        self, connection: sa.Connection, *, migrating: bool = False
    ) -> AbstractContextManager[None]:
        """Begin a change of the tables themselves; commit at the end of the block."""

    @abstractmethod
    def _writing_connection(self, *, wait: bool = True) -> AbstractContextManager[Any]:
        """Return a context that holds a connection for changes; it is None if all are in use, and ``wait`` is false."""

    @abstractmethod
    def _begin_write(self, writer: sa.Connection, workflow_id: int | None, *, wait: bool) -> bool:
        """Begin a change on a connection for changes; return False if another process makes one that excludes it.

        Args:
            workflow_id: See `write`.
            wait: Wait for the other process, for half a minute at most.
        """

    @abstractmethod
    def _reading_connection(self) -> sa.Connection:
        """Return a connection that has begun to read one state."""

    def _new_tx(self, connection: sa.Connection) -> Tx:
        return Tx(connection)

    @abstractmethod
    def _before_commit(self, tx: Tx) -> None:
        """Do what has to be done in the transaction before it is committed."""

    @abstractmethod
    def _translated(self, error: Exception) -> Exception | None:
        """Return the error of the store that an error of the driver means, None for a bug of this program."""

    @abstractmethod
    def _driver_message(self, error: Exception) -> str:
        """Return the driver's message in one line, without passwords."""


def driver_error(error: Exception) -> Any:
    """Return the driver's error that SQLAlchemy wrapped, or the error itself."""
    return getattr(error, "orig", None) or error
