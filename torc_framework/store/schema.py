"""Is the database at the version of this program? Make or migrate it if not.

The migrations under ``migrations/`` are the truth about older databases; a test holds their sum
equal to the tables. A new database is made from the tables directly and marked with the newest
version, and a database that is marked so is used as it is: alembic is imported only to migrate.
"""

from pathlib import Path
from typing import Any, Final

import sqlalchemy as sa

from torc_framework.store.access_tables import METADATA
from torc_framework.store.errors import DatabaseError
from torc_framework.store.probe import VERSION_TABLE

HEAD: Final = "0004"
"""Newest migration."""
MIGRATIONS: Final = Path(__file__).parent / "migrations"
_VERSION: Final = sa.table(VERSION_TABLE, sa.column("version_num"))


def prepare(connection: sa.Connection, path: Path) -> None:
    """Bring the database to the present version.

    Raises:
        DatabaseError: it was made by a newer version of this program.
    """
    raw: Any = connection.connection.driver_connection
    raw.execute("BEGIN IMMEDIATE")
    with connection.begin():
        version = _version(connection)
        if version is None:
            _create(connection)
            version = HEAD
    if version != HEAD:
        migrate(connection, version, path)


def _version(connection: sa.Connection) -> str | None:
    """Return the database's version, None for an empty database."""
    if not sa.inspect(connection).has_table(VERSION_TABLE):
        return None
    return str(connection.execute(sa.select(_VERSION.c.version_num)).scalar())


def _create(connection: sa.Connection) -> None:
    METADATA.create_all(connection, checkfirst=False)
    connection.exec_driver_sql(
        "CREATE TABLE alembic_version (version_num VARCHAR(32) NOT NULL, "
        "CONSTRAINT alembic_version_pkc PRIMARY KEY (version_num))"
    )
    connection.execute(sa.insert(_VERSION).values(version_num=HEAD))


def migrate(connection: sa.Connection, version: str, path: Path) -> None:
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
            f"cannot use database {path}: it has version {version!r}, this program knows up to {HEAD!r}; "
            "use a newer torc, or another database"
        ) from error
    raw: Any = connection.connection.driver_connection
    # A change of a table that others refer to makes it anew: with foreign keys on, that would
    # delete all rows that refer to it.
    raw.execute("PRAGMA foreign_keys=OFF")
    try:
        raw.execute("BEGIN IMMEDIATE")
        with connection.begin():
            config.attributes["connection"] = connection
            command.upgrade(config, "head")
            if broken := raw.execute("PRAGMA foreign_key_check").fetchall():
                raise DatabaseError(f"cannot migrate database {path}: references of {broken[0][0]!r} would break")
    finally:
        raw.execute("PRAGMA foreign_keys=ON")
