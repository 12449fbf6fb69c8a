"""Endpoints of recoveries: carry one out, and list those of a workflow.

The modules that do the work are imported for the first call of each, because the start of a server does without.
"""

from typing import Any, Final

from torc_framework.models.recovery import RecoveryEntry, RecoveryOrder, RecoveryReceipt
from torc_framework.models.responses import Page
from torc_framework.server.auth.permissions import WORKFLOW_IN_PATH
from torc_framework.server.dispatch.endpoint import Endpoint, page, page_request
from torc_framework.server.http.endpoint_calls import ID_PAGE_PARAMETERS, EndpointCall
from torc_framework.store.database.sql import Tx


def _recover(tx: Tx, call: EndpointCall) -> Any:
    from torc_framework.store.recovery import recoveries

    return recoveries.recover(tx, call.id, call.body)


def _recoveries(tx: Tx, call: EndpointCall) -> Any:
    from torc_framework.store.recovery import recoveries

    wanted = page_request(call)
    entries, total = recoveries.find_recoveries(tx, call.id, wanted)
    return page(entries, wanted.offset, total)


RECOVERY_ENDPOINTS: Final = (
    Endpoint(
        "POST",
        "/workflows/{id}/recoveries",
        _recover,
        changes=True,
        body=RecoveryOrder,
        response=RecoveryReceipt,
        permission=WORKFLOW_IN_PATH,
        summary="Raise the requirements of failed jobs and reset them with their dependents, in one transaction.",
    ),
    Endpoint(
        "GET",
        "/workflows/{id}/recoveries",
        _recoveries,
        query=ID_PAGE_PARAMETERS,
        response=Page[RecoveryEntry],
        permission=WORKFLOW_IN_PATH,
        summary="List the recoveries of a workflow's failed jobs, oldest first.",
    ),
)
