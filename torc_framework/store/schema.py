"""Is the database at the version of this program? Make or migrate it if not.

The migrations under ``migrations/`` are the truth about older databases; a test holds their sum
equal to the tables. A new database is made from the tables directly and marked with the newest
version, and a database that is marked so is used as it is: alembic is imported only to migrate.
"""

from collections.abc import Callable
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Final

import sqlalchemy as sa

from torc_framework.store.database.probe import VERSION_TABLE
from torc_framework.store.errors import DatabaseError
from torc_framework.store.tables.internal import COUNTED, ID_COUNTER, METADATA

MIGRATIONS: Final = Path(__file__).parent / "migrations"
HEAD: Final = max(path.name for path in (MIGRATIONS / "versions").glob("[0-9]*.py"))[:4]
"""Newest migration: their files are named by four digits, and follow each other in this order."""
_VERSION: Final = sa.table(VERSION_TABLE, sa.column("version_num"))


BeginSchemaChange = Callable[..., AbstractContextManager[None]]
"""Begins a change of the tables of a connection; with ``migrating=True``, of tables that have rows."""


def prepare(connection: sa.Connection, name: str, alone: BeginSchemaChange) -> None:
    """Bring the database to the present version.

    Raises:
        DatabaseError: it was made by a newer version of this program.
    """
    with alone(connection):
        version = _version(connection)
        if version is None:
            _create(connection)
            version = HEAD
    if version != HEAD:
        migrate(connection, version, name, alone)


def _version(connection: sa.Connection) -> str | None:
    """Return the database's version, None for an empty database."""
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
    """Say that no ids of an empty database have been used."""
    counters = [{"table_name": table.name, "last_id": 0} for table in COUNTED]
    connection.execute(sa.insert(ID_COUNTER), counters)


def migrate(connection: sa.Connection, version: str, name: str, alone: BeginSchemaChange) -> None:
    """Bring a database of an older version to the present one; ``base`` is an empty one.

    Raises:
        DatabaseError: the version is not known here.
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
    with alone(connection, migrating=True):
        config.attributes["connection"] = connection
        command.upgrade(config, "head")
