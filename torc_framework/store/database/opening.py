"""Opens a database of either kind, by its path or URL."""

from torc_framework.store.database.base import Database
from torc_framework.store.database.probe import check_database, is_postgres


def open_database(database: str) -> Database:
    """Open the database that a path or URL names; a file that does not exist is made, with its folder.

    Raises:
        DatabaseError: it cannot be opened, belongs to another program, or was made by a newer version of this one.
    """
    check_database(database)
    if is_postgres(database):
        from torc_framework.store.database.postgres import PostgresDatabase  # needs the driver of PostgreSQL

        return PostgresDatabase.opened(database)
    from torc_framework.store.database.sqlite import SqliteDatabase

    return SqliteDatabase.opened(database)
