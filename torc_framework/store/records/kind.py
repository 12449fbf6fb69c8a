"""The class that describes a kind of records: its table, its filters and relations, and its special rules."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import sqlalchemy as sa
from attrs import NOTHING, Factory, fields, frozen

from torc_framework.models.records import FieldAccess, Record, describe_field
from torc_framework.store.database.sql import Statement, Tx, ids_param

Values = dict[str, Any]
Condition = Callable[[Any], sa.ColumnElement[bool]]


@frozen
class ListFilter:
    """One query parameter of a list.

    Attributes:
        type_: Type of its value; JobStatus for the name of a status.
        condition: Returns the condition on rows for a value.
        default: Its value when the request has none; with None, the list is not filtered.
        finds_few: An index on its column finds few rows, however many the workflow has.
        repeated: A request may have the parameter several times; the condition gets the list of its values.
    """

    type_: type[Any]
    condition: Condition
    default: Any = None
    finds_few: bool = False
    repeated: bool = False


@frozen
class RelationTable:
    """A field that is a list of ids, which are rows of a table of their own.

    Attributes:
        owner: Column with the id of the record.
        other: Column with an id of its list.
    """

    table: sa.Table
    owner: str
    other: str

    def query(self) -> Statement:
        """Return the query for the pairs (owner, other) of several owners."""
        owner, other = self.table.c[self.owner], self.table.c[self.other]
        return Statement(sa.select(owner, other).where(owner.in_(ids_param())))


def without_nulls(row: Mapping[Any, Any]) -> Values:
    """Return a row without the fields that are None."""
    return {name: value for name, value in row.items() if value is not None}


def changes_without_nulls(_tx: Tx, _record: Values, changes: Values) -> Values:
    """Return the changes without the fields that were sent without a value; these keep their values."""
    return without_nulls(changes)


def _keep_values(_tx: Tx, values: Values) -> Values:
    return values


def no_action(_tx: Tx, _record: Any) -> None:
    return None


def _no_consequence(_tx: Tx, _before: Values, _after: Values) -> None:
    return None


@frozen
class RecordKind:
    """One kind of records: its table, and the rules that are special to it.

    Attributes:
        path: Its path in the API, such as ``files``.
        title: Its name in messages, such as ``File``.
        filters: Query parameters of its list.
        relations: Its fields that are lists of ids.
        before_create: Gets the values of a new record and returns those to store; may raise `RuleError`.
        after_create: Gets each new record.
        before_update: Gets a record and the changes, and returns the changes to store; may raise `RuleError`.
        after_update: Gets a record as it was before and as it is after a change.
        before_delete: Gets the records that are about to be deleted; may update what refers to them, or raise
            `RuleError`.
        kept: Condition on the records that `crud.delete_all` keeps.
    """

    path: str
    title: str
    record: type[Record]
    table: sa.Table
    filters: Mapping[str, ListFilter] = Factory(dict)
    relations: Mapping[str, RelationTable] = Factory(dict)
    before_create: Callable[[Tx, Values], Values] = _keep_values
    after_create: Callable[[Tx, Values], None] = no_action
    before_update: Callable[[Tx, Values, Values], Values] = changes_without_nulls
    after_update: Callable[[Tx, Values, Values], None] = _no_consequence
    before_delete: Callable[[Tx, Sequence[Values]], None] = no_action
    kept: sa.ColumnElement[bool] | None = None

    @property
    def columns(self) -> list[sa.Column[Any]]:
        """The columns of the record's fields that are not lists."""
        return [self.table.c[name] for name in self.names if name not in self.relations]

    @property
    def free_fields(self) -> frozenset[str]:
        """The required fields of any JSON value, of which null is one."""
        return frozenset(each.name for each in fields(self.record) if each.default is NOTHING and each.type is Any)

    @property
    def names(self) -> list[str]:
        """The names of the record's fields."""
        return [attribute.name for attribute in fields(self.record)]

    def names_with(self, access: FieldAccess) -> set[str]:
        """Return the names of the fields with this access."""
        return {attribute.name for attribute in fields(self.record) if describe_field(attribute)[1] is access}


@frozen
class PageRequest:
    """The part of a list that is wanted, and its order.

    Attributes:
        offset: Number of records to skip; the database reads these, too.
        limit: Most records; a negative limit means no limit.
        after_id: Skip all records up to the one of this id, in the order of the list; the database does not read these.
        allowed_bytes: Largest size of the page, with which it is read; None allows any.
    """

    offset: int = 0
    limit: int = 10_000
    sort_by: str | None = None
    reverse: bool = False
    after_id: int | None = None
    allowed_bytes: int | None = None
