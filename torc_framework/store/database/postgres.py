"""A PostgreSQL database, which several servers may share.

Each change holds one advisory lock of the database, so that only one change is under way at a time, as on SQLite. A
commit that changed workflows notifies the other servers.
"""

import contextlib
from collections.abc import Iterator
from typing import Any, Final

import psycopg
import sqlalchemy as sa

from torc_framework.store.database.base import BUSY_TIMEOUT_MS, Database
from torc_framework.store.database.base import driver_error as original_of
from torc_framework.store.database.postgres_address import PostgresAddress
from torc_framework.store.database.postgres_dialect import DIALECT_URL, PostgresTx, register_adapters
from torc_framework.store.database.sql import Tx
from torc_framework.store.errors import DatabaseBusyError, DatabaseError, RuleError

IDLE_LIMIT_MS: Final = 60_000
"""PostgreSQL ends a transaction that has been idle for this time, so that a stopped server does not block the others.
"""
_WRITE_LOCK: Final = 0x746F7263
"""Key of the advisory lock that each change holds: "torc" in ASCII."""
_CHANNEL: Final = "torc"
_BEGIN: Final = "BEGIN ISOLATION LEVEL READ COMMITTED READ WRITE"
_BEGIN_WAITING: Final = f"{_BEGIN}; SELECT pg_advisory_xact_lock({_WRITE_LOCK})"
_BEGIN_IF_FREE: Final = f"{_BEGIN}; SELECT pg_try_advisory_xact_lock({_WRITE_LOCK})"
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

    def __init__(self, source: str) -> None:
        self._address = PostgresAddress.parse(source)
        self._listening: psycopg.Connection[Any] | None = None
        super().__init__(source, self._address.name, _engine(self._address))
        self._raw: psycopg.Connection[Any] = self._driver_connection()

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
        return database

    def close(self) -> None:
        """Close every connection."""
        super().close()
        if self._listening is not None:
            self._listening.close()

    def _driver_connection(self) -> Any:
        """Return the driver's connection of the writer; remember its process id, with which its notifications come."""
        raw: Any = self._writer.connection.driver_connection
        self._backend_pid: int = raw.info.backend_pid
        return raw

    def others_committed(self) -> bool:
        """Return whether another server has changed workflows since the last call."""
        try:
            if self._listening is None:
                self._listening = self._address.connect()
                self._listening.execute(f"LISTEN {_CHANNEL}")
                return True
            return bool([notice for notice in self._listening.notifies(timeout=0) if notice.pid != self._backend_pid])
        except psycopg.Error:
            if self._listening is not None:
                self._listening.close()
            self._listening = None
            return False

    @contextlib.contextmanager
    def _schema_transaction(self, connection: sa.Connection, *, migrating: bool = False) -> Iterator[None]:
        with schema_transaction(connection, migrating=migrating):
            yield

    def _begin_write(self, *, wait: bool) -> bool:
        try:
            return self._begin_locked(wait=wait)
        except psycopg.Error as error:
            if not self._raw.closed:
                self._raw.rollback()
                self._raise_translated(error)
                raise
        if not wait:
            return False  # the caller then writes in a thread, which may wait for a new connection
        try:
            self._reconnect()
            return self._begin_locked(wait=True)
        except (psycopg.Error, sa.exc.DBAPIError) as error:
            self._raise_translated(error)
            raise

    def _begin_locked(self, *, wait: bool) -> bool:
        """Begin a transaction that holds the advisory lock; return False if another server holds it."""
        raw = self._raw
        try:
            answer = raw.execute(_BEGIN_WAITING if wait else _BEGIN_IF_FREE, prepare=False)
        except psycopg.errors.LockNotAvailable:
            raw.rollback()
            return False
        answer.nextset()
        if answer.fetchone() == (False,):
            raw.rollback()
            return False
        return True

    def _reconnect(self) -> None:
        """Replace the lost connection of the writer, and close all pooled ones, which are as old."""
        self._engine.dispose()
        fresh = self._engine.connect()
        self._writer.invalidate()
        self._writer.close()
        self._writer = fresh
        self._raw = self._driver_connection()

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
        if tx.workflows_to_wake or tx.workflows_with_events:
            self._raw.execute(f"NOTIFY {_CHANNEL}", prepare=False)

    def _translated(self, error: Exception) -> Exception | None:
        original = original_of(error)
        for kinds, meant, text in _TRANSLATIONS:
            if isinstance(original, kinds):
                return meant(text.format(self.name, self._driver_message(original))) if meant else None
        return None

    def _driver_message(self, error: Exception) -> str:
        return self._address.reason(original_of(error))


def _begin_reading(connection: sa.Connection) -> None:
    raw: Any = connection.connection.driver_connection
    raw.execute(_BEGIN_READING, prepare=False)


def _engine(address: PostgresAddress) -> sa.Engine:
    def connect() -> "psycopg.Connection[Any]":
        connection = address.connect()
        connection.prepared_max = 1000
        connection.execute(_SETTINGS, prepare=False)
        register_adapters(connection)
        return connection

    return sa.create_engine(
        DIALECT_URL,
        creator=connect,
        poolclass=sa.QueuePool,
        pool_size=5,
        max_overflow=15,
    )


@contextlib.contextmanager
def schema_transaction(connection: sa.Connection, *, migrating: bool = False) -> Iterator[None]:
    """Begin a change of the tables; commit at the end of the block."""
    raw: Any = connection.connection.driver_connection
    raw.execute(_BEGIN_WAITING, prepare=False)
    with connection.begin():
        yield
