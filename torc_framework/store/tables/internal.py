"""The tables that no record has; importing this module completes the set of all tables."""

from typing import Final

import sqlalchemy as sa
from sqlmodel import Field

from torc_framework.store.tables.base import Base
from torc_framework.store.tables.core import EVENT
from torc_framework.store.tables.recovery import METADATA

__all__ = ["COUNTED", "ID_COUNTER", "JOB_TO_STOP", "METADATA"]


class IdCounter(Base, table=True):
    """The greatest id that a table has ever had, so that no id is used twice."""

    __tablename__ = "id_counter"
    __table_args__ = ({"sqlite_with_rowid": False},)
    table_name: str = Field(primary_key=True)
    last_id: int = Field(sa_type=sa.BigInteger)


class JobToStop(Base, table=True):
    """A job that was deleted while a runner had it; the row goes when the runner is told."""

    __tablename__ = "job_to_stop"
    __table_args__ = ({"sqlite_with_rowid": False},)
    compute_node_id: int = Field(foreign_key="compute_node.id", ondelete="CASCADE", primary_key=True, index=False)
    job_id: int = Field(primary_key=True)


ID_COUNTER: Final = METADATA.tables["id_counter"]
JOB_TO_STOP: Final = METADATA.tables["job_to_stop"]
COUNTED: Final = frozenset(
    table
    for table in METADATA.sorted_tables
    if "id" in table.c and table is not EVENT and not table.c["id"].foreign_keys
)
"""Tables whose ids come from `IdCounter`.

Events are too many: the database itself numbers them, and never uses a number twice. The id of a
workflow's status is the workflow's.
"""
