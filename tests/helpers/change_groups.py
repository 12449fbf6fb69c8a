"""Several changes of a database in one transaction."""

from collections.abc import Sequence

from torc_framework.store.database.base import Database
from torc_framework.store.database.group_commit import Change, Outcome


def write_group(database: Database, changes: Sequence[Change], workflow_id: int | None = None) -> list[Outcome]:
    """Make changes of one workflow in one transaction; return the outcomes of those that were made."""
    return database.write_first_free([workflow_id], lambda _workflow_id: changes)
