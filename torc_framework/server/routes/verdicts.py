"""Endpoints of verdicts on jobs that wait in ``pending_failed``: give them, and list them.

The modules that do the work are imported for the first call of each, because the start of a server does without.
"""

from typing import Any, Final

from torc_framework.models.responses import Page as PageOf
from torc_framework.models.verdicts import VerdictOrder, VerdictReceipt, VerdictRecord
from torc_framework.server.auth.permissions import WORKFLOW_IN_PATH
from torc_framework.server.dispatch.endpoint import Endpoint, page, page_request
from torc_framework.server.http.endpoint_calls import ID_PAGE_PARAMETERS, EndpointCall, Parameter
from torc_framework.store.database.sql import Tx


def _judge(tx: Tx, call: EndpointCall) -> Any:
    from torc_framework.store.recovery import verdicts

    return verdicts.judge(tx, call.id, call.body, call.caller.name)


def _list(tx: Tx, call: EndpointCall) -> Any:
    from torc_framework.store.recovery import verdicts

    wanted = page_request(call)
    found, total = verdicts.find_verdicts(tx, call.id, wanted, call.query["job_id"])
    return page(found, wanted.offset, total)


VERDICT_ENDPOINTS: Final = (
    Endpoint(
        "POST",
        "/workflows/{id}/verdicts",
        _judge,
        changes=True,
        body=VerdictOrder,
        response=VerdictReceipt,
        tags=["verdicts"],
        permission=WORKFLOW_IN_PATH,
        summary="Retry or fail jobs that wait in `pending_failed`: all of them or none.",
    ),
    Endpoint(
        "GET",
        "/workflows/{id}/verdicts",
        _list,
        query={**ID_PAGE_PARAMETERS, "job_id": Parameter(int)},
        response=PageOf[VerdictRecord],
        tags=["verdicts"],
        permission=WORKFLOW_IN_PATH,
        summary="List the verdicts that were given, oldest first.",
    ),
)
"""All endpoints of verdicts."""
