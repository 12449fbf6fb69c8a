"""The check whether a path or URL names a database that this program can use, before SQLAlchemy is imported.

It uses the plain driver, so that a wrong path or URL is refused at once and not after a second of imports.
"""

import os
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Final

from torc_framework.store.errors import DatabaseError
from torc_framework.store.migrations import VERSION_TABLE
from torc_framework.system.private_files import open_private

_SCHEME: Final = "sqlite:"
_POSTGRES: Final = ("postgresql:", "postgresql+psycopg:", "postgres:")


def is_postgres(database: str) -> bool:
    """Return whether this is the URL of a PostgreSQL database."""
    return database.startswith(_POSTGRES)


def is_url(database: str) -> bool:
    """Return whether this is a URL, not a plain path."""
    return is_postgres(database) or database.startswith(_SCHEME) or "://" in database


def database_path(database: str) -> Path:
    """Return the file that a plain path or a ``sqlite:`` URL names.

    ``sqlite:jobs.db`` and ``sqlite://jobs.db`` are relative, ``sqlite:///srv/jobs.db`` is absolute.

    Raises:
        DatabaseError: it names no file, or another kind of database.
    """
    text = database
    if text.startswith(_SCHEME):
        text = text.removeprefix(_SCHEME).removeprefix("//").split("?")[0]
    elif "://" in text:
        scheme = text.partition("://")[0]  # the rest may hold a password
        raise DatabaseError(
            f"cannot use a {scheme}: database: expected the path of a file, or a sqlite: or postgresql: URL"
        )
    if not text or text == ":memory:":
        raise DatabaseError(f"cannot use database {database!r}: it must be a file, so that nothing is lost")
    return Path(text).expanduser()


def check_database(database: str) -> str | None:
    """Return the version of a database, None for a new one; make the folder of a file.

    Raises:
        DatabaseError: it cannot be opened, or belongs to another program.
    """
    if is_postgres(database):
        from torc_framework.store.database.postgres_address import PostgresAddress

        address = PostgresAddress.parse(database)
        name, (tables, version) = address.name, address.tables_and_version()
    else:
        path = database_path(database)
        name, (tables, version) = str(path), _tables_and_version(path)
    if tables and version is None:
        raise DatabaseError(f"cannot use database {name}: it belongs to another program (it has a table {tables[0]!r})")
    return version


def _tables_and_version(path: Path) -> tuple[list[str], str | None]:
    """Return the names of a file's tables, and its version, None if it belongs to another program."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        os.close(open_private(path, os.O_RDONLY))  # SQLite gives the files that it makes beside it the same mode
        with closing(sqlite3.connect(path, timeout=30)) as connection:
            names = [row[0] for row in connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'")]
            if VERSION_TABLE not in names:
                return names, None
            return names, str(connection.execute(f"SELECT version_num FROM {VERSION_TABLE}").fetchone()[0])
    except (OSError, sqlite3.Error) as error:
        raise DatabaseError(f"cannot open database {path}: {error}") from error
