"""The endpoints of recoveries: one that carries a whole one out, and the record of all."""

from typing import Any, Final

from torc_framework.models.answers import Page
from torc_framework.models.recovery import RecoveryEntry, RecoveryOrder, RecoveryReceipt
from torc_framework.server.endpoints import MAX_LIMIT, PAGE_PARAMETERS, Call, Endpoint, page
from torc_framework.server.scopes import WORKFLOW
from torc_framework.store import recoveries
from torc_framework.store.sql import Tx


def _recover(tx: Tx, call: Call) -> Any:
    return recoveries.recover(tx, call.id, call.body)


def _recoveries(tx: Tx, call: Call) -> Any:
    offset, limit = call.query["offset"], min(call.query["limit"], MAX_LIMIT)
    entries, total = recoveries.recoveries(tx, call.id, offset, limit)
    return page(entries, offset, total)


RECOVERY_ENDPOINTS: Final = (
    Endpoint(
        "POST",
        "/workflows/{id}/recoveries",
        _recover,
        changes=True,
        body=RecoveryOrder,
        answers=RecoveryReceipt,
        scope=WORKFLOW,
        summary="Let failed jobs ask for more, run them and what hangs on them again: all of it or nothing.",
    ),
    Endpoint(
        "GET",
        "/workflows/{id}/recoveries",
        _recoveries,
        query=PAGE_PARAMETERS,
        answers=Page[RecoveryEntry],
        scope=WORKFLOW,
        summary="List what was done about failed jobs, oldest first.",
    ),
)
