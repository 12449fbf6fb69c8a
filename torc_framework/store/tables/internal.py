"""The tables that no record has; importing this module completes the set of all tables."""

from typing import Final

import sqlalchemy as sa
from sqlmodel import Field

from torc_framework.store.tables.base import Base


class IdCounterRow(Base, table=True):
    """The greatest id that a table has ever had, so that no id is used twice."""

    __table_args__ = ({"sqlite_with_rowid": False},)
    table_name: str = Field(primary_key=True)
    last_id: int = Field(sa_type=sa.BigInteger)


class JobToStopRow(Base, table=True):
    """A job that was deleted while a runner had it; the row goes when the runner is told."""

    __table_args__ = ({"sqlite_with_rowid": False},)
    compute_node_id: int = Field(foreign_key="compute_node.id", ondelete="CASCADE", primary_key=True, index=False)
    job_id: int = Field(primary_key=True)


ID_COUNTER: Final = Base.metadata.tables["id_counter"]
JOB_TO_STOP: Final = Base.metadata.tables["job_to_stop"]
