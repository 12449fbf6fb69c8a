"""A SQLite database: one file in WAL mode with full synchronisation."""

import contextlib
import sqlite3
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import sqlalchemy as sa

from torc_framework.store.database.base import BUSY_TIMEOUT_MS, Database, driver_error
from torc_framework.store.database.fair_lock import FairLock
from torc_framework.store.database.probe import database_path
from torc_framework.store.database.sql import Tx
from torc_framework.store.errors import DatabaseError, DatabaseGoneError, RuleError
from torc_framework.store.migrations import VERSION_TABLE
from torc_framework.store.migrations.upgrade import HEAD

LOG_BYTES: Final = 1000 * 4096
"""Length of the write-ahead log at which SQLite moves it into the database (wal_autocheckpoint, 1000 pages)."""


_FILE_ERRORS: Final = frozenset({sqlite3.OperationalError, sqlite3.DatabaseError})
"""Driver errors that a file causes and not a bug of this program: it is locked, full, unreadable or damaged.

Python's driver has no class of its own for a damaged file: it raises `sqlite3.DatabaseError` itself.
"""


class SqliteDatabase(Database):
    """One database file."""

    is_local = True
    writers = 1

    def __init__(self, source: str) -> None:
        path = database_path(source)
        self.path = path.absolute()
        super().__init__(source, str(path), _engine(self.path))
        self._write_lock: Any = FairLock()
        self._seen_version = 0
        self._file = _file_identity(self.path)
        self._timeout_ms = -1

    @classmethod
    def opened(cls, source: str) -> "SqliteDatabase":
        """Open a database that `check_database` accepted."""
        try:
            database = cls(source)
        except (sa.exc.DBAPIError, sqlite3.Error) as error:
            raise DatabaseError(f"cannot open database {database_path(source)}: {driver_error(error)}") from error
        try:
            _use_wal(database._raw)
            database._prepare()
            _preallocate_log(database._raw, database.path)
        except sqlite3.Error as error:
            database.close()
            raise DatabaseError(f"cannot use database {database.name}: {error}") from error
        return database

    @classmethod
    def opened_to_read(cls, source: str) -> "SqliteDatabase | None":
        """Open a database for reading transactions only; nothing of it is made or changed.

        Returns:
            The database; None if it is not one of the present version, or cannot be opened.
        """
        try:
            database = cls(source)
        except (sa.exc.DBAPIError, sqlite3.Error):
            return None
        try:
            versions = database._raw.execute(f"SELECT version_num FROM {VERSION_TABLE}").fetchall()
            database._raw.execute("PRAGMA query_only=ON")
        except sqlite3.Error:
            versions = []
        if versions == [(HEAD,)]:
            return database
        database.close()
        return None

    @property
    def _raw(self) -> Any:
        return self._writer.connection.driver_connection

    def close(self) -> None:
        """Close every connection."""
        with self._write_lock:
            super().close()

    @contextlib.contextmanager
    def hold_write_lock(self) -> Iterator[None]:
        """Let this object begin no change during the block, so that a child process of the server can make one."""
        with self._write_lock:
            yield

    def use_write_lock(self, lock: contextlib.AbstractContextManager[None]) -> None:
        """Make each further change within ``lock`` instead of this object's own lock."""
        self._write_lock = lock

    @contextlib.contextmanager
    def write_bulk(self, workflow_id: int | None = None) -> Iterator[Tx]:
        """Begin a change as `write` does; the caller has checked all references.

        It deletes only rows to which no row refers, except rows that will be deleted as well.
        SQLite does not check the references again: for a large plan that would take a tenth of the whole time.
        """
        with self._write_lock:
            raw = self._raw
            raw.execute("PRAGMA foreign_keys=OFF")
            try:
                with self._write_transaction(self._writer, workflow_id) as tx:
                    yield tx
            finally:
                raw.execute("PRAGMA foreign_keys=ON")
        self.notify_listeners(tx)

    def group_key(self, workflow_id: int | None) -> int | None:
        """Return None: all changes wait for each other."""

    def workflow_of(self, table: sa.Table, record_id: int) -> int | None:
        """Return None: no change needs the workflow."""

    @contextlib.contextmanager
    def _writing_connection(self, *, wait: bool = True) -> Iterator[Any]:
        if wait:
            with self._write_lock:
                yield self._writer
        elif self._write_lock.acquire(blocking=False):
            try:
                yield self._writer
            finally:
                self._write_lock.release()
        else:
            yield None

    def check(self) -> None:
        """Check that the opened file still exists under its name.

        SQLite itself would continue to write to a deleted file, and all changes would be lost when it is closed.

        Raises:
            DatabaseGoneError: it was deleted or renamed, or another file has its name.
        """
        try:
            found = _file_identity(self.path)
        except OSError as error:
            raise DatabaseGoneError(f"database {self.name} is gone: {error.strerror}") from error
        if found != self._file:
            raise DatabaseGoneError(f"database {self.name} is gone: another file has its name")

    def others_committed(self) -> bool:
        """Return whether another process has committed since the last call, or the file is gone.

        False while this process is making a change; a later call reports the other process's commit.
        """
        try:
            self.check()
        except DatabaseGoneError:
            return True
        if not self._write_lock.acquire(blocking=False):
            return False
        try:
            version = self._raw.execute("PRAGMA data_version").fetchone()[0]
            changed, self._seen_version = version != self._seen_version, version
            return bool(changed)
        finally:
            self._write_lock.release()

    @contextlib.contextmanager
    def _schema_transaction(self, connection: sa.Connection, *, migrating: bool = False) -> Iterator[None]:
        with schema_transaction(connection, migrating=migrating):
            yield

    def _begin_write(self, writer: sa.Connection, workflow_id: int | None, *, wait: bool) -> bool:
        self.check()
        raw, timeout_ms = self._raw, BUSY_TIMEOUT_MS if wait else 0
        if timeout_ms != self._timeout_ms:
            raw.execute(f"PRAGMA busy_timeout={timeout_ms}")
            self._timeout_ms = timeout_ms
        try:
            raw.execute("BEGIN IMMEDIATE")
        except sqlite3.OperationalError as error:
            if error.sqlite_errorcode & 0xFF != sqlite3.SQLITE_BUSY:
                raise DatabaseError(f"cannot write to database {self.name}: {error}") from error
            return False
        return True

    def _reading_connection(self) -> sa.Connection:
        self.check()
        connection = self._engine.connect()
        raw: Any = connection.connection.driver_connection
        raw.execute("BEGIN")
        return connection

    def _before_commit(self, tx: Tx) -> None:
        pass

    def _translated(self, error: Exception) -> Exception | None:
        if type(driver_error(error)) in _FILE_ERRORS:
            return DatabaseError(f"cannot use database {self.name}: {driver_error(error)}")
        if isinstance(error, OverflowError):
            return RuleError(f"a number is too large: {error}")
        return None

    def _driver_message(self, error: Exception) -> str:
        return str(driver_error(error))


