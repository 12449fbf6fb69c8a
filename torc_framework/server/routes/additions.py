"""Endpoints that add user data and jobs, or schedulers, to a stored workflow. Each request is one transaction.

The modules that do the work are imported for the first call of each, because the start of a server does without.
"""

from typing import Any, Final

from torc_framework.models.plan import Addition, SchedulerOrder
from torc_framework.models.responses import Added, Rescheduled
from torc_framework.server.auth.permissions import WORKFLOW_IN_PATH
from torc_framework.server.dispatch.endpoint import Endpoint
from torc_framework.server.http.endpoint_calls import EndpointCall
from torc_framework.store.database.sql import Tx


def _add(tx: Tx, call: EndpointCall) -> Any:
    from torc_framework.store.workflows.additions import add_to_workflow

    return add_to_workflow(tx, call.id, call.body)


def _reschedule(tx: Tx, call: EndpointCall) -> Any:
    from torc_framework.store.recovery.rescheduling import reschedule

    return reschedule(tx, call.id, call.body)


ADDITION_ENDPOINTS: Final = (
    Endpoint(
        "POST",
        "/workflows/{id}/additions",
        _add,
        changes=True,
        body=Addition,
        response=Added,
        permission=WORKFLOW_IN_PATH,
        summary="Add user data and jobs to a workflow in one transaction.",
    ),
    Endpoint(
        "POST",
        "/workflows/{id}/schedulers",
        _reschedule,
        changes=True,
        body=SchedulerOrder,
        response=Rescheduled,
        permission=WORKFLOW_IN_PATH,
        summary="Bind jobs to new schedulers, of which actions then request nodes, in one transaction.",
    ),
)
