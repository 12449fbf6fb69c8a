"""Recognises errors of a database that has no room for a change."""

import sqlite3
from typing import Final

_POSTGRES_DISK_FULL: Final = "53100"
"""SQLSTATE ``disk_full`` (PostgreSQL, "Error Codes")."""


def is_disk_full(error: BaseException | None) -> bool:
    """Return whether a full disk, or the largest size of the database, caused an error."""
    while error is not None:
        source = getattr(error, "orig", None) or error
        if (getattr(source, "sqlite_errorcode", None) or 0) & 0xFF == sqlite3.SQLITE_FULL:
            return True
        if getattr(source, "sqlstate", None) == _POSTGRES_DISK_FULL:
            return True
        error = error.__cause__
    return False
