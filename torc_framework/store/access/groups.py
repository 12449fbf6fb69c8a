"""Access groups: their members, and the workflows that are shared with them.

The members of the group of administrators come from the server's configuration, and no request can change them. Its id
is 0, so that the ids of all other groups begin at 1.
"""

from collections.abc import Iterable, Sequence
from typing import Final

import sqlalchemy as sa

from torc_framework.models import records as r
from torc_framework.store.access.callers import ROLES
from torc_framework.store.access.checks import may_use
from torc_framework.store.database.sql import Tx
from torc_framework.store.errors import ConflictError, ForbiddenError, NotFoundError, RuleError, StoreError
from torc_framework.store.records.crud import find, get, require_workflow
from torc_framework.store.records.events import utc_text
from torc_framework.store.records.kind import PageRequest, RecordKind, Values, without_nulls
from torc_framework.store.tables.access import ACCESS_GROUP, USER_GROUP_MEMBERSHIP, WORKFLOW_ACCESS_GROUP

ADMINS_ID: Final = 0
"""The group of administrators."""
ADMINS_NAME: Final = "admin"
GROUPS: Final = RecordKind("access_groups", "Group", r.AccessGroupRecord, ACCESS_GROUP)
MEMBERS: Final = RecordKind("members", "Member", r.UserGroupMembershipRecord, USER_GROUP_MEMBERSHIP)
_SYSTEM: Final = "The group of administrators is managed by the server's configuration (--admin-user)"


class NoSuchLinkError(NotFoundError):
    """The user is not a member of the group, or the workflow is not shared with it."""

    def __init__(self, message: str) -> None:
        StoreError.__init__(self, message)


# --- groups ----------------------------------------------------------------------------------------


def create_group(tx: Tx, name: str, description: str | None) -> Values:
    """Create a group; return it.

    Raises:
        ConflictError: a group has this name.
        RuleError: the name is empty.
    """
    if not name.strip():
        raise RuleError("name: a group needs one")
    if tx.connection.execute(sa.select(ACCESS_GROUP.c.id).where(ACCESS_GROUP.c.name == name)).first() is not None:
        raise ConflictError(f"Group {name!r} exists already")
    values = {"name": name, "description": description, "is_system": False, "created_at": utc_text()}
    return get(tx, GROUPS, tx.add(ACCESS_GROUP, **values))


def find_groups(tx: Tx, wanted: PageRequest) -> tuple[list[Values], int]:
    """Return one page of all groups but that of administrators, and their number."""
    return find(tx, GROUPS, [sa.not_(ACCESS_GROUP.c.is_system)], wanted)


def get_group(tx: Tx, group_id: int) -> Values:
    """Return a group.

    Raises:
        NotFoundError: there is no group of this id.
    """
    return get(tx, GROUPS, group_id)


def delete_group(tx: Tx, group_id: int) -> Values:
    """Delete a group with its memberships, and end its sharing of workflows; return the deleted group.

    Raises:
        NotFoundError: there is no group of this id.
        ForbiddenError: it is the group of administrators.
    """
    group = _changeable_group(tx, group_id)
    tx.connection.execute(sa.delete(ACCESS_GROUP).where(ACCESS_GROUP.c.id == group_id))
    return group


def _changeable_group(tx: Tx, group_id: int) -> Values:
    """Return a group that requests may change."""
    group = get(tx, GROUPS, group_id)
    if group["is_system"]:
        raise ForbiddenError(_SYSTEM)
    return group


# --- members ---------------------------------------------------------------------------------------


def add_member(tx: Tx, group_id: int, user_name: str, role: str) -> Values:
    """Add a user to a group; return the membership.

    Raises:
        NotFoundError: there is no such group.
        ForbiddenError: it is the group of administrators.
        ConflictError: the user is a member already.
        RuleError: the name is not a user's, or the role is unknown.
    """
    group = _changeable_group(tx, group_id)
    if not user_name.strip() or ":" in user_name or "/" in user_name:
        raise RuleError(f"user_name: {user_name!r} is not the name of a user")
    if role not in ROLES:
        raise RuleError(f"role: {role!r} is none of {', '.join(ROLES)}")
    if _membership(tx, group_id, user_name) is not None:
        raise ConflictError(f"User {user_name!r} is already in group {group['name']!r}")
    return _insert_member(tx, group_id, user_name, role)


def _insert_member(tx: Tx, group_id: int, user_name: str, role: str) -> Values:
    values = {"user_name": user_name, "group_id": group_id, "role": role, "created_at": utc_text()}
    return get(tx, MEMBERS, tx.add(USER_GROUP_MEMBERSHIP, **values))


def _membership(tx: Tx, group_id: int, user_name: str) -> Values | None:
    found, _ = find(tx, MEMBERS, _is_member(group_id, user_name), PageRequest(limit=1))
    return found[0] if found else None


def _is_member(group_id: int, user_name: str) -> Sequence[sa.ColumnElement[bool]]:
    columns = USER_GROUP_MEMBERSHIP.c
    return columns.group_id == group_id, columns.user_name == user_name


