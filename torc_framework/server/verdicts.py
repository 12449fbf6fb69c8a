"""Endpoints of verdicts on jobs that wait in ``pending_failed``."""

from typing import Any, Final

from torc_framework.models.answers import Page as PageOf
from torc_framework.models.verdicts import VerdictOrder, VerdictReceipt, VerdictRecord
from torc_framework.server.endpoints import MAX_LIMIT, PAGE_PARAMETERS, Call, Endpoint, Parameter, page
from torc_framework.server.scopes import WORKFLOW
from torc_framework.store import verdicts
from torc_framework.store.records import Page
from torc_framework.store.sql import Tx


def _judge(tx: Tx, call: Call) -> Any:
    return verdicts.judge(tx, call.id, call.body, call.caller.name)


def _list(tx: Tx, call: Call) -> Any:
    wanted = Page(call.query["offset"], min(call.query["limit"], MAX_LIMIT))
    found, total = verdicts.find_verdicts(tx, call.id, wanted, call.query["job_id"])
    return page(found, wanted.offset, total)


VERDICT_ENDPOINTS: Final = (
    Endpoint(
        "POST",
        "/workflows/{id}/verdicts",
        _judge,
        changes=True,
        body=VerdictOrder,
        answers=VerdictReceipt,
        tags=["verdicts"],
        scope=WORKFLOW,
        summary="Retry or fail jobs that wait in `pending_failed`: all of them or none.",
    ),
    Endpoint(
        "GET",
        "/workflows/{id}/verdicts",
        _list,
        query={**PAGE_PARAMETERS, "job_id": Parameter(int)},
        answers=PageOf[VerdictRecord],
        tags=["verdicts"],
        scope=WORKFLOW,
        summary="List the verdicts that were given, oldest first.",
    ),
)
"""Verdicts: give them, see them."""
