"""The tables of the database; importing this package makes all of them.

`docs/generate.py` writes the modules with tables from the classes in `torc_framework.store.table_classes`, where each
table is declared and described; a test compares the two.
"""

from typing import Final

from torc_framework.store.tables import access, allocations, core, internal, recovery, verdicts
from torc_framework.store.tables.metadata import METADATA

__all__ = ["COUNTED", "METADATA", "access", "allocations", "core", "internal", "recovery", "verdicts"]

COUNTED: Final = frozenset(
    table
    for table in METADATA.sorted_tables
    if "id" in table.c and table is not core.EVENT and not table.c["id"].foreign_keys
)
"""Tables whose ids come from the table `internal.ID_COUNTER`, or from their sequences on PostgreSQL.

The database itself numbers the events, of which there are many, and never uses a number twice. The id of a workflow's
status is the workflow's.
"""
