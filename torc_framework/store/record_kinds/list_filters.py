"""Filters of lists that several kinds of records use."""

from typing import Any

import sqlalchemy as sa

from torc_framework.store.records.kind import ListFilter


def equals(table: sa.Table, **kinds: type[Any]) -> dict[str, ListFilter]:
    """Return filters that compare columns with their value."""

    def equal(column: sa.Column[Any]) -> ListFilter:
        return ListFilter(kinds[column.name], lambda value: column == value)

    return {name: equal(table.c[name]) for name in kinds}


def as_text(column: sa.Column[Any]) -> ListFilter:
    """Return a filter that compares a number as it is written: Torc's clients send a text, which may be none."""
    return ListFilter(str, lambda text: sa.cast(column, sa.String) == text)


def linked_to_job(record: sa.Table, table: sa.Table, other: str) -> ListFilter:
    """Return a filter by a job that a relation links to the record."""
    return ListFilter(int, lambda job_id: record.c.id.in_(sa.select(table.c[other]).where(table.c.job_id == job_id)))
