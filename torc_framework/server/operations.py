"""Everything that a worker for large bodies can be asked to do, by name."""

from collections.abc import Mapping

from torc_framework.server.app import all_endpoints
from torc_framework.server.body_worker import Operation
from torc_framework.server.endpoints import name_of, operation_of
from torc_framework.server.hot import hot_operations
from torc_framework.store.database import Database


def operations(database: Database) -> Mapping[str, Operation]:
    """Return the operations on one database."""
    mounted = {name_of(each): operation_of(each, database) for each in all_endpoints() if each.body is not None}
    return {**mounted, **hot_operations(database)}
