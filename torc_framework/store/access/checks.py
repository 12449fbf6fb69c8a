"""Checks whether a caller may see or change a workflow or an access group.

A workflow may be used by its owner and by the members of the groups that it is shared with (`groups`). No check runs a
query for a caller who is not restricted.
"""

from collections.abc import Callable
from typing import Any, Final

import sqlalchemy as sa

from torc_framework.store.access.callers import GROUP_ADMIN, Caller
from torc_framework.store.database.sql import Statement, Tx, param
from torc_framework.store.errors import ForbiddenError
from torc_framework.store.records.kind import RecordKind
from torc_framework.store.tables import access as a
from torc_framework.store.tables import core as t


def _shared(workflow_id: Any, user: Any) -> sa.Select[Any]:
    """Return the query for the links of a workflow with groups of which a user is a member."""
    shared, member = a.WORKFLOW_ACCESS_GROUP.c, a.USER_GROUP_MEMBERSHIP.c
    return sa.select(shared.workflow_id).where(
        shared.workflow_id == workflow_id, shared.group_id == member.group_id, member.user_name == user
    )


_OWNER: Final = Statement(
    sa.select(t.WORKFLOW.c.user)
    .join(t.WORKFLOW_STATUS, t.WORKFLOW_STATUS.c.id == t.WORKFLOW.c.id)
    .where(t.WORKFLOW.c.id == param("workflow")),
    "workflow",
)
_IS_SHARED: Final = Statement(_shared(param("workflow"), param("user")), "workflow", "user")
_ROLE: Final = Statement(
    sa.select(a.USER_GROUP_MEMBERSHIP.c.role).where(
        a.USER_GROUP_MEMBERSHIP.c.user_name == param("user"), a.USER_GROUP_MEMBERSHIP.c.group_id == param("group")
    ),
    "user",
    "group",
)


def may_use(tx: Tx, user: str, workflow_id: int) -> bool:
    """Return whether a user owns a workflow, or is a member of a group that it is shared with."""
    return bool(
        tx.value(_OWNER, workflow_id) == user or tx.value(_IS_SHARED, workflow_id, user) is not None,
    )


def check_workflow(tx: Tx, caller: Caller, workflow_id: int) -> None:
    """Refuse a caller who may not use a workflow; a workflow that does not exist is not refused here.

    Raises:
        ForbiddenError: the caller is neither its owner nor a member of a group that it is shared with.
    """
    if not caller.is_restricted or may_use(tx, caller.name, workflow_id):
        return
    if tx.value(_OWNER, workflow_id) is not None:
        raise ForbiddenError(f"User {caller.name!r} does not have access to workflow {workflow_id}")


def check_admin(caller: Caller) -> None:
    """Refuse a caller who is not an administrator.

    Raises:
        ForbiddenError: access control is on, and the caller is not an administrator.
    """
    if caller.is_restricted:
        raise ForbiddenError(f"User {caller.name!r} is not a system administrator")


def check_own_name(caller: Caller, user: str | None) -> None:
    """Refuse a caller who creates a workflow of another user.

    Raises:
        ForbiddenError: the user is another.
    """
    if caller.is_restricted and user != caller.name:
        raise ForbiddenError(f"User {caller.name!r} cannot create workflows of user {user!r}")


def check_owner_kept(tx: Tx, caller: Caller, workflow_id: int, user: str | None) -> None:
    """Refuse a caller who changes the owner of a workflow; None keeps the owner.

    Raises:
        ForbiddenError: access control is on, and the caller is not an administrator.
    """
    if caller.is_restricted and user not in (None, tx.value(_OWNER, workflow_id)):
        check_admin(caller)


def check_group_admin(tx: Tx, caller: Caller, group_id: int) -> None:
    """Refuse a caller who may not change the members of a group.

    Raises:
        ForbiddenError: the caller is an administrator neither of the server nor of the group.
    """
    if caller.is_restricted and tx.value(_ROLE, caller.name, group_id) != GROUP_ADMIN:
        raise ForbiddenError(f"User {caller.name!r} is neither a system administrator nor an admin of group {group_id}")


def check_sharing(tx: Tx, caller: Caller, workflow_id: int, group_id: int) -> None:
    """Refuse a caller who may not share a workflow with a group, or end the sharing.

    A group's admin may do so only with workflows that the admin may use: otherwise the role would give access to every
    workflow.

    Raises:
        ForbiddenError: the caller is neither the owner, nor an admin of the group who may use the workflow.
    """
    check_workflow(tx, caller, workflow_id)
    if not caller.is_restricted or tx.value(_OWNER, workflow_id) in (None, caller.name):
        return
    if tx.value(_ROLE, caller.name, group_id) != GROUP_ADMIN:
        raise ForbiddenError(
            f"User {caller.name!r} is neither the owner of workflow {workflow_id} nor an admin of group {group_id}"
        )


def record_access_check(kind: RecordKind) -> Callable[[Tx, Caller, int], None]:
    """Return `check_workflow` for the workflow of a record of this kind."""
    table = kind.table
    lookup = Statement(sa.select(table.c.workflow_id).where(table.c.id == param("record")), "record")

    def check(tx: Tx, caller: Caller, record_id: int) -> None:
        if caller.is_restricted and (workflow_id := tx.value(lookup, record_id)) is not None:
            check_workflow(tx, caller, workflow_id)

    return check


def visibility_conditions(caller: Caller, kind: RecordKind) -> list[sa.ColumnElement[bool]]:
    """Return the conditions on records of a kind that the caller may see."""
    if not caller.is_restricted:
        return []
    column = t.WORKFLOW.c.id if kind.table is t.WORKFLOW else kind.table.c.workflow_id
    shared, member = a.WORKFLOW_ACCESS_GROUP.c, a.USER_GROUP_MEMBERSHIP.c
    own = sa.select(t.WORKFLOW.c.id).where(t.WORKFLOW.c.user == caller.name)
    others = sa.select(shared.workflow_id).where(shared.group_id == member.group_id, member.user_name == caller.name)
    return [column.in_(own.union(others))]
