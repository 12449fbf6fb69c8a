"""PostgreSQL's SQL, and a transaction that speaks it, made to hold what SQLite holds.

Integers have 64 bits. Booleans are numbers, in the tables and on the wire. JSON comes and goes as
text. Texts are compared and sorted by their code points, whatever the database's locale.
"""

import json
import re
from collections.abc import Iterable, Sequence
from itertools import chain, islice
from typing import Any, Final

import psycopg
import sqlalchemy as sa
from psycopg.adapt import Dumper
from psycopg.types.string import TextLoader
from sqlalchemy.dialects import registry
from sqlalchemy.dialects.postgresql.base import PGDDLCompiler, PGTypeCompiler
from sqlalchemy.dialects.postgresql.psycopg import PGDialect_psycopg

from torc_framework.store.database.sql import Insertion, Row, Statement, Tx

DIALECT_URL: Final = "postgresql+torc://"
"""Names the dialect to SQLAlchemy; where the database is, is said otherwise."""


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
        psycopg.DataError: a text has a NUL, which would make the rest of the value impossible to look into.
    """
    text = json.dumps(value)
    if _NUL.search(text):
        raise psycopg.DataError("PostgreSQL text fields cannot contain NUL (0x00) bytes")
    return text


class _Types(PGTypeCompiler):
    def visit_INTEGER(self, type_: Any, **options: Any) -> str:  # noqa: N802
        return "BIGINT"

    def visit_BOOLEAN(self, type_: Any, **options: Any) -> str:  # noqa: N802
        return "SMALLINT"


class _Tables(PGDDLCompiler):
    def get_column_specification(self, column: sa.Column[Any], **options: Any) -> str:
        made: str = super().get_column_specification(column, **options)  # type: ignore[no-untyped-call]
        return f'{made} COLLATE "C"' if column.type._type_affinity is sa.String else made


class PostgresDialect(PGDialect_psycopg):
    """What SQLAlchemy needs to know to write our SQL."""

    supports_statement_cache = True
    supports_native_boolean = False
    supports_native_json_serialization = False
    supports_native_json_deserialization = False
    type_compiler_cls = _Types
    ddl_compiler = _Tables
    colspecs: Any = {  # noqa: RUF012
        **PGDialect_psycopg.colspecs,
        sa.Integer: _BigInteger,
        sa.Boolean: _Flag,
        sa.JSON: _Json,
    }

    def __init__(self, **options: Any) -> None:
        own = {"paramstyle": "format", "use_native_hstore": False, "json_serializer": _json_text}
        super().__init__(**own, **options)  # type: ignore[no-untyped-call]


registry.register("postgresql.torc", __name__, "PostgresDialect")


class _FlagDumper(Dumper):
    """Sends a boolean as the number that the tables have."""

    oid = psycopg.adapters.types["int2"].oid

    def dump(self, obj: bool) -> bytes:
        return b"1" if obj else b"0"


def register_adapters(connection: "psycopg.Connection[Any]") -> None:
    """Let raw values be the same as SQLite's on this connection."""
    connection.adapters.register_dumper(bool, _FlagDumper)
    connection.adapters.register_loader("json", TextLoader)


class PostgresTx(Tx):
    """One transaction."""

    COPIED: Final = 20
    """So many rows and more are copied: that costs two answers of the server, and little a row."""

    def run_each(self, statement: Statement, rows: Sequence[Row]) -> int:
        """Run a change once per row of values; return the number of rows touched."""
        return self.run(statement, *rows[0]) if len(rows) == 1 else super().run_each(statement, rows)

    def insert(self, statement: Insertion, rows: Iterable[Row]) -> None:
        """Insert many rows, taken one after another."""
        left = iter(rows)
        first = list(islice(left, self.COPIED))
        if len(first) < self.COPIED:
            self.run_each(statement, first)
            return
        quote = self._dialect.identifier_preparer.quote
        columns = ", ".join(map(quote, statement.columns))
        with self._cursor.copy(f"COPY {quote(statement.table)} ({columns}) FROM STDIN") as copy:
            for row in chain(first, left):
                copy.write_row(row)
