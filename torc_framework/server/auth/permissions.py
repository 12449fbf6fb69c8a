"""Permissions: who may call an endpoint. Every endpoint declares one.

Most of them find the workflow that a request is about, which must belong to the caller or be shared with one of the
caller's groups. The check runs in the transaction of the endpoint's function, before that function.
"""

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Final

from attrs import frozen

from torc_framework.store.access.checks import (
    check_admin,
    check_group_admin,
    check_own_name,
    check_owner_kept,
    check_sharing,
    check_workflow,
    record_access_check,
)
from torc_framework.store.database.base import NEW_WORKFLOW
from torc_framework.store.database.sql import Tx
from torc_framework.store.records.kind import RecordKind

if TYPE_CHECKING:
    from torc_framework.server.http.endpoint_calls import EndpointCall


@frozen
class RecordOfWorkflow:
    """The workflow to which a record belongs."""

    kind: RecordKind
    id: int


WorkflowOfChange = int | RecordOfWorkflow | None
"""A workflow's id, the workflow of a record, `NEW_WORKFLOW`, or None for several workflows and for what no workflow
owns.
"""


@frozen
class Permission:
    """Who may call an endpoint.

    Attributes:
        name: Name for messages and documentation.
        check: Raises `ForbiddenError` if the caller lacks the permission. It is called only when access control is on
            and the caller is not an administrator. It passes for a record that does not exist, which the endpoint's
            function reports.
        concerns: Returns what a change by such an endpoint concerns, so that changes of other workflows need not wait
            for it.
    """

    name: str
    check: Callable[[Tx, "EndpointCall"], None]
    concerns: Callable[["EndpointCall"], "WorkflowOfChange"] = lambda _call: None


def _nothing(_tx: Tx, _call: "EndpointCall") -> None:
    return None


ANYONE: Final = Permission("open", _nothing)
"""Every caller that the authentication accepts; the response holds nothing of a workflow."""
FILTERED_BY_ACCESS: Final = Permission("visible", _nothing)
"""Every caller; the endpoint's function leaves out the records that the caller may not see."""
ADMINS: Final = Permission("admins", lambda _tx, call: check_admin(call.caller))
"""Administrators only."""
WORKFLOW_IN_PATH: Final = Permission(
    "workflow", lambda tx, call: check_workflow(tx, call.caller, call.id), lambda call: call.id
)
"""Access to the workflow whose id is the path's ``id``."""


def _query(tx: Tx, call: "EndpointCall") -> None:
    if (workflow_id := call.query["workflow_id"]) is not None:
        check_workflow(tx, call.caller, workflow_id)


WORKFLOW_IN_QUERY: Final = Permission("query", _query, lambda call: call.query["workflow_id"])
"""Access to the workflow of the query parameter ``workflow_id``; without it as `FILTERED_BY_ACCESS`."""


def _body(tx: Tx, call: "EndpointCall") -> None:
    check_workflow(tx, call.caller, call.body["workflow_id"])


WORKFLOW_IN_BODY: Final = Permission("body", _body, lambda call: call.body["workflow_id"])
"""Access to the workflow of the body's ``workflow_id``."""


def _items(tx: Tx, call: "EndpointCall") -> None:
    for workflow_id in _workflows_of_jobs(call):
        check_workflow(tx, call.caller, workflow_id)


def _workflows_of_jobs(call: "EndpointCall") -> set[int]:
    items = [item for item in call.body.jobs if isinstance(item, Mapping)]
    return {item["workflow_id"] for item in items if isinstance(item.get("workflow_id"), int)}


def _only_workflow(call: "EndpointCall") -> WorkflowOfChange:
    found = _workflows_of_jobs(call)
    return found.pop() if len(found) == 1 else None


WORKFLOWS_OF_JOBS: Final = Permission("body, jobs", _items, _only_workflow)
"""Access to the workflow of each of the body's ``jobs``."""


NEW_WORKFLOW_OF_CALLER: Final = Permission(
    "own name", lambda _tx, call: check_own_name(call.caller, call.body.get("user")), lambda _call: NEW_WORKFLOW
)
"""Creation of a workflow whose ``user`` is the caller."""


IMPORTED_BY_CALLER: Final = Permission(
    "new owner", lambda _tx, call: check_own_name(call.caller, call.caller.name), lambda _call: NEW_WORKFLOW
)
"""Creation of a workflow that will belong to the caller, also if the body names another owner."""


def _kept_owner(tx: Tx, call: "EndpointCall") -> None:
    check_workflow(tx, call.caller, call.id)
    check_owner_kept(tx, call.caller, call.id, call.body.get("user"))


OWNER_UNCHANGED: Final = Permission("workflow, owner kept", _kept_owner, lambda call: call.id)
"""Access to the workflow of the path's ``id``; only administrators may change its owner."""


GROUP_ADMINS: Final = Permission("group admins", lambda tx, call: check_group_admin(tx, call.caller, call.id))
"""Administrators, and admins of the group whose id is the path's ``id``."""


def _sharing(tx: Tx, call: "EndpointCall") -> None:
    check_sharing(tx, call.caller, call.id, call.ids["group_id"] if call.body is None else call.body["group_id"])


SHARING_ALLOWED: Final = Permission("sharing", _sharing)
"""The owner of the workflow of the path's ``id``, and admins of the group that path or body names."""


def _asked(tx: Tx, call: "EndpointCall") -> None:
    if call.words["user_name"] != call.caller.name:
        check_workflow(tx, call.caller, call.ids["workflow_id"])


SELF_OR_WORKFLOW: Final = Permission("asked", _asked)
"""Callers who ask about themselves; others need access to the workflow of the path's ``workflow_id``."""


def record_permission(resource: RecordKind) -> Permission:
    """Return the permission for an endpoint whose path's ``id`` is a record of this kind: access to its workflow."""
    check = record_access_check(resource)
    return Permission(
        f"one of {resource.path}",
        lambda tx, call: check(tx, call.caller, call.id),
        lambda call: RecordOfWorkflow(resource, call.id),
    )
