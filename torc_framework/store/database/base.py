"""Opening a database, and transactions on it.

Whatever was committed survives a crash of the machine. All changes go through one connection, one
at a time, also between processes; readers have connections of their own, see one state each and never
wait. What an engine has of its own is in ``database_sqlite`` and ``database_postgres``.
"""

import contextlib
import threading
from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from typing import Any, ClassVar, Final

import sqlalchemy as sa
from attrs import Factory, define

from torc_framework.store import schema
from torc_framework.store.database.probe import check_database, is_postgres
from torc_framework.store.database.sql import Tx
from torc_framework.store.errors import DatabaseBusyError, DatabaseError

BUSY_TIMEOUT_MS: Final = 30_000
"""How long a change waits for another process's change."""

WorkflowListener = Callable[[set[int]], None]
EventListener = Callable[[list[tuple[int, int, str]]], None]


@define
class CommittedChanges:
    """What a transaction, or several, changed, for those who listen.

    Attributes:
        touched: Workflows whose runners may have something to do.
        told: Workflows that have new events.
        news: The events: workflow, id, JSON text.
        changed: How many jobs changed their status, by the name of the transition.
    """

    touched: set[int] = Factory(set)
    told: set[int] = Factory(set)
    news: list[tuple[int, int, str]] = Factory(list)
    changed: Counter[str] = Factory(Counter)


