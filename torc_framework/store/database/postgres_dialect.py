"""The SQLAlchemy dialect and the `Tx` of PostgreSQL, with the same values and the same order as on SQLite.

Integers have 64 bits. Booleans are numbers, in the tables and in the driver. JSON is sent and received as text. Texts
are compared and sorted by their code points, in a database of any locale.
"""

import json
import re
from collections.abc import Iterable, Sequence
from itertools import chain, islice, repeat
from typing import Any, Final

import psycopg
import sqlalchemy as sa
from psycopg.adapt import Dumper
from psycopg.types.string import TextLoader
from sqlalchemy.dialects import registry
from sqlalchemy.dialects.postgresql.base import PGDDLCompiler, PGTypeCompiler
from sqlalchemy.dialects.postgresql.psycopg import PGDialect_psycopg

from torc_framework.store.database.postgres_cursor import ConnectionStatements, PostgresCursor
from torc_framework.store.database.postgres_locks import id_block
from torc_framework.store.database.sql import (
    BEGIN_SAVEPOINT,
    RELEASE_SAVEPOINT,
    UNDO_TO_SAVEPOINT,
    Insertion,
    LaterRows,
    Row,
    Same,
    Statement,
    Tx,
    padded,
)

DIALECT_URL: Final = "postgresql+torc://"
"""URL by which SQLAlchemy finds the dialect; it holds no address, because the engine gets its own function to connect.
"""


class _BigInteger(sa.BigInteger):
    render_bind_cast = True


class _Flag(sa.Boolean):
    render_bind_cast = True


class _Json(sa.JSON):
    render_bind_cast = True


_NUL: Final = re.compile(r"(?<!\\)(?:\\\\)*\\u0000")


def _json_text(value: Any) -> str:
    """Return the JSON of a value.

    Raises:
        psycopg.DataError: a text has a NUL; PostgreSQL could store the JSON, and then could not read fields of it.
    """
    text = json.dumps(value)
    if _NUL.search(text):
        raise psycopg.DataError("PostgreSQL text fields cannot contain NUL (0x00) bytes")
    return text


class _Types(PGTypeCompiler):
    def visit_INTEGER(self, type_: Any, **options: Any) -> str:  # noqa: N802 - SQLAlchemy's name
        return "BIGINT"

    def visit_BOOLEAN(self, type_: Any, **options: Any) -> str:  # noqa: N802 - SQLAlchemy's name
        return "SMALLINT"


class _Tables(PGDDLCompiler):
    def get_column_specification(self, column: sa.Column[Any], **options: Any) -> str:
        made: str = super().get_column_specification(column, **options)  # type: ignore[no-untyped-call]  # SQLAlchemy has no type here
        return f'{made} COLLATE "C"' if column.type._type_affinity is sa.String else made


class PostgresDialect(PGDialect_psycopg):
    """The dialect of PostgreSQL with the types and values described above."""

    supports_statement_cache = True
    supports_native_boolean = False
    supports_native_json_serialization = False
    supports_native_json_deserialization = False
    type_compiler_cls = _Types
    ddl_compiler = _Tables
    colspecs: Any = {  # noqa: RUF012 - a class variable of SQLAlchemy's dialects
        **PGDialect_psycopg.colspecs,
        sa.Integer: _BigInteger,
        sa.Boolean: _Flag,
        sa.JSON: _Json,
    }

    def __init__(self, **options: Any) -> None:
        own = {"paramstyle": "format", "use_native_hstore": False, "json_serializer": _json_text}
        super().__init__(**own, **options)  # type: ignore[no-untyped-call]  # SQLAlchemy has no type here


registry.register("postgresql.torc", __name__, "PostgresDialect")


class _FlagDumper(Dumper):
    """Sends a boolean as a number, as the tables have it."""

    oid = psycopg.adapters.types["int2"].oid

    def dump(self, obj: bool) -> bytes:
        return b"1" if obj else b"0"


def register_adapters(connection: "psycopg.Connection[Any]") -> None:
    """Make the driver send and return the same Python values as SQLite's driver on this connection."""
    connection.adapters.register_dumper(bool, _FlagDumper)
    connection.adapters.register_loader("json", TextLoader)


