"""Filters of lists that several kinds of records use."""

from typing import Any

import sqlalchemy as sa

from torc_framework.store.records.kind import ListFilter


def equals(table: sa.Table, **kinds: type[Any]) -> dict[str, ListFilter]:
    """Return filters on equality with columns, given the types of their values by the names of the columns."""

    def equal(column: sa.Column[Any]) -> ListFilter:
        return ListFilter(kinds[column.name], lambda value: column == value)

    return {name: equal(table.c[name]) for name in kinds}


def as_text(column: sa.Column[Any]) -> ListFilter:
    """Return a filter that compares a number with a text: Torc's clients send texts here, which may be no numbers."""
    return ListFilter(str, lambda text: sa.cast(column, sa.String) == text)


def linked_to_job(record: sa.Table, table: sa.Table, other: str) -> ListFilter:
    """Return a filter by the id of a job to which a relation links the record."""
    return ListFilter(int, lambda job_id: record.c.id.in_(sa.select(table.c[other]).where(table.c.job_id == job_id)))