class Database(ABC):
    """One database, open for any number of threads.

    Attributes:
        is_local: A transaction waits for no network: a short one may be made in an event loop.
        source: What it was opened with; may hold a password.
        name: What messages call it.
        changes: How many jobs changed their status through this object, by the name of the transition.
    """

    is_local: ClassVar[bool]

    def __init__(self, source: str, name: str, engine: sa.Engine) -> None:
        self.source = source
        self.name = name
        self._lock: Any = threading.Lock()
        self._listeners: list[WorkflowListener] = []
        self._followers: list[WorkflowListener] = []
        self._reporters: list[EventListener] = []
        self.changes = Counter[str]()
        self._counting = threading.Lock()
        self._engine = engine
        self._writer = engine.connect()

    @staticmethod
    def open(database: str) -> "Database":
        """Open the database that a path or URL names; a file, and its folder, is made if there is none.

        Raises:
            DatabaseError: it cannot be opened, is no database of ours, or was made by a newer version.
        """
        check_database(database)
        if is_postgres(database):
            from torc_framework.store.database.postgres import PostgresDatabase

            return PostgresDatabase.opened(database)
        from torc_framework.store.database.sqlite import SqliteDatabase

        return SqliteDatabase.opened(database)

    def _prepare(self) -> None:
        """Bring the tables to the present version; close everything if that fails."""
        try:
            schema.prepare(self._writer, self.name, self._alone)
        except Exception as error:
            self.close()
            if isinstance(error, sa.exc.DBAPIError):
                raise DatabaseError(f"cannot use database {self.name}: {self._reason(error)}") from error
            raise
        except BaseException:
            self.close()
            raise

    def close(self) -> None:
        """Close every connection."""
        with self._lock:
            self._writer.close()
            self._engine.dispose()

    def on_commit(self, listener: WorkflowListener) -> None:
        """Call ``listener`` after each commit that touched workflows, in the thread that committed."""
        self._listeners.append(listener)

    def on_events(self, listener: WorkflowListener) -> None:
        """Call ``listener`` after each commit that stored events, with the workflows that they are about."""
        self._followers.append(listener)

    def on_news(self, listener: EventListener) -> None:
        """Call ``listener`` with the events that each commit stored, in the thread that committed."""
        self._reporters.append(listener)

    @contextlib.contextmanager
    def turn(self) -> Iterator[None]:
        """Change nothing during the block, so that another process of ours may."""
        with self._lock:
            yield

    def take_turns(self, turns: AbstractContextManager[None]) -> None:
        """From now on begin each change within ``turns``, which waits for another process of ours."""
        self._lock = turns

    def relay(self, committed: CommittedChanges) -> None:
        """Tell the listeners of this object what another process of ours has committed."""
        self._tell(committed)

    @contextlib.contextmanager
    def write(self) -> Iterator[Tx]:
        """Begin a change; commit at the end of the block, roll back if it raises.

        Raises:
            DatabaseBusyError: another process kept writing for half a minute.
            DatabaseError: the database cannot be reached or written, such as when the disk is full.
            RuleError: a value is none that a column can hold.
        """
        with self._lock, self._when_free() as tx:
            yield tx
        self._tell(tx)

    @contextlib.contextmanager
    def write_bulk(self) -> Iterator[Tx]:
        """`write` for rows whose references the caller has checked, and that deletes nothing."""
        with self.write() as tx:
            yield tx

    @contextlib.contextmanager
    def write_if_free(self) -> Iterator[Tx | None]:
        """Begin a change if that is possible without waiting; else give None."""
        if not self._lock.acquire(blocking=False):
            yield None
            return
        tx: Tx | None = None
        try:
            if self._begin(wait=False):
                with self._transaction() as tx:
                    yield tx
            else:
                yield None
        finally:
            self._lock.release()
        if tx is not None:
            self._tell(tx)

    @contextlib.contextmanager
    def read(self) -> Iterator[Tx]:
        """Begin a reading transaction: one consistent state, whatever is written meanwhile.

        Raises:
            DatabaseError: the database cannot be reached.
            RuleError: a value is none that a column can hold.
        """
        try:
            with self._reader() as connection, connection.begin():
                yield self._tx(connection)
        except Exception as error:
            self._translate(error)
            raise

    @contextlib.contextmanager
    def _when_free(self) -> Iterator[Tx]:
        """Begin a change as soon as no other process has one under way."""
        if not self._begin(wait=True):
            raise DatabaseBusyError(f"database {self.name} is busy: another process has been writing to it")
        with self._transaction() as tx:
            yield tx

    @contextlib.contextmanager
    def _transaction(self) -> Iterator[Tx]:
        """Commit at the end of the block what `_begin` began."""
        try:
            with self._writer.begin():
                tx = self._tx(self._writer)
                yield tx
                self._finish(tx)
        except Exception as error:
            self._translate(error)
            raise

    def _translate(self, error: Exception) -> None:
        """Raise what an error of the driver means, if it is one that may happen."""
        if (meaning := self._meaning(error)) is not None:
            raise meaning from error

    def _tell(self, tx: Tx | CommittedChanges) -> None:
        if tx.changed:
            with self._counting:
                self.changes.update(tx.changed)
        for workflow_ids, listeners in ((tx.touched, self._listeners), (tx.told, self._followers)):
            if workflow_ids:
                for listener in listeners:
                    listener(workflow_ids)
        if tx.news:
            for report in self._reporters:
                report(tx.news)

    # --- what each engine does its own way ----------------------------------------------------------

    def check(self) -> None:  # noqa: B027 - most engines notice it by themselves
        """Look whether what was opened is still there.

        Raises:
            DatabaseGoneError: it is not.
        """

    @abstractmethod
    def others_committed(self) -> bool:
        """Say whether another process has touched workflows since the last call; in doubt, at a later one."""

    @abstractmethod
    def _alone(self, connection: sa.Connection, *, migrating: bool = False) -> AbstractContextManager[None]:
        """Begin a change of the tables themselves; commit at the end of the block."""

    @abstractmethod
    def _begin(self, *, wait: bool) -> bool:
        """Begin a change on the writer; False if another process is writing, and goes on for long."""

    @abstractmethod
    def _reader(self) -> sa.Connection:
        """Return a connection that has begun to read one state."""

    def _tx(self, connection: sa.Connection) -> Tx:
        return Tx(connection)

    @abstractmethod
    def _finish(self, tx: Tx) -> None:
        """Do what is left to do before a change is committed."""

    @abstractmethod
    def _meaning(self, error: Exception) -> Exception | None:
        """Return what an error of the driver means to our callers, None if it is a fault of ours."""

    @abstractmethod
    def _reason(self, error: Exception) -> str:
        """Return the driver's own words in one line, without secrets."""


def driver_error(error: Exception) -> Any:
    """Return the driver's error."""
    return getattr(error, "orig", None) or error
