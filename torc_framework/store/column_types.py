"""What the tables and their declaration share: the type of a job's status, and the rule for names of constraints."""

from typing import Any, Final

import sqlalchemy as sa

from torc_framework.models.statuses import JobStatus

NAMING_CONVENTION: Final = {
    "ix": "ix_%(table_name)s_%(column_0_N_name)s",
    "uq": "uq_%(table_name)s_%(column_0_N_name)s",
    "fk": "fk_%(table_name)s_%(column_0_name)s_%(referred_table_name)s",
    "pk": "pk_%(table_name)s",
}
"""Names of indexes and constraints (SQLAlchemy, "Configuring Constraint Naming Conventions")."""


_LABELS: Final = {int(status): status.label for status in JobStatus}


class StatusType(sa.types.TypeDecorator[str]):
    """A job status: a number in the database, its label in Python."""

    impl = sa.SmallInteger
    cache_ok = True

    def process_bind_param(self, value: Any, dialect: sa.Dialect) -> Any:
        """Take a label, a `JobStatus` or a number."""
        return int(JobStatus.from_label(value)) if isinstance(value, str) else value

    def process_result_value(self, value: Any, dialect: sa.Dialect) -> Any:
        """Return the label."""
        return None if value is None else _LABELS[value]