def find_members(tx: Tx, group_id: int, wanted: PageRequest) -> tuple[list[Values], int]:
    """Return one page of a group's members, and their number.

    Raises:
        NotFoundError: there is no such group.
    """
    get(tx, GROUPS, group_id)
    return find(tx, MEMBERS, [USER_GROUP_MEMBERSHIP.c.group_id == group_id], wanted)


def remove_member(tx: Tx, group_id: int, user_name: str) -> Values:
    """Remove a user from a group; return the removed membership.

    Raises:
        NotFoundError: there is no such group, or the user is not a member.
        ForbiddenError: it is the group of administrators.
    """
    group = _changeable_group(tx, group_id)
    membership = _membership(tx, group_id, user_name)
    if membership is None:
        raise NoSuchLinkError(f"User {user_name!r} is not in group {group['name']!r}")
    tx.connection.execute(sa.delete(USER_GROUP_MEMBERSHIP).where(*_is_member(group_id, user_name)))
    return membership


def groups_of_user(tx: Tx, user_name: str, wanted: PageRequest) -> tuple[list[Values], int]:
    """Return one page of the groups of which a user is a member, without that of administrators, and their number."""
    mine = sa.select(USER_GROUP_MEMBERSHIP.c.group_id).where(USER_GROUP_MEMBERSHIP.c.user_name == user_name)
    return find(tx, GROUPS, [ACCESS_GROUP.c.id.in_(mine), sa.not_(ACCESS_GROUP.c.is_system)], wanted)


def set_admins(tx: Tx, names: Iterable[str]) -> None:
    """Set the members of the group of administrators."""
    if tx.connection.execute(sa.select(ACCESS_GROUP.c.id).where(ACCESS_GROUP.c.id == ADMINS_ID)).first() is None:
        values = {"id": ADMINS_ID, "name": ADMINS_NAME, "is_system": True, "created_at": utc_text()}
        tx.connection.execute(sa.insert(ACCESS_GROUP).values(description="Administrators of the server", **values))
    tx.connection.execute(sa.delete(USER_GROUP_MEMBERSHIP).where(USER_GROUP_MEMBERSHIP.c.group_id == ADMINS_ID))
    for name in dict.fromkeys(names):
        _insert_member(tx, ADMINS_ID, name, "admin")


# --- sharing ---------------------------------------------------------------------------------------


def share(tx: Tx, workflow_id: int, group_id: int) -> Values:
    """Share a workflow with a group; return the link.

    Raises:
        NotFoundError: there is no such workflow or group.
        ConflictError: it is shared with the group already.
    """
    require_workflow(tx, workflow_id)
    group = get(tx, GROUPS, group_id)
    if _link(tx, workflow_id, group_id) is not None:
        raise ConflictError(f"Workflow {workflow_id} is already shared with group {group['name']!r}")
    values = {"workflow_id": workflow_id, "group_id": group_id, "created_at": utc_text()}
    tx.connection.execute(sa.insert(WORKFLOW_ACCESS_GROUP).values(values))
    return values


def unshare(tx: Tx, workflow_id: int, group_id: int) -> Values:
    """End the sharing of a workflow with a group; return the removed link.

    Raises:
        NotFoundError: there is no such workflow, or it is not shared with that group.
    """
    require_workflow(tx, workflow_id)
    link = _link(tx, workflow_id, group_id)
    if link is None:
        raise NoSuchLinkError(f"Workflow {workflow_id} is not shared with group {group_id}")
    tx.connection.execute(sa.delete(WORKFLOW_ACCESS_GROUP).where(*_is_link(workflow_id, group_id)))
    return link


def _link(tx: Tx, workflow_id: int, group_id: int) -> Values | None:
    query = sa.select(WORKFLOW_ACCESS_GROUP).where(*_is_link(workflow_id, group_id))
    row = tx.connection.execute(query).mappings().first()
    return None if row is None else without_nulls(row)


def _is_link(workflow_id: int, group_id: int) -> Sequence[sa.ColumnElement[bool]]:
    columns = WORKFLOW_ACCESS_GROUP.c
    return columns.workflow_id == workflow_id, columns.group_id == group_id


def groups_of_workflow(tx: Tx, workflow_id: int, wanted: PageRequest) -> tuple[list[Values], int]:
    """Return one page of the groups that a workflow is shared with, and their number.

    Raises:
        NotFoundError: there is no such workflow.
    """
    require_workflow(tx, workflow_id)
    shared = sa.select(WORKFLOW_ACCESS_GROUP.c.group_id).where(WORKFLOW_ACCESS_GROUP.c.workflow_id == workflow_id)
    return find(tx, GROUPS, [ACCESS_GROUP.c.id.in_(shared)], wanted)


def has_access(tx: Tx, user_name: str, workflow_id: int) -> bool:
    """Return whether a user may use a workflow while access control is on.

    Raises:
        NotFoundError: there is no such workflow.
    """
    require_workflow(tx, workflow_id)
    return may_use(tx, user_name, workflow_id) or _membership(tx, ADMINS_ID, user_name) is not None
