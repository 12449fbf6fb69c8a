"""A PostgreSQL database, which several servers may share.

A change holds advisory locks (`write_locks`): a change of one workflow excludes other changes of this workflow, and a
change that may concern several workflows excludes all others. So the rows of a workflow are changed by one transaction
at a time, and its events get their ids in the order of the commits. A commit that changed workflows notifies the other
servers.
"""

import contextlib
import secrets
import threading
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, Final

import psycopg
import sqlalchemy as sa

from torc_framework.store.database.base import BUSY_TIMEOUT_MS, Database
from torc_framework.store.database.base import driver_error as original_of
from torc_framework.store.database.postgres_address import PostgresAddress
from torc_framework.store.database.postgres_cursor import ConnectionStatements
from torc_framework.store.database.postgres_dialect import DIALECT_URL, PostgresTx, register_adapters
from torc_framework.store.database.postgres_locks import first_free_lock, write_locks
from torc_framework.store.database.sql import Tx
from torc_framework.store.errors import DatabaseBusyError, DatabaseError, RuleError

IDLE_LIMIT_MS: Final = 60_000
"""PostgreSQL ends a transaction that has been idle for this time, so that a stopped server does not block the others.
"""
WRITERS: Final = 4
"""Transactions that a server makes at the same time: each holds a connection, of which PostgreSQL has a hundred."""
_MOST_CHOICES: Final = 64
"""Most further workflows of which a transaction may take one that is free, so that the statement is short."""
_CHANNEL: Final = "torc"
_BEGIN: Final = "BEGIN ISOLATION LEVEL READ COMMITTED READ WRITE"
_BEGIN_READING: Final = "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY"
_SETTINGS: Final = (
    f"SET lock_timeout = {BUSY_TIMEOUT_MS}; SET idle_in_transaction_session_timeout = {IDLE_LIMIT_MS}; "
    "SELECT set_config('synchronous_commit', 'on', false) WHERE current_setting('synchronous_commit') = 'off'"
)
_TRANSLATIONS: Final[tuple[tuple[Any, type[Exception] | None, str], ...]] = (
    (OverflowError, RuleError, "a number is too large: {1}"),
    (sa.exc.TimeoutError, DatabaseBusyError, "database {0} is busy: all connections are in use"),
    (psycopg.errors.NumericValueOutOfRange, RuleError, "a number is too large: {1}"),
    (psycopg.DataError, RuleError, "a value cannot be stored: {1}"),
    (psycopg.IntegrityError, None, ""),
    (psycopg.ProgrammingError, None, ""),
    (psycopg.Error, DatabaseError, "cannot use database {0}: {1}"),
)
"""Classes of driver errors, the error of the store that each means, and its message; the first that fits counts.

{0} is the name of the database, {1} the driver's message. None, and an error that fits no row, is a bug of this
program.
"""


