"""The table of all declared endpoints."""

from torc_framework.server.dispatch.endpoint import Endpoint
from torc_framework.server.routes.access_groups import ACCESS_GROUP_ENDPOINTS
from torc_framework.server.routes.additions import ADDITION_ENDPOINTS
from torc_framework.server.routes.export_import import EXPORT_IMPORT_ENDPOINTS
from torc_framework.server.routes.job_steps import JOB_STEP_ENDPOINTS
from torc_framework.server.routes.progress import PROGRESS_ENDPOINTS
from torc_framework.server.routes.records import record_endpoints
from torc_framework.server.routes.recoveries import RECOVERY_ENDPOINTS
from torc_framework.server.routes.verdicts import VERDICT_ENDPOINTS
from torc_framework.server.routes.workflow_views import VIEW_ENDPOINTS
from torc_framework.server.routes.workflows import WORKFLOW_ENDPOINTS


def all_endpoints() -> list[Endpoint]:
    """Return all endpoints that are mounted from declarations; the first are found fastest."""
    return [
        *JOB_STEP_ENDPOINTS,
        *WORKFLOW_ENDPOINTS,
        *PROGRESS_ENDPOINTS,
        *VIEW_ENDPOINTS,
        *VERDICT_ENDPOINTS,
        *ADDITION_ENDPOINTS,
        *RECOVERY_ENDPOINTS,
        *EXPORT_IMPORT_ENDPOINTS,
        *record_endpoints(),
        *ACCESS_GROUP_ENDPOINTS,
    ]
