"""The tables of access groups: the groups, their members, and the workflows that they may use."""

import sqlalchemy as sa
from sqlmodel import Field

from torc_framework.store.table_classes.base import Base


class AccessGroupRow(Base, table=True):
    """`AccessGroupRecord`; no id is used twice."""

    __table_args__ = (sa.UniqueConstraint("name"), {"sqlite_autoincrement": True})
    id: int | None = Field(default=None, primary_key=True)
    name: str
    description: str | None = None
    is_system: bool = False
    created_at: str | None = None


class UserGroupMembershipRow(Base, table=True):
    """`UserGroupMembershipRecord`."""

    __table_args__ = (sa.UniqueConstraint("user_name", "group_id"),)
    id: int | None = Field(default=None, primary_key=True)
    user_name: str
    group_id: int = Field(foreign_key="access_group.id", ondelete="CASCADE", index=True)
    role: str = "member"
    created_at: str | None = None


class WorkflowAccessGroupRow(Base, table=True):
    """`WorkflowAccessGroupRecord`."""

    __table_args__ = ({"sqlite_with_rowid": False},)
    workflow_id: int = Field(foreign_key="workflow.id", ondelete="CASCADE", primary_key=True)
    group_id: int = Field(foreign_key="access_group.id", ondelete="CASCADE", primary_key=True, index=True)
    created_at: str | None = None
