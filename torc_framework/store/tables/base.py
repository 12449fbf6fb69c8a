"""What all tables are made from: their common base, and the type of a column that holds a status."""

from typing import Any

import sqlalchemy as sa
from sqlmodel import SQLModel

from torc_framework.models.statuses import JobStatus


class StatusType(sa.types.TypeDecorator[str]):
    """A job status: its number in the database, its label in Python."""

    impl = sa.SmallInteger
    cache_ok = True

    def process_bind_param(self, value: Any, dialect: sa.Dialect) -> Any:
        """Take a label, a `JobStatus` or a number."""
        return int(JobStatus.from_label(value)) if isinstance(value, str) else value

    def process_result_value(self, value: Any, dialect: sa.Dialect) -> Any:
        """Return the label."""
        return None if value is None else JobStatus(value).label


class Base(SQLModel):
    """What all tables share; validators are built when first used, which the store never does."""

    model_config = {"defer_build": True}
    metadata = sa.MetaData(
        naming_convention={
            "ix": "ix_%(table_name)s_%(column_0_N_name)s",
            "uq": "uq_%(table_name)s_%(column_0_N_name)s",
            "fk": "fk_%(table_name)s_%(column_0_name)s_%(referred_table_name)s",
            "pk": "pk_%(table_name)s",
        }
    )
