"""Everything that a worker for large bodies can be asked to do, by name."""

from collections.abc import Mapping

from torc_framework.server.async_routes.runner_api import runner_api_operations
from torc_framework.server.dispatch.endpoint import endpoint_name, endpoint_operation
from torc_framework.server.process.app import all_endpoints
from torc_framework.server.process.large_body_worker import Operation
from torc_framework.store.database.base import Database


def large_body_operations(database: Database) -> Mapping[str, Operation]:
    """Return the operations on one database."""
    mounted = {
        endpoint_name(each): endpoint_operation(each, database) for each in all_endpoints() if each.body is not None
    }
    return {**mounted, **runner_api_operations(database)}
