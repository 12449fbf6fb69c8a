"""The tables of the database; importing this package declares all of them.

`core` has the tables of workflows with their jobs, files, runners, results and events; `internal` those that no record
of the HTTP API shows.
"""

from typing import Final

from torc_framework.store.tables import access, allocations, core, internal, recovery, verdicts
from torc_framework.store.tables.base import Base

__all__ = ["COUNTED", "METADATA", "access", "allocations", "core", "internal", "recovery", "verdicts"]

METADATA: Final = Base.metadata
COUNTED: Final = frozenset(
    table
    for table in METADATA.sorted_tables
    if "id" in table.c and table is not core.EVENT and not table.c["id"].foreign_keys
)
"""Tables whose ids come from `internal.IdCounterRow`.

The database itself numbers the events, of which there are many, and never uses a number twice. The id of a workflow's
status is the workflow's.
"""
