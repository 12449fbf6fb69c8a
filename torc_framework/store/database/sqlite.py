"""SQLite: one file in WAL mode with full synchronisation."""

import contextlib
import sqlite3
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import sqlalchemy as sa

from torc_framework.store.database.base import BUSY_TIMEOUT_MS, Database, driver_error
from torc_framework.store.database.probe import database_path
from torc_framework.store.database.sql import Tx
from torc_framework.store.errors import DatabaseError, DatabaseGoneError, RuleError

LOG_BYTES: Final = 1000 * 4096
"""Length of the write-ahead log at which SQLite moves it into the database (wal_autocheckpoint, 1000 pages)."""


_FAULTS_OF_THE_FILE: Final = frozenset({sqlite3.OperationalError, sqlite3.DatabaseError})
"""Errors of the surroundings: locked, full, unreadable; and damaged, for which there is no class of its own."""


class SqliteDatabase(Database):
    """One database file."""

    is_local = True

    def __init__(self, source: str) -> None:
        path = database_path(source)
        self.path = path.absolute()
        super().__init__(source, str(path), _engine(self.path))
        self._seen_version = 0
        self._file = _file_identity(self.path)
        self._timeout_ms = -1

    @classmethod
    def opened(cls, source: str) -> "SqliteDatabase":
        """Open a database that `check_database` has looked at."""
        try:
            database = cls(source)
        except (sa.exc.DBAPIError, sqlite3.Error) as error:
            raise DatabaseError(f"cannot open database {database_path(source)}: {driver_error(error)}") from error
        try:
            _use_wal(database._raw)
            database._prepare()
            _lengthen_log(database._raw, database.path)
        except sqlite3.Error as error:
            database.close()
            raise DatabaseError(f"cannot use database {database.name}: {error}") from error
        return database

    @property
    def _raw(self) -> Any:
        return self._writer.connection.driver_connection

    @contextlib.contextmanager
    def write_bulk(self) -> Iterator[Tx]:
        """`write` for rows whose references the caller has checked, and that deletes nothing.

        References are not looked up then; for a large plan that would cost a tenth of the whole.
        """
        with self._lock:
            raw = self._raw
            raw.execute("PRAGMA foreign_keys=OFF")
            try:
                with self._when_free() as tx:
                    yield tx
            finally:
                raw.execute("PRAGMA foreign_keys=ON")
        self._tell(tx)

    def check(self) -> None:
        """Look whether the file is still there: SQLite would go on with the deleted one, and lose all at the end.

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
        """Say whether another process has committed since the last call, or the file is gone.

        False while a change is under way.
        """
        try:
            self.check()
        except DatabaseGoneError:
            return True
        if not self._lock.acquire(blocking=False):
            return False
        try:
            version = self._raw.execute("PRAGMA data_version").fetchone()[0]
            changed, self._seen_version = version != self._seen_version, version
            return bool(changed)
        finally:
            self._lock.release()

    @contextlib.contextmanager
    def _alone(self, connection: sa.Connection, *, migrating: bool = False) -> Iterator[None]:
        with schema_transaction(connection, migrating=migrating):
            yield

    def _begin(self, *, wait: bool) -> bool:
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

    def _reader(self) -> sa.Connection:
        self.check()
        connection = self._engine.connect()
        raw: Any = connection.connection.driver_connection
        raw.execute("BEGIN")
        return connection

    def _finish(self, tx: Tx) -> None:
        pass

    def _meaning(self, error: Exception) -> Exception | None:
        if type(driver_error(error)) in _FAULTS_OF_THE_FILE:
            return DatabaseError(f"cannot use database {self.name}: {driver_error(error)}")
        if isinstance(error, OverflowError):
            return RuleError(f"a number is too large: {error}")
        return None

    def _reason(self, error: Exception) -> str:
        return str(driver_error(error))


def _file_identity(path: Path) -> tuple[int, int]:
    """Return what tells a file from all others, whatever its name."""
    found = path.stat()
    return found.st_dev, found.st_ino


def _engine(path: Path) -> sa.Engine:
    def connect() -> sqlite3.Connection:
        return sqlite3.connect(
            f"{path.as_uri()}?mode=rw",  # a file that was deleted is not made anew
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
        connection.isolation_level = None  # transactions are begun above, not by the driver
        for pragma in ("synchronous=FULL", "foreign_keys=ON", "temp_store=MEMORY", "cache_size=-65536"):
            connection.execute(f"PRAGMA {pragma}")

    return engine


@contextlib.contextmanager
def schema_transaction(connection: sa.Connection, *, migrating: bool = False) -> Iterator[None]:
    """Begin a change of the tables; commit at the end of the block.

    A change of a table that others refer to makes it anew: with foreign keys on, that would delete all
    rows that refer to it. So they are off while migrating, and are checked afterwards.
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
    """Switch to WAL; the switch alone does not wait for other processes by itself."""
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


def _lengthen_log(raw: Any, path: Path) -> None:
    """Make the write-ahead log as long as it is when SQLite begins to write it from the start again.

    A commit that overwrites the log waits for its data alone; one that lengthens it waits for the
    file system's journal too, several times as long. A change too large for the cache goes to the log
    before it is taken back.
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
