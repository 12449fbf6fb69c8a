"""The tables of the store's own: no record of the HTTP API shows them."""

import sqlalchemy as sa
from sqlmodel import Field

from torc_framework.store.table_classes.base import Base


class IdCounterRow(Base, table=True):
    """The largest id that a table has ever had, so that no id is used twice; empty on PostgreSQL."""

    __table_args__ = ({"sqlite_with_rowid": False},)
    table_name: str = Field(primary_key=True)
    last_id: int = Field(sa_type=sa.BigInteger)


class JobToStopRow(Base, table=True):
    """A deleted job whose runner has to stop it; the row is deleted when the runner gets the id in a reply."""

    __table_args__ = ({"sqlite_with_rowid": False},)
    compute_node_id: int = Field(foreign_key="compute_node.id", ondelete="CASCADE", primary_key=True, index=False)
    job_id: int = Field(primary_key=True)
