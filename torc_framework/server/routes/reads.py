"""The declared endpoints that only read, for a process that calls few of them and is not to import all modules."""

from collections.abc import Iterator

from torc_framework.server.dispatch.endpoint import Endpoint


def read_endpoints() -> Iterator[Endpoint]:
    """Yield the endpoints that read without a body, the most used first; a module is imported when its turn comes."""
    return (each for each in _endpoints() if each.method == "GET" and not each.changes and each.body is None)


def _endpoints() -> Iterator[Endpoint]:
    from torc_framework.server.routes.records import record_endpoints

    yield from record_endpoints()
    from torc_framework.server.routes.progress import PROGRESS_ENDPOINTS

    yield from PROGRESS_ENDPOINTS
    from torc_framework.server.routes.workflows import WORKFLOW_ENDPOINTS

    yield from WORKFLOW_ENDPOINTS
    from torc_framework.server.routes.workflow_views import VIEW_ENDPOINTS

    yield from VIEW_ENDPOINTS
    from torc_framework.server.routes.recoveries import RECOVERY_ENDPOINTS
    from torc_framework.server.routes.verdicts import VERDICT_ENDPOINTS

    yield from (*VERDICT_ENDPOINTS, *RECOVERY_ENDPOINTS)
    from torc_framework.server.routes.access_groups import ACCESS_GROUP_ENDPOINTS
    from torc_framework.server.routes.export_import import EXPORT_IMPORT_ENDPOINTS

    yield from (*ACCESS_GROUP_ENDPOINTS, *EXPORT_IMPORT_ENDPOINTS)
