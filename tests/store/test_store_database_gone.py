"""The file of a SQLite database is deleted, renamed, replaced or damaged while it is open."""

import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
import sqlalchemy as sa

from torc_framework.models.records import WorkflowRecord
from torc_framework.store.database.base import Database
from torc_framework.store.database.opening import open_database
from torc_framework.store.errors import DatabaseError, DatabaseGoneError
from torc_framework.store.tables import core as t
from torc_framework.store.workflows.plans import create_workflow


def write(database: Database) -> int:
    with database.write() as tx:
        return create_workflow(tx, WorkflowRecord(name="w", user="u"))


def count(database: Database) -> int:
    with database.read() as tx:
        return tx.connection.execute(sa.select(sa.func.count()).select_from(t.WORKFLOW)).scalar() or 0


def replaced(path: Path) -> None:
    shutil.copy(path, path.with_name("copy"))
    path.rename(path.with_name("away"))
    path.with_name("copy").rename(path)


def renamed(path: Path) -> None:
    path.rename(path.with_name("away"))


@pytest.mark.parametrize(
    ("happen", "reason"),
    [(renamed, "No such file"), (Path.unlink, "No such file"), (replaced, "another file has its name")],
)
def test_a_file_that_is_gone_is_noticed(
    sqlite: Database, tmp_path: Path, happen: Callable[[Path], None], reason: str
) -> None:
    """Reads and changes are refused, and no new file is made."""
    path = tmp_path / "torc.db"
    write(sqlite)
    assert count(sqlite) == 1
    happen(path)
    was_there = path.exists()
    for act in (write, count, lambda database: database.check()):
        with pytest.raises(DatabaseGoneError, match=rf"database .*torc\.db is gone: {reason}"):
            act(sqlite)
    with pytest.raises(DatabaseGoneError), sqlite.write_if_free():
        pass
    with pytest.raises(DatabaseGoneError), sqlite.write_bulk():
        pass
    assert sqlite.others_committed()
    assert path.exists() == was_there


def test_a_file_that_is_put_back_is_used_again(sqlite: Database, tmp_path: Path) -> None:
    """Earlier commits are still there, and later ones follow them."""
    path = tmp_path / "torc.db"
    first = write(sqlite)
    renamed(path)
    with pytest.raises(DatabaseGoneError):
        write(sqlite)
    (tmp_path / "away").rename(path)
    assert write(sqlite) == first + 1
    assert count(sqlite) == 2


def test_a_damaged_file_is_told(sqlite: Database, tmp_path: Path) -> None:
    """A damaged file raises `DatabaseError` with the driver's message."""
    write(sqlite)
    sqlite.close()
    path = tmp_path / "torc.db"
    opened = open_database(str(path))
    with path.open("r+b") as file:
        file.seek(4096)
        file.write(b"\xff" * (path.stat().st_size - 4096))
    try:
        with pytest.raises(DatabaseError, match=r"cannot use database .*torc\.db: .*malformed"):
            _use(opened)
    finally:
        opened.close()


def _use(database: Database) -> None:
    for _ in range(3):
        write(database)
        count(database)
