"""Who may see and change which workflow.

A workflow belongs to its owner and to the members of the groups that it is shared with.
"""

from collections.abc import Callable
from typing import Any, Final

import sqlalchemy as sa
from attrs import frozen

from torc_framework.store import tables as t
from torc_framework.store.errors import ForbiddenError
from torc_framework.store.records import Resource
from torc_framework.store.sql import Statement, Tx, param

ANONYMOUS: Final = "anonymous"
"""Name of callers that did not say who they are."""


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


EVERYBODY: Final = Caller()
"""The caller of a server that does not ask who is calling."""

_OWNER: Final = Statement(sa.select(t.WORKFLOW.c.user).where(t.WORKFLOW.c.id == param("workflow")), "workflow")


def check_workflow(tx: Tx, caller: Caller, workflow_id: int) -> None:
    """Refuse a caller who has no right to a workflow; one that does not exist is left to the work.

    Raises:
        ForbiddenError: neither owner nor member of a group that it is shared with.
    """
    if not caller.is_restricted:
        return
    owner = tx.value(_OWNER, workflow_id)
    if owner is not None and owner != caller.name:
        raise ForbiddenError(f"User {caller.name!r} does not have access to workflow {workflow_id}")


def check_admin(caller: Caller) -> None:
    """Refuse a caller who is no administrator.

    Raises:
        ForbiddenError: access control is on, and the caller is none.
    """
    if caller.is_restricted:
        raise ForbiddenError(f"User {caller.name!r} is not a system administrator")


def check_own_name(caller: Caller, user: str | None) -> None:
    """Refuse a caller who makes a workflow, or gives one away, in the name of somebody else.

    Raises:
        ForbiddenError: the name is another's.
    """
    if caller.is_restricted and user != caller.name:
        raise ForbiddenError(f"User {caller.name!r} cannot create or own workflows as {user!r}")


def check_owner_kept(tx: Tx, caller: Caller, workflow_id: int, user: str | None) -> None:
    """Refuse a caller who gives a workflow to another owner; None leaves the owner.

    Raises:
        ForbiddenError: access control is on, and the caller is no administrator.
    """
    if caller.is_restricted and user not in (None, tx.value(_OWNER, workflow_id)):
        check_admin(caller)


def record_check(resource: Resource) -> Callable[[Tx, Caller, int], None]:
    """Return `check_workflow` for the workflow of a record of this kind."""
    table = resource.table
    lookup = Statement(sa.select(table.c.workflow_id).where(table.c.id == param("record")), "record")

    def check(tx: Tx, caller: Caller, record_id: int) -> None:
        if caller.is_restricted and (workflow_id := tx.value(lookup, record_id)) is not None:
            check_workflow(tx, caller, workflow_id)

    return check


def visible(caller: Caller, resource: Resource) -> list[sa.ColumnElement[bool]]:
    """Return what records of a kind must satisfy for the caller to see them."""
    if not caller.is_restricted:
        return []
    column = t.WORKFLOW.c.id if resource.table is t.WORKFLOW else resource.table.c.workflow_id
    mine: sa.Select[Any] = sa.select(t.WORKFLOW.c.id).where(t.WORKFLOW.c.user == caller.name)
    return [column.in_(mine)]
