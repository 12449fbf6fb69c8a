"""The collection that all tables of the database belong to."""

from typing import Any, Final

import sqlalchemy as sa

from torc_framework.store.column_types import NAMING_CONVENTION

METADATA: Final = sa.MetaData(naming_convention=NAMING_CONVENTION)


@sa.event.listens_for(METADATA, "before_create")
def _use_conditions(metadata: sa.MetaData, connection: sa.Connection, **_: Any) -> None:
    """Give the partial indexes their conditions before the tables of a new database are created."""
    set_index_conditions(metadata, connection.dialect.name)


def set_index_conditions(metadata: sa.MetaData, dialect: str) -> None:
    """Make each index with ``where`` among its facts (`sa.Index.info`) a partial one in the database of a dialect.

    An index with a dialect's own condition, such as ``postgresql_where``, imports the dialect. That of PostgreSQL takes
    a tenth of the start of a server which does not use it.
    """
    for table in metadata.tables.values():
        for index in table.indexes:
            if (condition := index.info.get("where")) is not None:
                index.dialect_options[dialect]["where"] = condition
