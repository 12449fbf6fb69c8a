"""Opening a database, and transactions on it.

SQLite in WAL mode with full synchronisation: what was committed survives a crash of the machine.
All changes go through one connection, one at a time; readers have connections of their own and
never wait. What is SQLite's own is in this module alone.
"""

import contextlib
import sqlite3
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, Final

import sqlalchemy as sa

from torc_framework.store import schema
from torc_framework.store.errors import DatabaseBusyError, DatabaseError, RuleError
from torc_framework.store.probe import check_database, database_path
from torc_framework.store.sql import Tx

BUSY_TIMEOUT_MS: Final = 30_000
"""How long a change waits for another process's change."""
LOG_BYTES: Final = 1000 * 4096
"""Length of the write-ahead log at which SQLite moves it into the database (wal_autocheckpoint, 1000 pages)."""

Listener = Callable[[set[int]], None]
NewsListener = Callable[[list[tuple[int, int, str]]], None]


class Database:
    """One database file, open for any number of threads."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._lock = threading.Lock()
        self._listeners: list[Listener] = []
        self._followers: list[Listener] = []
        self._reporters: list[NewsListener] = []
        self._engine = _engine(path)
        self._writer = self._engine.connect()
        self._seen_version = 0
        self._timeout_ms = -1

    @classmethod
    def open(cls, database: str) -> "Database":
        """Open a database file; make it, and its folder, if there is none.

        Raises:
            DatabaseError: it cannot be opened, is no database of ours, or was made by a newer version.
        """
        check_database(database)
        path = database_path(database)
        try:
            opened = cls(path)
        except (sa.exc.DBAPIError, sqlite3.Error) as error:
            raise DatabaseError(f"cannot open database {path}: {_reason(error)}") from error
        try:
            _use_wal(opened._writer)
            schema.prepare(opened._writer, path)
            _lengthen_log(opened._writer, path)
        except (sa.exc.DBAPIError, sqlite3.Error) as error:
            opened.close()
            raise DatabaseError(f"cannot use database {path}: {_reason(error)}") from error
        except BaseException:
            opened.close()
            raise
        return opened

    def close(self) -> None:
        """Close every connection."""
        with self._lock:
            self._writer.close()
            self._engine.dispose()

    def on_commit(self, listener: Listener) -> None:
        """Call ``listener`` after each commit that touched workflows, in the thread that committed."""
        self._listeners.append(listener)

    def on_events(self, listener: Listener) -> None:
        """Call ``listener`` after each commit that stored events, with the workflows that they are about."""
        self._followers.append(listener)

    def on_news(self, listener: NewsListener) -> None:
        """Call ``listener`` with the events that each commit stored, in the thread that committed."""
        self._reporters.append(listener)

    @contextlib.contextmanager
    def write(self) -> Iterator[Tx]:
        """Begin a change; commit at the end of the block, roll back if it raises.

        Raises:
            DatabaseBusyError: another process kept writing for half a minute.
            DatabaseError: the file cannot be written, such as when the disk is full.
            RuleError: a number is larger than a column can hold.
        """
        with self._lock, self._when_free() as tx:
            yield tx
        self._tell(tx)

    @contextlib.contextmanager
    def write_bulk(self) -> Iterator[Tx]:
        """`write` for rows whose references the caller has checked, and that deletes nothing.

        SQLite looks up no references then; for a large plan that would cost a tenth of the whole.
        """
        with self._lock:
            raw: Any = self._writer.connection.driver_connection
            raw.execute("PRAGMA foreign_keys=OFF")
            try:
                with self._when_free() as tx:
                    yield tx
            finally:
                raw.execute("PRAGMA foreign_keys=ON")
        self._tell(tx)

    @contextlib.contextmanager
    def _when_free(self) -> Iterator[Tx]:
        """Begin a change as soon as no other process has one under way."""
        if not self._begin(BUSY_TIMEOUT_MS):
            raise DatabaseBusyError(f"database {self.path} is busy: another process has been writing to it")
        with self._transaction() as tx:
            yield tx

    @contextlib.contextmanager
    def _transaction(self) -> Iterator[Tx]:
        """Commit at the end of the block what `_begin` began."""
        try:
            with self._writer.begin():
                yield Tx(self._writer)
        except (sqlite3.OperationalError, sa.exc.OperationalError) as error:
            raise DatabaseError(f"cannot write to database {self.path}: {_reason(error)}") from error
        except OverflowError as error:
            raise RuleError(f"a number is too large: {error}") from error

    @contextlib.contextmanager
    def write_if_free(self) -> Iterator[Tx | None]:
        """Begin a change if that is possible without waiting; else give None."""
        if not self._lock.acquire(blocking=False):
            yield None
            return
        tx: Tx | None = None
        try:
            if self._begin(0):
                with self._transaction() as tx:
                    yield tx
            else:
                yield None
        finally:
            self._lock.release()
        if tx is not None:
            self._tell(tx)

    def _begin(self, timeout_ms: int) -> bool:
        """Begin a change on the writer; False if another process is writing and goes on for so long."""
        raw: Any = self._writer.connection.driver_connection
        if timeout_ms != self._timeout_ms:
            raw.execute(f"PRAGMA busy_timeout={timeout_ms}")
            self._timeout_ms = timeout_ms
        try:
            raw.execute("BEGIN IMMEDIATE")
        except sqlite3.OperationalError as error:
            if error.sqlite_errorcode & 0xFF != sqlite3.SQLITE_BUSY:
                raise DatabaseError(f"cannot write to database {self.path}: {error}") from error
            return False
        return True

    @contextlib.contextmanager
    def read(self) -> Iterator[Tx]:
        """Begin a reading transaction: one consistent state, whatever is written meanwhile."""
        with self._engine.connect().execution_options(reading=True) as connection, connection.begin():
            yield Tx(connection)

    def others_committed(self) -> bool:
        """Say whether another process has committed since the last call; False while a change is under way."""
        if not self._lock.acquire(blocking=False):
            return False
        try:
            raw: Any = self._writer.connection.driver_connection
            version = raw.execute("PRAGMA data_version").fetchone()[0]
            changed, self._seen_version = version != self._seen_version, version
            return bool(changed)
        finally:
            self._lock.release()

    def _tell(self, tx: Tx) -> None:
        for workflow_ids, listeners in ((tx.touched, self._listeners), (tx.told, self._followers)):
            if workflow_ids:
                for listener in listeners:
                    listener(workflow_ids)
        if tx.news:
            for report in self._reporters:
                report(tx.news)


def _engine(path: Path) -> sa.Engine:
    engine = sa.create_engine(
        sa.URL.create("sqlite", database=str(path)),
        connect_args={"timeout": BUSY_TIMEOUT_MS / 1000, "check_same_thread": False, "cached_statements": 512},
        poolclass=sa.QueuePool,
        pool_size=8,
        max_overflow=64,
    )

    @sa.event.listens_for(engine, "connect")
    def _configure(connection: Any, _record: Any) -> None:
        connection.isolation_level = None  # transactions are begun below, not by the driver
        for pragma in ("synchronous=FULL", "foreign_keys=ON", "temp_store=MEMORY", "cache_size=-65536"):
            connection.execute(f"PRAGMA {pragma}")

    @sa.event.listens_for(engine, "begin")
    def _begin(connection: sa.Connection) -> None:
        if connection.get_execution_options().get("reading"):  # the writer has begun already
            connection.exec_driver_sql("BEGIN")

    return engine


def _use_wal(connection: sa.Connection) -> None:
    """Switch to WAL; the switch alone does not wait for other processes by itself."""
    raw: Any = connection.connection.driver_connection
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


def _lengthen_log(connection: sa.Connection, path: Path) -> None:
    """Make the write-ahead log as long as it is when SQLite begins to write it from the start again.

    A commit that overwrites the log waits for its data alone; one that lengthens it waits for the
    file system's journal too, several times as long. A change too large for the cache goes to the log
    before it is taken back.
    """
    log = path.with_name(f"{path.name}-wal")
    if log.exists() and log.stat().st_size >= LOG_BYTES:
        return
    raw: Any = connection.connection.driver_connection
    (cache_size,) = raw.execute("PRAGMA cache_size").fetchone()
    raw.execute("PRAGMA cache_size=16")
    raw.execute("BEGIN IMMEDIATE")
    raw.execute("CREATE TABLE filler (content BLOB)")
    raw.execute("INSERT INTO filler VALUES (zeroblob(?))", (LOG_BYTES,))
    raw.execute("ROLLBACK")
    raw.execute(f"PRAGMA cache_size={cache_size}")


def _reason(error: Exception) -> str:
    """Return the driver's own words."""
    return str(getattr(error, "orig", None) or error)
