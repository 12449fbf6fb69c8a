"""PostgreSQL: a database that several servers may share.

Changes take turns through one advisory lock of the database, so that the store can reason as if it
were alone, as it is on SQLite. A commit that touched workflows is told to the other servers.
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
"""A server that stops in the middle of a change loses it after so long, for the others' sake."""
_WRITE_LOCK: Final = 0x746F7263
"""Key of the lock that changes are made under."""
_CHANNEL: Final = "torc"
_WAIT: Final = f"BEGIN ISOLATION LEVEL READ COMMITTED READ WRITE; SELECT pg_advisory_xact_lock({_WRITE_LOCK})"
_TRY: Final = f"BEGIN ISOLATION LEVEL READ COMMITTED READ WRITE; SELECT pg_try_advisory_xact_lock({_WRITE_LOCK})"
_READ: Final = "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY"
_SETTINGS: Final = (
    f"SET lock_timeout = {BUSY_TIMEOUT_MS}; SET idle_in_transaction_session_timeout = {IDLE_LIMIT_MS}; "
    "SELECT set_config('synchronous_commit', 'on', false) WHERE current_setting('synchronous_commit') = 'off'"
)
_MEANINGS: Final[tuple[tuple[Any, type[Exception] | None, str], ...]] = (
    (OverflowError, RuleError, "a number is too large: {1}"),
    (sa.exc.TimeoutError, DatabaseBusyError, "database {0} is busy: all connections are in use"),
    (psycopg.errors.NumericValueOutOfRange, RuleError, "a number is too large: {1}"),
    (psycopg.DataError, RuleError, "a value cannot be stored: {1}"),
    (psycopg.IntegrityError, None, ""),
    (psycopg.ProgrammingError, None, ""),
    (psycopg.Error, DatabaseError, "cannot use database {0}: {1}"),
)
"""What errors of the driver mean to our callers, the first that fits; the others are faults of ours."""


class PostgresDatabase(Database):
    """One database of a PostgreSQL server."""

    is_local = False

    def __init__(self, source: str) -> None:
        self._address = PostgresAddress.parse(source)
        self._ear: psycopg.Connection[Any] | None = None
        super().__init__(source, self._address.name, _engine(self._address))
        self._raw: psycopg.Connection[Any] = self._driver_connection()

    @classmethod
    def opened(cls, source: str) -> "PostgresDatabase":
        """Open a database that `check_database` has looked at."""
        try:
            database = cls(source)
        except (sa.exc.DBAPIError, psycopg.Error) as error:
            address = PostgresAddress.parse(source)
            raise DatabaseError(f"cannot open database {address.name}: {address.reason(original_of(error))}") from None
        try:
            database._prepare()
        except psycopg.Error as error:
            raise DatabaseError(f"cannot use database {database.name}: {database._reason(error)}") from error
        return database

    def close(self) -> None:
        """Close every connection."""
        super().close()
        if self._ear is not None:
            self._ear.close()

    def _driver_connection(self) -> Any:
        """Return the writer's connection, and keep in mind whose commits are ours."""
        raw: Any = self._writer.connection.driver_connection
        self._pid: int = raw.info.backend_pid
        return raw

    def others_committed(self) -> bool:
        """Say whether another server has touched workflows since the last call."""
        try:
            if self._ear is None:
                self._ear = self._address.connect()
                self._ear.execute(f"LISTEN {_CHANNEL}")
                return True
            return bool([notice for notice in self._ear.notifies(timeout=0) if notice.pid != self._pid])
        except psycopg.Error:
            if self._ear is not None:
                self._ear.close()
            self._ear = None
            return False

    @contextlib.contextmanager
    def _alone(self, connection: sa.Connection, *, migrating: bool = False) -> Iterator[None]:
        with schema_transaction(connection, migrating=migrating):
            yield

    def _begin(self, *, wait: bool) -> bool:
        try:
            return self._take_turn(wait=wait)
        except psycopg.Error as error:
            if not self._raw.closed:
                self._raw.rollback()
                self._translate(error)
                raise
        if not wait:
            return False  # a thread may take the time to connect again
        try:
            self._connect_again()
            return self._take_turn(wait=True)
        except (psycopg.Error, sa.exc.DBAPIError) as error:
            self._translate(error)
            raise

    def _take_turn(self, *, wait: bool) -> bool:
        """Begin a change; False if it is another's turn, and stays so."""
        raw = self._raw
        try:
            answer = raw.execute(_WAIT if wait else _TRY, prepare=False)
        except psycopg.errors.LockNotAvailable:
            raw.rollback()
            return False
        answer.nextset()
        if answer.fetchone() == (False,):
            raw.rollback()
            return False
        return True

    def _connect_again(self) -> None:
        """Replace the writer's connection, which is gone, and with it all that are as old."""
        self._engine.dispose()
        fresh = self._engine.connect()
        self._writer.invalidate()
        self._writer.close()
        self._writer = fresh
        self._raw = self._driver_connection()

    def _reader(self) -> sa.Connection:
        connection = self._engine.connect()
        try:
            connection.connection.driver_connection.execute(_READ, prepare=False)  # type: ignore[union-attr]
        except psycopg.Error:
            connection.invalidate()
            connection.close()
            self._engine.dispose()
        else:
            return connection
        connection = self._engine.connect()
        connection.connection.driver_connection.execute(_READ, prepare=False)  # type: ignore[union-attr]
        return connection

    def _tx(self, connection: sa.Connection) -> Tx:
        return PostgresTx(connection)

    def _finish(self, tx: Tx) -> None:
        if tx.touched or tx.told:
            self._raw.execute(f"NOTIFY {_CHANNEL}", prepare=False)

    def _meaning(self, error: Exception) -> Exception | None:
        original = original_of(error)
        for kinds, meaning, text in _MEANINGS:
            if isinstance(original, kinds):
                return meaning(text.format(self.name, self._reason(original))) if meaning else None
        return None

    def _reason(self, error: Exception) -> str:
        return self._address.reason(original_of(error))


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
    raw.execute(_WAIT, prepare=False)
    with connection.begin():
        yield
