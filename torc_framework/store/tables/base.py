"""The base class of all tables, and the type of a column that holds a job's status."""

import re
from typing import Any, Final

import sqlalchemy as sa
from sqlalchemy.orm import declared_attr
from sqlmodel import SQLModel

from torc_framework.models.statuses import JobStatus


class StatusType(sa.types.TypeDecorator[str]):
    """A job status: a number in the database, its label in Python."""

    impl = sa.SmallInteger
    cache_ok = True

    def process_bind_param(self, value: Any, dialect: sa.Dialect) -> Any:
        """Take a label, a `JobStatus` or a number."""
        return int(JobStatus.from_label(value)) if isinstance(value, str) else value

    def process_result_value(self, value: Any, dialect: sa.Dialect) -> Any:
        """Return the label."""
        return None if value is None else JobStatus(value).label


_WORD_START: Final = re.compile(r"(?<!^)(?=[A-Z])")


class Base(SQLModel):
    """The base of all table classes, each named ``<Name>Row``; its table is ``<name>`` in snake case.

    pydantic builds the validators of a class when they are first used; the store never uses them.
    """

    model_config = {"defer_build": True}
    metadata = sa.MetaData(
        naming_convention={
            "ix": "ix_%(table_name)s_%(column_0_N_name)s",
            "uq": "uq_%(table_name)s_%(column_0_N_name)s",
            "fk": "fk_%(table_name)s_%(column_0_name)s_%(referred_table_name)s",
            "pk": "pk_%(table_name)s",
        }
    )

    @declared_attr  # type: ignore[arg-type]  # SQLModel declares it so, too
    def __tablename__(cls) -> str:  # noqa: N805 - a class method for SQLAlchemy
        """Return the name of the class without ``Row``, in snake case."""
        return _WORD_START.sub("_", cls.__name__.removesuffix("Row")).lower()
