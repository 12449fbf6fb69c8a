"""Databases are created, recognized and migrated; the tables have the fields of the records."""

import sqlite3
import subprocess
import sys
from contextlib import closing
from pathlib import Path
from typing import Any, get_args

import pytest
import sqlalchemy as sa
from alembic.autogenerate import compare_metadata
from alembic.migration import MigrationContext
from alembic.script import ScriptDirectory
from attrs import NOTHING, Attribute, fields

from torc_framework.models import records as r
from torc_framework.store.database.base import Database
from torc_framework.store.database.opening import open_database
from torc_framework.store.database.sqlite import schema_transaction
from torc_framework.store.errors import DatabaseError
from torc_framework.store.migrations import upgrade
from torc_framework.store.table_classes.core import RELATIONS
from torc_framework.store.tables import METADATA, access
from torc_framework.store.tables import core as t
from torc_framework.store.tables.allocations import SCHEDULED_COMPUTE_NODE

TABLES: dict[type[Any], sa.Table] = {
    r.WorkflowRecord: t.WORKFLOW,
    r.WorkflowStatusRecord: t.WORKFLOW_STATUS,
    r.JobRecord: t.JOB,
    r.FileRecord: t.FILE,
    r.UserDataRecord: t.USER_DATA,
    r.ResourceRequirementsRecord: t.RESOURCE_REQUIREMENTS,
    r.FailureHandlerRecord: t.FAILURE_HANDLER,
    r.SlurmSchedulerRecord: t.SLURM_SCHEDULER,
    r.LocalSchedulerRecord: t.LOCAL_SCHEDULER,
    r.WorkflowActionRecord: t.WORKFLOW_ACTION,
    r.ComputeNodeRecord: t.COMPUTE_NODE,
    r.ScheduledComputeNodeRecord: SCHEDULED_COMPUTE_NODE,
    r.ResultRecord: t.RESULT,
    r.EventRecord: t.EVENT,
    r.AccessGroupRecord: access.ACCESS_GROUP,
    r.UserGroupMembershipRecord: access.USER_GROUP_MEMBERSHIP,
    r.WorkflowAccessGroupRecord: access.WORKFLOW_ACCESS_GROUP,
}
FIELDS = [(record, attribute) for record in TABLES for attribute in fields(record)]


def test_every_record_has_a_table() -> None:
    """Each class of records has a table."""
    assert set(TABLES) == set(get_args(r.Record))


@pytest.mark.parametrize(("record", "attribute"), FIELDS, ids=lambda value: getattr(value, "name", None))
def test_a_field_is_a_column(record: type[Any], attribute: "Attribute[Any]") -> None:
    """Each field has a column that is nullable if it is optional, with its default, or a table of its own."""
    table = TABLES[record]
    if attribute.name in RELATIONS:
        assert RELATIONS[attribute.name] in METADATA.tables
        return
    column = table.c[attribute.name]
    optional = type(None) in get_args(attribute.type) or (attribute.type is Any and attribute.default is not NOTHING)
    assert column.nullable == (optional and attribute.name != "id")
    assert isinstance(column.default, sa.ColumnDefault | None)
    default = None if column.default is None else column.default.arg
    assert default == (None if attribute.default is NOTHING else attribute.default)


def test_migrations_make_the_tables(tmp_path: Path) -> None:
    """All migrations, one after another, create the tables as they are declared."""
    engine = sa.create_engine(f"sqlite:///{tmp_path / 'migrated.db'}")
    with engine.connect() as connection:
        upgrade.migrate(connection, "base", "new", schema_transaction)
        with connection.begin():
            assert compare_metadata(MigrationContext.configure(connection), METADATA) == []
            made = _sql(connection)
    with engine.connect() as connection, connection.begin():
        METADATA.drop_all(connection)
        METADATA.create_all(connection)
        assert made == _sql(connection)
    engine.dispose()


