"""The tables that the store uses are those that their classes declare."""

import sys
from subprocess import run
from typing import Any

import pytest
import sqlalchemy as sa
from sqlalchemy.dialects import postgresql, sqlite
from sqlalchemy.schema import CreateIndex, CreateTable

from torc_framework.store.table_classes import DECLARED
from torc_framework.store.tables import METADATA
from torc_framework.store.tables.metadata import set_index_conditions

DIALECTS: tuple[Any, ...] = (sqlite.dialect(), postgresql.dialect())  # type: ignore[no-untyped-call]  # SQLAlchemy's are


def statements(table: sa.Table) -> list[str]:
    """Return the statements that create a table and its indexes in both databases."""
    made: list[Any] = [
        CreateTable(table),
        *(CreateIndex(each) for each in sorted(table.indexes, key=lambda index: str(index.name))),
    ]
    for dialect in DIALECTS:
        set_index_conditions(table.metadata, dialect.name)
    return [str(each.compile(dialect=dialect)) for dialect in DIALECTS for each in made]


def defaults(table: sa.Table) -> dict[str, Any]:
    """Return what an insert in Python fills in, by column."""
    columns: list[Any] = list(table.columns)
    return {column.name: column.default.arg for column in columns if column.default is not None}


def test_each_class_has_a_table() -> None:
    """And each table a class."""
    assert set(METADATA.tables) == set(DECLARED.tables)


@pytest.mark.parametrize("name", sorted(DECLARED.tables))
def test_a_table_is_as_its_class_declares(name: str) -> None:
    """In both databases, with indexes, constraints and defaults."""
    used, declared = METADATA.tables[name], DECLARED.tables[name]
    assert statements(used) == statements(declared)
    assert defaults(used) == defaults(declared)


def test_the_server_makes_no_classes_of_tables() -> None:
    """Making them takes longer than all other imports of the store; nor does it import the other database's dialect."""
    unused = {"sqlmodel", "pydantic", "alembic", "sqlalchemy.dialects.postgresql"}
    code = f"import sys, torc_framework.server.process.app; print(sorted({unused} & set(sys.modules)))"
    assert run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.strip() == "[]"
