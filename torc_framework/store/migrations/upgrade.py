"""Creates the tables of a new database, and brings an older database to the version of this program.

The files under ``versions/`` describe the tables of older databases; a test compares their sum with the tables. A new
database is made from the tables directly and gets the newest version. A database of the newest version is used as it
is: alembic is imported for a migration only.
"""

from collections.abc import Callable
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Final

import sqlalchemy as sa

from torc_framework.store.errors import DatabaseError
from torc_framework.store.migrations import VERSION_TABLE
from torc_framework.store.tables import COUNTED, METADATA
from torc_framework.store.tables.internal import ID_COUNTER

MIGRATIONS: Final = Path(__file__).parent
HEAD: Final = max(path.name for path in (MIGRATIONS / "versions").glob("[0-9]*.py"))[:4]
"""The newest version: each file's name begins with its version, four digits, in the order of the migrations."""
_VERSION: Final = sa.table(VERSION_TABLE, sa.column("version_num"))


BeginSchemaChange = Callable[..., AbstractContextManager[None]]
"""Begins a transaction that changes the tables of a connection; ``migrating=True`` if they have rows."""


def create_or_migrate(connection: sa.Connection, name: str, begin: BeginSchemaChange) -> None:
    """Bring the database to the present version.

    Raises:
        DatabaseError: it was made by a newer version of this program.
    """
    with begin(connection):
        version = _version(connection)
        if version is None:
            _create(connection)
            version = HEAD
    if version != HEAD:
        migrate(connection, version, name, begin)


def _version(connection: sa.Connection) -> str | None:
    """Return the database's version, None if it is empty."""
    if not sa.inspect(connection).has_table(VERSION_TABLE):
        return None
    return str(connection.execute(sa.select(_VERSION.c.version_num)).scalar())


def _create(connection: sa.Connection) -> None:
    METADATA.create_all(connection, checkfirst=False)
    insert_id_counters(connection)
    connection.exec_driver_sql(
        "CREATE TABLE alembic_version (version_num VARCHAR(32) NOT NULL, "
        "CONSTRAINT alembic_version_pkc PRIMARY KEY (version_num))"
    )
    connection.execute(sa.insert(_VERSION).values(version_num=HEAD))


def insert_id_counters(connection: sa.Connection) -> None:
    """Insert the rows of ``id_counter`` for a database without ids; PostgreSQL has sequences instead."""
    if connection.dialect.name != "sqlite":
        return
    counters = [{"table_name": table.name, "last_id": 0} for table in COUNTED]
    connection.execute(sa.insert(ID_COUNTER), counters)


def migrate(connection: sa.Connection, version: str, name: str, begin: BeginSchemaChange) -> None:
    """Bring a database of an older version to the present one; ``base`` is the version of an empty database.

    Raises:
        DatabaseError: this program does not know the version.
    """
    from alembic import command
    from alembic.config import Config
    from alembic.script import ScriptDirectory
    from alembic.util import CommandError

    config = Config()
    config.set_main_option("script_location", str(MIGRATIONS).replace("%", "%%"))
    try:
        ScriptDirectory.from_config(config).get_revisions(version)
    except CommandError as error:
        raise DatabaseError(
            f"cannot use database {name}: it has version {version!r}, this program knows up to {HEAD!r}; "
            "use a newer torc, or another database"
        ) from error
    with begin(connection, migrating=True):
        config.attributes["connection"] = connection
        command.upgrade(config, "head")