class PostgresDatabase(Database):
    """One database of a PostgreSQL server."""

    is_local = False
    writers = WRITERS

    def __init__(self, source: str) -> None:
        self._address = PostgresAddress.parse(source)
        self._listening: psycopg.Connection[Any] | None = None
        self._free_writers = threading.Semaphore(WRITERS)
        self._writing_engine = _engine(self._address, pool_size=WRITERS, max_overflow=0)
        self._sender = secrets.token_hex(8)
        super().__init__(source, self._address.name, _engine(self._address, pool_size=5, max_overflow=15))

    @classmethod
    def opened(cls, source: str) -> "PostgresDatabase":
        """Open a database that `check_database` accepted."""
        try:
            database = cls(source)
        except (sa.exc.DBAPIError, psycopg.Error) as error:
            address = PostgresAddress.parse(source)
            raise DatabaseError(f"cannot open database {address.name}: {address.reason(original_of(error))}") from None
        try:
            database._prepare()
        except psycopg.Error as error:
            raise DatabaseError(f"cannot use database {database.name}: {database._driver_message(error)}") from error
        database._writer.close()  # changes use those of the other pool
        return database

    def close(self) -> None:
        """Close every connection."""
        super().close()
        self._writing_engine.dispose()
        if self._listening is not None:
            self._listening.close()

    def hold_write_lock(self) -> contextlib.AbstractContextManager[None]:
        """Return a context without effect: a child process waits for PostgreSQL's locks, in order, as any server."""
        return contextlib.nullcontext()

    def use_write_lock(self, lock: contextlib.AbstractContextManager[None]) -> None:
        """Do nothing: PostgreSQL's locks are enough."""

    def group_key(self, workflow_id: int | None) -> int | None:
        """Return the id itself: changes of different workflows have transactions of their own."""
        return workflow_id

    def workflow_of(self, table: sa.Table, record_id: int) -> int | None:
        """Return the workflow of a record; None if there is no such record."""
        query = sa.select(table.c.workflow_id).where(table.c.id == record_id)
        with self.read() as tx:
            found: int | None = tx.connection.execute(query).scalar()
        return found

    def others_committed(self) -> bool:
        """Return whether another server has changed workflows since the last call."""
        try:
            if self._listening is None:
                self._listening = self._address.connect()
                self._listening.execute(f"LISTEN {_CHANNEL}")
                return True
            return bool([notice for notice in self._listening.notifies(timeout=0) if notice.payload != self._sender])
        except psycopg.Error:
            if self._listening is not None:
                self._listening.close()
            self._listening = None
            return False

    @contextlib.contextmanager
    def _schema_transaction(self, connection: sa.Connection, *, migrating: bool = False) -> Iterator[None]:
        with schema_transaction(connection, migrating=migrating):
            yield

    @contextlib.contextmanager
    def _writing_connection(self, *, wait: bool = True) -> Iterator[Any]:
        if not self._free_writers.acquire(blocking=wait):
            yield None
            return
        try:
            with self._connected_writer(wait=wait) as writer:
                yield writer
        finally:
            self._free_writers.release()

    @contextlib.contextmanager
    def _connected_writer(self, *, wait: bool) -> Iterator[sa.Connection | None]:
        """Yield a connection from the pool of writers; None if there is no server to connect to, and not ``wait``."""
        try:
            writer = self._writing_engine.connect()
        except (psycopg.Error, sa.exc.DBAPIError) as error:
            if wait:
                self._raise_translated(error)
                raise
            writer = None
        with writer or contextlib.nullcontext():
            yield writer

    def _begin_write(self, writer: sa.Connection, workflow_id: int | None, *, wait: bool) -> bool:
        return self._begin_reconnected(writer, write_locks(workflow_id, wait=wait), wait=wait) is not False

    def _begin_first_free(self, writer: sa.Connection, workflow_ids: Sequence[int | None]) -> int | None:
        first, *others = workflow_ids
        choices = [workflow_id for workflow_id in others if workflow_id]
        if not first or not choices:  # such a change has no lock of a workflow
            return super()._begin_first_free(writer, workflow_ids)
        chosen = self._begin_reconnected(writer, first_free_lock([first, *choices[:_MOST_CHOICES]]), wait=True)
        if chosen is False:
            raise self._busy_error()
        assert isinstance(chosen, int)
        return chosen

    def _begin_reconnected(self, writer: sa.Connection, locks: Iterable[str], *, wait: bool) -> Any:
        """Begin a transaction as `_begin_locked` does, with ``wait`` on a new connection if this one is lost."""
        statements = [*locks]
        try:
            return _begin_locked(writer, statements)
        except psycopg.Error as error:
            raw = _raw(writer)
            if not raw.closed:
                raw.rollback()
                self._raise_translated(error)
                raise
        writer.invalidate()
        if not wait:
            return False  # the caller then writes in a thread, which may wait for a new connection
        for engine in (self._writing_engine, self._engine):
            engine.dispose()  # the other pooled connections are as old
        try:
            return _begin_locked(writer, statements)
        except (psycopg.Error, sa.exc.DBAPIError) as error:
            self._raise_translated(error)
            raise

    def _reading_connection(self) -> sa.Connection:
        connection = self._engine.connect()
        try:
            _begin_reading(connection)
        except psycopg.Error:
            connection.invalidate()
            connection.close()
            self._engine.dispose()
        else:
            return connection
        connection = self._engine.connect()
        _begin_reading(connection)
        return connection

    def _new_tx(self, connection: sa.Connection) -> Tx:
        return PostgresTx(connection)

    def _before_commit(self, tx: Tx) -> None:
        assert isinstance(tx, PostgresTx)
        has_news = tx.workflows_to_wake or tx.workflows_with_ready_jobs or tx.workflows_with_events
        tx.commit(*([f"NOTIFY {_CHANNEL}, '{self._sender}'"] if has_news else []))

    def _translated(self, error: Exception) -> Exception | None:
        original = original_of(error)
        for kinds, meant, text in _TRANSLATIONS:
            if isinstance(original, kinds):
                return meant(text.format(self.name, self._driver_message(original))) if meant else None
        return None

    def _driver_message(self, error: Exception) -> str:
        return self._address.reason(original_of(error))


def _raw(connection: sa.Connection) -> Any:
    """Return the driver's connection."""
    return connection.connection.driver_connection


def _begin_locked(writer: sa.Connection, locks: Iterable[str]) -> Any:
    """Begin a transaction that holds its locks.

    Args:
        writer: The connection.
        locks: The statements that take the locks.

    Returns:
        What the last statement returned; False if another transaction holds a lock that excludes one of them, and no
        transaction was begun.
    """
    raw = _raw(writer)
    try:
        first = ConnectionStatements.of(writer.connection).statements_before()
        answer = raw.execute("; ".join([*first, _BEGIN, *locks]), prepare=False)
    except psycopg.errors.LockNotAvailable:
        raw.rollback()
        return False
    while True:
        value = None if answer.description is None else answer.fetchone()[0]
        if value is False:
            raw.rollback()
            return False
        if not answer.nextset():
            return value


def _begin_reading(connection: sa.Connection) -> None:
    first = ConnectionStatements.of(connection.connection).statements_before()
    _raw(connection).execute("; ".join([*first, _BEGIN_READING]), prepare=False)


def _engine(address: PostgresAddress, *, pool_size: int, max_overflow: int) -> sa.Engine:
    def connect() -> "psycopg.Connection[Any]":
        connection = address.connect()
        connection.prepare_threshold = None  # the driver would also deallocate statements of `PostgresCursor`
        connection.execute(_SETTINGS, prepare=False)
        register_adapters(connection)
        return connection

    return sa.create_engine(
        DIALECT_URL,
        creator=connect,
        poolclass=sa.QueuePool,
        pool_size=pool_size,
        max_overflow=max_overflow,
    )


@contextlib.contextmanager
def schema_transaction(connection: sa.Connection, *, migrating: bool = False) -> Iterator[None]:
    """Begin a change of the tables; commit at the end of the block."""
    _raw(connection).execute("; ".join([_BEGIN, *write_locks(None)]), prepare=False)
    with connection.begin():
        yield
