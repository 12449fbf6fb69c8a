"""The table of allocations (scheduled compute nodes), and of requests for them whose answers are not recorded yet."""

from typing import Any, Final

import sqlalchemy as sa
from sqlmodel import Field

from torc_framework.store.table_classes.base import Base

_IS_OPEN: Final = sa.text("allocation_id IS NOT NULL AND status <> 'complete'")


class ScheduledComputeNodeRow(Base, table=True):
    """`ScheduledComputeNodeRecord`; an allocation that is not over has one record only.

    ``allocation_id`` is the batch system's id of the allocation, as text. ``scheduler_id`` is the same id where it is
    a whole number, else 0: Torc's HTTP contract has this name and type. It is not the id of a scheduler's record,
    which is in ``scheduler_config_id``.
    """

    __table_args__ = (
        sa.Index(
            "uq_scheduled_compute_node_open",
            *("workflow_id", "scheduler_type", "allocation_id"),
            unique=True,
            sqlite_where=_IS_OPEN,
            postgresql_where=_IS_OPEN,
        ),
    )
    id: int | None = Field(default=None, primary_key=True)
    workflow_id: int = Field(foreign_key="workflow.id", ondelete="CASCADE", index=True)
    scheduler_id: int = Field(sa_type=sa.BigInteger)
    scheduler_config_id: int
    scheduler_type: str
    status: str
    allocation_id: str | None = None
    request: str | None = None
    requester: Any = Field(default=None, sa_type=sa.JSON(none_as_null=True), nullable=True)
