"""The declaration of the tables as classes of SQLModel; importing this package declares all of them.

`core` has the tables of workflows with their jobs, files, runners, results and events; `internal` those that no record
of the HTTP API shows.

The server does not import this package, because making the classes takes longer than all other imports of the store:
`docs/generate.py` writes the same tables as `torc_framework.store.tables`, which the store uses.
"""

from typing import Final

from torc_framework.store.table_classes import access, allocations, core, internal, recovery, verdicts
from torc_framework.store.table_classes.base import Base

__all__ = ["DECLARED", "access", "allocations", "core", "internal", "recovery", "verdicts"]

DECLARED: Final = Base.metadata
"""The tables of all classes."""
