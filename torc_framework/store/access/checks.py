"""Who may see and change which workflow.

A workflow belongs to its owner and to the members of the groups that it is shared with; see
``groups`` for those. Every check below is free of queries for callers who are not restricted.
"""

from collections.abc import Callable
from typing import Any, Final

import sqlalchemy as sa
from attrs import frozen

from torc_framework.store.database.sql import Statement, Tx, param
from torc_framework.store.errors import ForbiddenError
from torc_framework.store.records.kind import RecordKind
from torc_framework.store.tables import access as a
from torc_framework.store.tables import core as t

ANONYMOUS: Final = "anonymous"
"""Name of callers that did not say who they are."""
GROUP_ADMIN: Final = "admin"
"""Role of those who say who is in a group."""
ROLES: Final = (GROUP_ADMIN, "member")
"""Roles that a member of a group may have."""


@frozen
class Caller:
    """Who asks.

    Attributes:
        name: Name that the password belongs to.
        is_anonymous: Nobody logged in; ``name`` stands for no person.
        is_admin: May do everything, and manages access groups.
        is_restricted: Sees and changes only what its name gives it a right to. False for admins, and
            for everybody while access control is off.
    """

    name: str = ANONYMOUS
    is_anonymous: bool = True
    is_admin: bool = False
    is_restricted: bool = False


UNRESTRICTED_CALLER: Final = Caller()
"""The caller of a server that does not ask who is calling."""


def _shared(workflow_id: Any, user: Any) -> sa.Select[Any]:
    """Return the sharings of a workflow with groups that a person is in."""
    shared, member = a.WORKFLOW_ACCESS_GROUP.c, a.USER_GROUP_MEMBERSHIP.c
    return sa.select(shared.workflow_id).where(
        shared.workflow_id == workflow_id, shared.group_id == member.group_id, member.user_name == user
    )


_OWNER: Final = Statement(sa.select(t.WORKFLOW.c.user).where(t.WORKFLOW.c.id == param("workflow")), "workflow")
_IS_SHARED: Final = Statement(_shared(param("workflow"), param("user")), "workflow", "user")
_ROLE: Final = Statement(
    sa.select(a.USER_GROUP_MEMBERSHIP.c.role).where(
        a.USER_GROUP_MEMBERSHIP.c.user_name == param("user"), a.USER_GROUP_MEMBERSHIP.c.group_id == param("group")
    ),
    "user",
    "group",
)


def may_use(tx: Tx, user: str, workflow_id: int) -> bool:
    """Say whether a workflow is a person's own or shared with a group that the person is in."""
    return bool(
        tx.value(_OWNER, workflow_id) == user or tx.value(_IS_SHARED, workflow_id, user) is not None,
    )


def check_workflow(tx: Tx, caller: Caller, workflow_id: int) -> None:
    """Refuse a caller who has no right to a workflow; one that does not exist is left to the work.

    Raises:
        ForbiddenError: neither owner nor member of a group that it is shared with.
    """
    if not caller.is_restricted or may_use(tx, caller.name, workflow_id):
        return
    if tx.value(_OWNER, workflow_id) is not None:
        raise ForbiddenError(f"User {caller.name!r} does not have access to workflow {workflow_id}")


def check_admin(caller: Caller) -> None:
    """Refuse a caller who is no administrator.

    Raises:
        ForbiddenError: access control is on, and the caller is none.
    """
    if caller.is_restricted:
        raise ForbiddenError(f"User {caller.name!r} is not a system administrator")


def check_own_name(caller: Caller, user: str | None) -> None:
    """Refuse a caller who makes a workflow in the name of somebody else.

    Raises:
        ForbiddenError: the name is another's.
    """
    if caller.is_restricted and user != caller.name:
        raise ForbiddenError(f"User {caller.name!r} cannot create workflows of user {user!r}")


def check_owner_kept(tx: Tx, caller: Caller, workflow_id: int, user: str | None) -> None:
    """Refuse a caller who gives a workflow to another owner; None leaves the owner.

    Raises:
        ForbiddenError: access control is on, and the caller is no administrator.
    """
    if caller.is_restricted and user not in (None, tx.value(_OWNER, workflow_id)):
        check_admin(caller)


def check_group_admin(tx: Tx, caller: Caller, group_id: int) -> None:
    """Refuse a caller who may not say who is in a group.

    Raises:
        ForbiddenError: neither administrator of the server nor of the group.
    """
    if caller.is_restricted and tx.value(_ROLE, caller.name, group_id) != GROUP_ADMIN:
        raise ForbiddenError(f"User {caller.name!r} is neither a system administrator nor an admin of group {group_id}")


def check_sharing(tx: Tx, caller: Caller, workflow_id: int, group_id: int) -> None:
    """Refuse a caller who may not share a workflow with a group, or take it back.

    A group's admin may do so only with workflows that the admin has a right to: otherwise the role
    would open every workflow.

    Raises:
        ForbiddenError: neither the owner, nor an admin of the group with a right to the workflow.
    """
    check_workflow(tx, caller, workflow_id)
    if not caller.is_restricted or tx.value(_OWNER, workflow_id) in (None, caller.name):
        return
    if tx.value(_ROLE, caller.name, group_id) != GROUP_ADMIN:
        raise ForbiddenError(
            f"User {caller.name!r} is neither the owner of workflow {workflow_id} nor an admin of group {group_id}"
        )


def record_access_check(resource: RecordKind) -> Callable[[Tx, Caller, int], None]:
    """Return `check_workflow` for the workflow of a record of this kind."""
    table = resource.table
    lookup = Statement(sa.select(table.c.workflow_id).where(table.c.id == param("record")), "record")

    def check(tx: Tx, caller: Caller, record_id: int) -> None:
        if caller.is_restricted and (workflow_id := tx.value(lookup, record_id)) is not None:
            check_workflow(tx, caller, workflow_id)

    return check


def visibility_conditions(caller: Caller, resource: RecordKind) -> list[sa.ColumnElement[bool]]:
    """Return what records of a kind must satisfy for the caller to see them."""
    if not caller.is_restricted:
        return []
    column = t.WORKFLOW.c.id if resource.table is t.WORKFLOW else resource.table.c.workflow_id
    shared, member = a.WORKFLOW_ACCESS_GROUP.c, a.USER_GROUP_MEMBERSHIP.c
    own = sa.select(t.WORKFLOW.c.id).where(t.WORKFLOW.c.user == caller.name)
    others = sa.select(shared.workflow_id).where(shared.group_id == member.group_id, member.user_name == caller.name)
    return [column.in_(own.union(others))]
