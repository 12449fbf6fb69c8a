"""The endpoint that adds user data and jobs to a stored workflow, all of them or none."""

from typing import Any, Final

from torc_framework.models.answers import Added
from torc_framework.models.plan import Addition
from torc_framework.server.endpoints import Call, Endpoint
from torc_framework.server.scopes import WORKFLOW
from torc_framework.store.additions import add_to_workflow
from torc_framework.store.sql import Tx


def _add(tx: Tx, call: Call) -> Any:
    return add_to_workflow(tx, call.id, call.body)


ADDITION_ENDPOINTS: Final = (
    Endpoint(
        "POST",
        "/workflows/{id}/additions",
        _add,
        changes=True,
        body=Addition,
        answers=Added,
        scope=WORKFLOW,
        summary="Add user data and jobs to a workflow in one transaction.",
    ),
)
