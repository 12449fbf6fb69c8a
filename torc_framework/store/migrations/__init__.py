"""The versions of the database's tables, and the steps from each to the next (Alembic)."""

from typing import Final

VERSION_TABLE: Final = "alembic_version"
"""Name of the table that holds the version of a database."""