class PostgresTx(Tx):
    """One transaction on PostgreSQL.

    Statements whose results are not needed wait for the next one whose result is, and are sent with it
    (`PostgresCursor`). So a change that fails may raise only then, at the latest in `send_waiting`.
    """

    COPIED: Final = 20
    """`insert` sends this many rows and more by COPY, which takes two round trips and little time for each row."""

    def _new_cursor(self) -> PostgresCursor:
        return PostgresCursor(ConnectionStatements.of(self._connection.connection))

    @property
    def connection(self) -> sa.Connection:
        """SQLAlchemy's connection, after all that waited was sent."""
        self._cursor.send_waiting()
        return self._connection

    @property
    def is_connected(self) -> bool:
        """Whether the connection can be used, also after the transaction."""
        is_connected: bool = self._cursor.is_connected
        return is_connected

    def send_waiting(self) -> None:
        """Send the statements that wait for the next one."""
        self._cursor.send_waiting()

    def commit(self, *notifications: str) -> None:
        """Send what waits, some statements that notify others, and the commit, together.

        Raises:
            psycopg.Error: nothing was committed, unless the connection is lost.
        """
        for statement in (*notifications, "COMMIT"):
            self._cursor.execute_later(statement)
        if self._cursor.send_waiting()[-1].command_status != b"COMMIT":
            raise psycopg.errors.InFailedSqlTransaction("the transaction had failed, and was rolled back")

    def new_ids(self, table: sa.Table, count: int) -> int:
        """Take ``count`` consecutive ids from the sequence of a table; return the first, 0 if there are none."""
        if count == 0:
            return 0
        lock, take = id_block(table.name)
        self._cursor.execute_later("SAVEPOINT ids")
        self._cursor.execute_later(lock)
        taken = self._cursor.rows_later(take, (count - 1,))
        self._cursor.execute_later("ROLLBACK TO ids")
        self._cursor.execute("RELEASE ids")
        ((last,),) = taken()
        return int(last) - count + 1

    def begin_savepoint(self, *, is_first: bool) -> None:
        """Begin a part of the transaction that can be undone, together with its first statement."""
        self._cursor.begin_savepoint(*([] if is_first else [RELEASE_SAVEPOINT]), BEGIN_SAVEPOINT)

    def undo_to_savepoint(self) -> None:
        """Undo what was done since `begin_savepoint`.

        Raises:
            Exception: the driver's error, if the database has ended the transaction.
        """
        self._cursor.undo_to_savepoint(UNDO_TO_SAVEPOINT)

    def rows_later(self, statement: Statement, *values: Any) -> LaterRows:
        """Run a query with the next statement; return a function that returns its rows."""
        later: LaterRows = self._cursor.rows_later(*statement.bind(self._dialect, values))
        return later

    def rows_for_later(self, statement: Statement, ids: Sequence[int], *values: Any) -> LaterRows:
        """Run a query for many ids with the next statement; return a function that returns its rows."""
        parts = [self._cursor.rows_later(*statement.bind(self._dialect, values, chunk)) for chunk in padded(ids)]
        return lambda: [row for part in parts for row in part()]

    def run_each(self, statement: Statement, rows: Sequence[Row]) -> None:
        """Run a change once for each row of values, with the next statement."""
        for row in rows:
            self._run(statement, row)

    def count_for(self, transition: str, statement: Statement, ids: Sequence[int], *values: Any) -> None:
        """Run a transition of jobs with the next statement, and count the jobs then."""
        for chunk in padded(ids):
            self._count_later(transition, *statement.bind(self._dialect, values, chunk))

    def count_each(self, transition: str, statement: Statement, rows: Sequence[Row]) -> None:
        """Run a transition of jobs once for each row of values, with the next statement, and count the jobs then."""
        for row in rows:
            self._count_later(transition, *statement.bind(self._dialect, row))

    def _count_later(self, transition: str, text: str, values: Sequence[Any]) -> None:
        self._cursor.execute_later(text, values, lambda result: self.add_count(transition, result.command_tuples or 0))

    def _run(self, statement: Statement, values: Sequence[Any], ids: Sequence[int] = ()) -> None:
        self._cursor.execute_later(*statement.bind(self._dialect, values, ids))

    def insert(self, statement: Insertion, rows: Iterable[Row]) -> None:
        """Insert rows from an iterable without holding all of them in memory."""
        left = iter(rows)
        first = list(islice(left, self.COPIED))
        if len(first) < self.COPIED:
            self.run_each(statement, first)
            return
        quote = self._dialect.identifier_preparer.quote
        columns = ", ".join(map(quote, statement.columns))
        with (
            self._cursor.connection.cursor() as cursor,
            cursor.copy(f"COPY {quote(statement.table)} ({columns}) FROM STDIN") as copy,
        ):
            for row in chain(first, left):
                copy.write_row(row)

    def insert_columns(self, statement: Insertion, columns: Sequence[Iterable[Any] | Same]) -> None:
        """Insert rows that are given as columns, at least one of which is no `Same`."""
        endless = (repeat(each.value) if isinstance(each, Same) else each for each in columns)
        self.insert(statement, zip(*endless, strict=False))
