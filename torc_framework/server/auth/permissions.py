"""How the workflow that a request is about is found: the caller must have a right to it.

Every endpoint names one of these scopes. The check runs in the transaction of the work, before it.
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
from torc_framework.store.database.sql import Tx
from torc_framework.store.records.crud import RecordKind

if TYPE_CHECKING:
    from torc_framework.server.dispatch.endpoint import EndpointCall


@frozen
class Permission:
    """Who may call an endpoint.

    Attributes:
        name: For messages and documentation.
        check: Raises `ForbiddenError` if the caller has no right; asked only when access control is on
            and the caller is no administrator. What does not exist is left to the work.
    """

    name: str
    check: Callable[[Tx, "EndpointCall"], None]


def _nothing(_tx: Tx, _call: "EndpointCall") -> None:
    return None


ANYONE: Final = Permission("open", _nothing)
"""Every caller who may talk to the server at all; nothing in the answer belongs to a workflow."""
FILTERED_BY_ACCESS: Final = Permission("visible", _nothing)
"""Records of all workflows; the work leaves out those that ``call.caller`` may not see."""
ADMINS: Final = Permission("admins", lambda _tx, call: check_admin(call.caller))
"""Administrators only."""
WORKFLOW_IN_PATH: Final = Permission("workflow", lambda tx, call: check_workflow(tx, call.caller, call.id))
"""The path's ``id`` is a workflow."""


def _query(tx: Tx, call: "EndpointCall") -> None:
    if (workflow_id := call.query["workflow_id"]) is not None:
        check_workflow(tx, call.caller, workflow_id)


WORKFLOW_IN_QUERY: Final = Permission("query", _query)
"""The query parameter ``workflow_id``; when it may be absent, the work lists as for `FILTERED_BY_ACCESS`."""


def _body(tx: Tx, call: "EndpointCall") -> None:
    check_workflow(tx, call.caller, call.body["workflow_id"])


WORKFLOW_IN_BODY: Final = Permission("body", _body)
"""The body's ``workflow_id``."""


def _items(tx: Tx, call: "EndpointCall") -> None:
    items = [item for item in call.body.jobs if isinstance(item, Mapping)]
    for workflow_id in {item["workflow_id"] for item in items if isinstance(item.get("workflow_id"), int)}:
        check_workflow(tx, call.caller, workflow_id)


WORKFLOWS_OF_JOBS: Final = Permission("body, jobs", _items)
"""The ``workflow_id`` of each of the body's ``jobs``."""


NEW_WORKFLOW_OF_CALLER: Final = Permission(
    "own name", lambda _tx, call: check_own_name(call.caller, call.body.get("user"))
)
"""A new workflow; its ``user`` must be the caller."""


IMPORTED_BY_CALLER: Final = Permission("new owner", lambda _tx, call: check_own_name(call.caller, call.caller.name))
"""A new workflow that will belong to the caller, whatever the body says."""


def _kept_owner(tx: Tx, call: "EndpointCall") -> None:
    check_workflow(tx, call.caller, call.id)
    check_owner_kept(tx, call.caller, call.id, call.body.get("user"))


OWNER_UNCHANGED: Final = Permission("workflow, owner kept", _kept_owner)
"""The path's ``id`` is a workflow; only administrators give it to another owner."""


GROUP_ADMINS: Final = Permission("group admins", lambda tx, call: check_group_admin(tx, call.caller, call.id))
"""Administrators, and admins of the group that is the path's ``id``."""


def _sharing(tx: Tx, call: "EndpointCall") -> None:
    check_sharing(tx, call.caller, call.id, call.ids["group_id"] if call.body is None else call.body["group_id"])


SHARING_ALLOWED: Final = Permission("sharing", _sharing)
"""The owner of the workflow that is the path's ``id``, and admins of the group that is in path or body."""


def _asked(tx: Tx, call: "EndpointCall") -> None:
    if call.words["user_name"] != call.caller.name:
        check_workflow(tx, call.caller, call.ids["workflow_id"])


SELF_OR_WORKFLOW: Final = Permission("asked", _asked)
"""The path's ``workflow_id``, unless it is about the caller."""


def record_permission(resource: RecordKind) -> Permission:
    """Return the scope of an endpoint whose path's ``id`` is a record of this kind, which belongs to a workflow."""
    check = record_access_check(resource)
    return Permission(f"one of {resource.path}", lambda tx, call: check(tx, call.caller, call.id))
