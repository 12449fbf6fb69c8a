"""Is a database file one that we can use? Asked before anything heavy is loaded.

Plain sqlite3, so that a wrong path is told in a moment and not after a second of imports.
"""

import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Final

from torc_framework.store.errors import DatabaseError

VERSION_TABLE: Final = "alembic_version"
_SCHEME: Final = "sqlite:"


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
        raise DatabaseError(f"cannot use database {database!r}: expected the path of a file or a sqlite: URL")
    if not text or text == ":memory:":
        raise DatabaseError(f"cannot use database {database!r}: it must be a file, so that nothing is lost")
    return Path(text).expanduser()


def check_database(database: str) -> str | None:
    """Return the version of a database, None for a new one; its folder is made.

    Raises:
        DatabaseError: it cannot be opened, or is no database of ours.
    """
    path = database_path(database)
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with closing(sqlite3.connect(path, timeout=30)) as connection:
            names = [row[0] for row in connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'")]
            if VERSION_TABLE in names:
                return str(connection.execute(f"SELECT version_num FROM {VERSION_TABLE}").fetchone()[0])
    except (OSError, sqlite3.Error) as error:
        raise DatabaseError(f"cannot open database {path}: {error}") from error
    if names:
        raise DatabaseError(f"cannot use database {path}: it belongs to another program (it has a table {names[0]!r})")
    return None