def _file_identity(path: Path) -> tuple[int, int]:
    """Return device and inode number, which identify a file under any name."""
    found = path.stat()
    return found.st_dev, found.st_ino


def _engine(path: Path) -> sa.Engine:
    def connect() -> sqlite3.Connection:
        return sqlite3.connect(
            f"{path.as_uri()}?mode=rw",  # without mode=rw, the driver would make a deleted file again, empty
            uri=True,
            timeout=BUSY_TIMEOUT_MS / 1000,
            check_same_thread=False,
            cached_statements=512,
        )

    engine = sa.create_engine(
        "sqlite://",
        creator=connect,
        poolclass=sa.QueuePool,
        pool_size=8,
        max_overflow=64,
    )

    @sa.event.listens_for(engine, "connect")
    def _configure(connection: Any, _record: Any) -> None:
        connection.isolation_level = None  # `SqliteDatabase` begins the transactions, not the driver
        for pragma in ("synchronous=FULL", "foreign_keys=ON", "temp_store=MEMORY", "cache_size=-32768"):
            connection.execute(f"PRAGMA {pragma}")

    return engine


@contextlib.contextmanager
def schema_transaction(connection: sa.Connection, *, migrating: bool = False) -> Iterator[None]:
    """Begin a change of the tables; commit at the end of the block.

    SQLite alters a table by making a new one and dropping the old one (`ALTER TABLE` manual, "Making Other Kinds Of
    Table Schema Changes"). With foreign keys on, the drop would delete all rows that refer to the table. So foreign
    keys are off while migrating, and are checked before the commit.
    """
    raw: Any = connection.connection.driver_connection
    if migrating:
        raw.execute("PRAGMA foreign_keys=OFF")
    try:
        raw.execute("BEGIN IMMEDIATE")
        with connection.begin():
            yield
            if migrating and (broken := raw.execute("PRAGMA foreign_key_check").fetchall()):
                raise DatabaseError(f"cannot migrate the database: references of {broken[0][0]!r} would break")
    finally:
        raw.execute("PRAGMA foreign_keys=ON")


def _use_wal(raw: Any) -> None:
    """Switch to WAL mode; this one statement does not wait for other processes, so it is repeated."""
    deadline = time.monotonic() + BUSY_TIMEOUT_MS / 1000
    while True:
        try:
            raw.execute("PRAGMA journal_mode=WAL")
        except sqlite3.OperationalError as error:
            if "locked" not in str(error) or time.monotonic() > deadline:
                raise
            time.sleep(0.01)
        else:
            return


def _preallocate_log(raw: Any, path: Path) -> None:
    """Make the write-ahead log as long as it is when SQLite starts to overwrite it from its beginning.

    A commit that overwrites the log waits for its own data; one that lengthens the file waits for the file system's
    journal too, which takes several times as long. The log grows by a change that does not fit the cache, because
    SQLite writes it to the log before the rollback.
    """
    log = path.with_name(f"{path.name}-wal")
    if log.exists() and log.stat().st_size >= LOG_BYTES:
        return
    (cache_size,) = raw.execute("PRAGMA cache_size").fetchone()
    raw.execute("PRAGMA cache_size=16")
    raw.execute("BEGIN IMMEDIATE")
    raw.execute("CREATE TABLE filler (content BLOB)")
    raw.execute("INSERT INTO filler VALUES (zeroblob(?))", (LOG_BYTES,))
    raw.execute("ROLLBACK")
    raw.execute(f"PRAGMA cache_size={cache_size}")
