"""The endpoints that add to a stored workflow: user data and jobs, or schedulers; all of it or nothing."""

from typing import Any, Final

from torc_framework.models.answers import Added, Rescheduled
from torc_framework.models.plan import Addition, SchedulerOrder
from torc_framework.server.endpoints import Call, Endpoint
from torc_framework.server.scopes import WORKFLOW
from torc_framework.store.additions import add_to_workflow
from torc_framework.store.rescheduling import reschedule
from torc_framework.store.sql import Tx


def _add(tx: Tx, call: Call) -> Any:
    return add_to_workflow(tx, call.id, call.body)


def _reschedule(tx: Tx, call: Call) -> Any:
    return reschedule(tx, call.id, call.body)


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
    Endpoint(
        "POST",
        "/workflows/{id}/schedulers",
        _reschedule,
        changes=True,
        body=SchedulerOrder,
        answers=Rescheduled,
        scope=WORKFLOW,
        summary="Bind jobs to new schedulers, and ask for nodes by these from now on, in one transaction.",
    ),
)