def _sql(connection: sa.Connection) -> dict[str, list[str]]:
    rows = connection.exec_driver_sql("SELECT name, sql FROM sqlite_master WHERE name NOT LIKE 'alembic%'")
    return {
        name: sorted((sql or "").replace(",", " ").replace('"', "").replace(")", " )").split()) for name, sql in rows
    }


def test_the_newest_migration_is_known() -> None:
    """New databases get the version of the last migration."""
    assert ScriptDirectory(str(upgrade.MIGRATIONS)).get_heads() == [upgrade.HEAD]


def test_a_present_database_is_used_without_alembic(tmp_path: Path) -> None:
    """Alembic is imported for a migration only."""
    code = (
        "import sys; from torc_framework.store.database.opening import open_database; "
        "[open_database(sys.argv[1]).close() for _ in range(2)]; print('alembic' in sys.modules)"
    )
    done = subprocess.run(
        [sys.executable, "-c", code, str(tmp_path / "torc.db")], capture_output=True, text=True, check=True
    )
    assert done.stdout.strip() == "False"


def test_a_newer_database_is_refused(tmp_path: Path) -> None:
    """The message has the version, and the database is not changed."""
    path = tmp_path / "torc.db"
    open_database(str(path)).close()
    with closing(sqlite3.connect(path)) as connection, connection:
        connection.execute("UPDATE alembic_version SET version_num = '9999'")
    with pytest.raises(DatabaseError, match=r"version '9999'.*use a newer torc"):
        open_database(str(path))


def test_another_programs_database_is_refused(tmp_path: Path) -> None:
    """A database with tables of another program is not written to."""
    path = tmp_path / "other.db"
    with closing(sqlite3.connect(path)) as connection, connection:
        connection.execute("CREATE TABLE recipes (id INTEGER)")
    with pytest.raises(DatabaseError, match="belongs to another program"):
        open_database(str(path))


def test_a_file_that_is_no_database_is_refused(tmp_path: Path) -> None:
    """The message has the file and the driver's error."""
    path = tmp_path / "notes.txt"
    path.write_text("not a database, only notes\n" * 100)
    with pytest.raises(DatabaseError, match=r"notes\.txt: file is not a database"):
        open_database(str(path))


def test_a_folder_is_refused(tmp_path: Path) -> None:
    """The path of a folder is refused."""
    with pytest.raises(DatabaseError, match="cannot open database"):
        open_database(str(tmp_path))


@pytest.mark.parametrize("url", ["mysql://server/db", "sqlite::memory:", ":memory:", ""])
def test_what_is_no_database_is_refused(url: str) -> None:
    """URLs other than of SQLite files and PostgreSQL are refused."""
    with pytest.raises(DatabaseError, match="cannot use"):
        open_database(url)


@pytest.mark.parametrize("form", ["{}", "sqlite:{}", "sqlite://{}"])
def test_a_missing_folder_is_made(tmp_path: Path, form: str) -> None:
    """The folder of the database is made; the path may be a URL."""
    path = tmp_path / "deep" / "er" / "torc.db"
    open_database(form.format(path)).close()
    assert path.is_file()


def test_settings_are_durable(sqlite: Database) -> None:
    """Every connection uses WAL and full synchronisation, and checks references."""
    with sqlite.read() as tx:
        pragma = {
            name: tx.connection.exec_driver_sql(f"PRAGMA {name}").scalar()
            for name in ("journal_mode", "synchronous", "foreign_keys")
        }
    assert pragma == {"journal_mode": "wal", "synchronous": 2, "foreign_keys": 1}


def test_migrations_follow_each_other() -> None:
    """The migrations are one line without branches, in the order of the files' names."""
    script = ScriptDirectory(str(upgrade.MIGRATIONS))
    assert [step.revision for step in script.walk_revisions()] == [
        path.name[:4] for path in sorted((upgrade.MIGRATIONS / "versions").glob("[0-9]*.py"), reverse=True)
    ]
