"""One set of functions for the records of every kind: get, find, create, update, delete.

What is special about a kind is said in its `RecordKind`; see ``resources`` for the list of them.
Values are plain dictionaries by field name, as JSON has them.
"""

from collections.abc import Callable, Generator, Iterable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from typing import Any, Final

import sqlalchemy as sa
from attrs import Factory, fields, frozen

from torc_framework.models.records import FieldAccess, Record, describe_field
from torc_framework.store.database.sql import Statement, Tx, ids_param
from torc_framework.store.errors import ConflictError, NotFoundError, RuleError
from torc_framework.store.records.references import check_references
from torc_framework.store.tables.core import WORKFLOW

PAGE_BYTES: Final = 16 * 1024 * 1024
"""A page ends with the slice that makes it so large."""
SLICE_RECORDS: Final = 256
SLICE_BYTES: Final = 1024 * 1024
"""A slice is smaller than this, or one record."""
ID_BYTES: Final = 8
"""What an id in a relation counts."""

Values = dict[str, Any]
Condition = Callable[[Any], sa.ColumnElement[bool]]


@frozen
class ListFilter:
    """One query parameter of a list.

    Attributes:
        kind: Type of its value.
        condition: What rows must satisfy, given the value.
        default: Its value when none is given; None lets everything through.
    """

    kind: type[Any]
    condition: Condition
    default: Any = None


@frozen
class RelationTable:
    """A list of ids that lives in a table of its own: ``owner`` and ``other`` are its columns."""

    table: sa.Table
    owner: str
    other: str

    def query(self) -> Statement:
        """Return the selection of (owner, other) for a list of owners."""
        owner, other = self.table.c[self.owner], self.table.c[self.other]
        return Statement(sa.select(owner, other).where(owner.in_(ids_param())))


def _keep_values(_tx: Tx, values: Values) -> Values:
    return values


def _no_action(_tx: Tx, _record: Any) -> None:
    return None


def changes_without_nulls(_tx: Tx, _record: Values, changes: Values) -> Values:
    """Leave fields alone that were sent without a value."""
    return without_nulls(changes)


def _no_consequence(_tx: Tx, _before: Values, _after: Values) -> None:
    return None


@frozen
class RecordKind:
    """One kind of record: where it lives and what is special about it.

    Attributes:
        path: Its place in the API, such as ``files``.
        kind: Its name in messages, such as ``File``.
        filters: Query parameters of its list.
        relations: Its fields that are lists of ids.
        before_create: May complete or refuse the values of a new record.
        after_create: Is told of a new record.
        before_update: May complete or refuse changes; gets the record as it is.
        after_update: Is told of a changed record, as it was and as it is.
        before_delete: May refuse, or mend what refers to the records.
        kept: Records that a delete of all leaves.
    """

    path: str
    kind: str
    record: type[Record]
    table: sa.Table
    filters: Mapping[str, ListFilter] = Factory(dict)
    relations: Mapping[str, RelationTable] = Factory(dict)
    before_create: Callable[[Tx, Values], Values] = _keep_values
    after_create: Callable[[Tx, Values], None] = _no_action
    before_update: Callable[[Tx, Values, Values], Values] = changes_without_nulls
    after_update: Callable[[Tx, Values, Values], None] = _no_consequence
    before_delete: Callable[[Tx, Sequence[Values]], None] = _no_action
    kept: sa.ColumnElement[bool] | None = None

    @property
    def columns(self) -> list[sa.Column[Any]]:
        """The columns of the record's own fields."""
        return [self.table.c[name] for name in self.names if name not in self.relations]

    @property
    def names(self) -> list[str]:
        """The record's fields."""
        return [attribute.name for attribute in fields(self.record)]

    def names_with(self, access: FieldAccess) -> set[str]:
        """Return the fields that are set so."""
        return {attribute.name for attribute in fields(self.record) if describe_field(attribute)[1] is access}


@frozen
class PageRequest:
    """Which part of a list is wanted, and in which order; a negative limit is none."""

    offset: int = 0
    limit: int = 10_000
    sort_by: str | None = None
    reverse: bool = False


def without_nulls(row: Mapping[Any, Any]) -> Values:
    """Return a row without its empty fields."""
    return {name: value for name, value in row.items() if value is not None}


def get(tx: Tx, resource: RecordKind, record_id: int) -> Values:
    """Return one record with its relations.

    Raises:
        NotFoundError: there is none of this id.
    """
    query = sa.select(*resource.columns).where(resource.table.c.id == record_id)
    row = tx.connection.execute(query).mappings().first()
    if row is None:
        raise NotFoundError(resource.kind, record_id)
    record = without_nulls(row)
    add_relations(tx, resource, [record])
    return record


def _ascending(column: sa.Column[Any]) -> sa.UnaryExpression[Any]:
    return _sortable(column).asc().nulls_first() if column.nullable else _sortable(column).asc()


def _descending(column: sa.Column[Any]) -> sa.UnaryExpression[Any]:
    return _sortable(column).desc().nulls_last() if column.nullable else _sortable(column).desc()


def _sortable(column: sa.Column[Any]) -> sa.ColumnElement[Any]:
    """Return what a column is sorted by: JSON has no order but that of its text."""
    return sa.cast(column, sa.Text) if isinstance(column.type, sa.JSON) else column


def find(
    tx: Tx,
    resource: RecordKind,
    conditions: Sequence[sa.ColumnElement[bool]],
    wanted: PageRequest,
    *,
    relations: bool = False,
) -> tuple[list[Values], int]:
    """Return one page of the records that satisfy all conditions, and how many there are in all.

    A page that is limited in number is limited to `PAGE_BYTES`, too: it may be shorter than its limit, and then
    more records follow.

    Raises:
        RuleError: the list cannot be sorted so.
    """
    if wanted.limit < 0:
        query = _selected(resource, resource.columns, conditions, wanted)
        records = _records(tx, resource, query, relations=relations)
        is_last = True
    else:
        records, is_full = _limited_in_bytes(slices(tx, resource, conditions, wanted, relations=relations))
        is_last = len(records) < wanted.limit and not is_full
    if is_last and (records or not wanted.offset):
        return records, wanted.offset + len(records)
    count = sa.select(sa.func.count()).select_from(resource.table).where(*conditions)
    return records, int(tx.connection.execute(count).scalar_one())


def _limited_in_bytes(parts: Generator[tuple[list[Values], int], None, None]) -> tuple[list[Values], bool]:
    """Return the records of the first slices, and whether they fill a page."""
    records: list[Values] = []
    room = PAGE_BYTES
    with closing(parts):
        for part, size in parts:
            records += part
            room -= size
            if room <= 0:
                return records, True
    return records, False


def slices(
    tx: Tx,
    resource: RecordKind,
    conditions: Sequence[sa.ColumnElement[bool]],
    wanted: PageRequest,
    *,
    relations: bool = False,
) -> Generator[tuple[list[Values], int], None, None]:
    """Yield the records that `find` would return, slice by slice, each with its size in bytes.

    The database sorts ids and sizes, and gives the records of one slice at a time: neither it nor this process has
    more of them in memory.

    Raises:
        RuleError: the list cannot be sorted so.
    """
    id_column = resource.table.c.id
    with tx.connection.execute(_selected(resource, [id_column, _size(resource)], conditions, wanted)) as found:
        for ids, size in _grouped(found):
            query = sa.select(*resource.columns).where(id_column.in_(ids))
            part = _records(tx, resource, query, relations=relations)
            place = {id_: number for number, id_ in enumerate(ids)}
            part.sort(key=lambda record, place=place: place[record["id"]])  # type: ignore[misc]
            related = resource.relations if relations else ()
            yield part, size + ID_BYTES * sum(len(record.get(name, ())) for name in related for record in part)


def _grouped(found: Iterable[Any]) -> Iterator[tuple[list[int], int]]:
    """Yield the ids of one slice after another, each with the size of its records."""
    ids: list[int] = []
    total = 0
    for id_, size in found:
        if ids and (len(ids) == SLICE_RECORDS or total + size > SLICE_BYTES):
            yield ids, total
            ids, total = [], 0
        ids.append(id_)
        total += size
    if ids:
        yield ids, total


def _size(resource: RecordKind) -> sa.ColumnElement[int]:
    """Return the length of all texts of a record."""
    size: sa.ColumnElement[int] = sa.literal(0)
    for column in resource.columns:
        stored_as = getattr(column.type, "impl", column.type)  # a type of SQLModel is a decorator around one
        if isinstance(stored_as, sa.String | sa.JSON):
            size = size + sa.func.coalesce(sa.func.length(_sortable(column)), 0)
    return size


def _selected(
    resource: RecordKind,
    columns: Sequence[sa.ColumnElement[Any]],
    conditions: Sequence[sa.ColumnElement[bool]],
    wanted: PageRequest,
) -> sa.Select[Any]:
    """Return the selection of columns of the records on a page, in order."""
    id_column = resource.table.c.id
    order: sa.Column[Any] = id_column
    if wanted.sort_by is not None:
        if wanted.sort_by not in (sortable := [column.name for column in resource.columns]):
            raise RuleError(f"cannot sort {resource.path} by {wanted.sort_by!r}; known: {', '.join(sortable)}")
        order = resource.table.c[wanted.sort_by]
    direction = _descending if wanted.reverse else _ascending
    query = (
        sa.select(*columns).where(*conditions).order_by(direction(order), direction(id_column)).offset(wanted.offset)
    )
    return query.limit(wanted.limit) if wanted.limit >= 0 else query


def _records(tx: Tx, resource: RecordKind, query: sa.Select[Any], *, relations: bool) -> list[Values]:
    """Return the records of which a query selects the columns, with their relations if they are wanted."""
    names = [column.name for column in resource.columns]
    rows = tx.connection.execute(query)
    records = [{name: value for name, value in zip(names, row, strict=True) if value is not None} for row in rows]
    if relations:
        add_relations(tx, resource, records)
    return records


def find_in_workflow(
    tx: Tx,
    resource: RecordKind,
    workflow_id: int | None,
    filters: Mapping[str, Any],
    wanted: PageRequest,
    *,
    more: Sequence[sa.ColumnElement[bool]] = (),
    relations: bool = False,
) -> tuple[list[Values], int]:
    """Return one page of a workflow's records, or of all, that its filters let through, and how many there are.

    Args:
        filters: Values by the names of the kind's filters; None is not given.
        more: What they must satisfy besides.

    Raises:
        NotFoundError: there is no such workflow.
        RuleError: the list cannot be sorted so, or a filter's value makes no sense.
    """
    conditions = [*more]
    if workflow_id is not None:
        require_workflow(tx, workflow_id)
        conditions.append(resource.table.c.workflow_id == workflow_id)
    for name, filter_ in resource.filters.items():
        value = filters.get(name)
        value = filter_.default if value is None else value
        if value is not None:
            conditions.append(filter_.condition(value))
    return find(tx, resource, conditions, wanted, relations=relations)


_RELATION_QUERIES: Final[dict[tuple[str, str], Statement]] = {}


def add_relations(tx: Tx, resource: RecordKind, records: Sequence[Values]) -> None:
    """Put the ids of their relations into records, in order; empty ones are left out."""
    by_id = {record["id"]: record for record in records}
    for name, relation in resource.relations.items():
        key = resource.path, name
        if key not in _RELATION_QUERIES:
            _RELATION_QUERIES[key] = relation.query()
        for owner, other in sorted(tx.rows_for(_RELATION_QUERIES[key], list(by_id))):
            by_id[owner].setdefault(name, []).append(other)


def require_workflow(tx: Tx, workflow_id: int) -> None:
    """Raise `NotFoundError` unless there is such a workflow."""
    if tx.connection.execute(sa.select(WORKFLOW.c.id).where(WORKFLOW.c.id == workflow_id)).first() is None:
        raise NotFoundError("Workflow", workflow_id)


def create(tx: Tx, resource: RecordKind, sent: Mapping[str, Any]) -> Values:
    """Store a new record; return it as stored.

    Raises:
        NotFoundError: its workflow does not exist.
        ConflictError: another record has its name.
        RuleError: the kind's rules refuse it, or it names what its workflow does not have.
    """
    if "workflow_id" in sent:
        require_workflow(tx, sent["workflow_id"])
    allowed = set(resource.names) - resource.names_with(FieldAccess.SERVER)
    values = resource.before_create(tx, {name: value for name, value in sent.items() if name in allowed})
    if "workflow_id" in values:
        check_references(tx, resource.path, values["workflow_id"], [values])
    own = {name: value for name, value in values.items() if name not in resource.relations}
    with constraint_errors_translated(resource, values):
        record_id = tx.add(resource.table, **own)
    for name, relation in resource.relations.items():
        if others := values.get(name):
            rows = [{relation.owner: record_id, relation.other: other} for other in others]
            tx.connection.execute(sa.insert(relation.table), rows)
    record = get(tx, resource, record_id)
    resource.after_create(tx, record)
    return record


def update(tx: Tx, resource: RecordKind, record_id: int, sent: Mapping[str, Any]) -> Values:
    """Change the fields that were sent with a value; return the record as it is now.

    Raises:
        NotFoundError: there is none of this id.
        ConflictError: another record has its new name.
        RuleError: a field cannot be changed, or the kind's rules refuse it.
    """
    before = get(tx, resource, record_id)
    frozen_names = resource.names_with(FieldAccess.CREATE)
    given = {name: value for name, value in sent.items() if value is not None}
    changed = [name for name in given if name in frozen_names and differs(given[name], before.get(name))]
    if changed:
        raise RuleError(f"{resource.kind} {record_id}: cannot change {', '.join(sorted(changed))}")
    allowed = set(resource.names) - resource.names_with(FieldAccess.SERVER) - frozen_names
    wanted = {name: value for name, value in sent.items() if name in allowed}
    if "workflow_id" in before:
        check_references(tx, resource.path, before["workflow_id"], [wanted])
    changes = resource.before_update(tx, before, wanted)
    own = {name: value for name, value in changes.items() if name not in resource.relations}
    if own:
        with constraint_errors_translated(resource, {**before, **own}):
            tx.connection.execute(sa.update(resource.table).where(resource.table.c.id == record_id).values(own))
    after = get(tx, resource, record_id)
    resource.after_update(tx, before, after)
    return after


def differs(sent: Any, stored: Any) -> bool:
    """Say whether a sent value is another; an empty list is the same as none."""
    if isinstance(sent, list):
        return sorted(sent) != sorted(stored or [])
    return bool(sent != stored)


def delete(tx: Tx, resource: RecordKind, record_id: int) -> Values:
    """Delete a record with all that belongs to it; return it as it was.

    Raises:
        NotFoundError: there is none of this id.
        RuleError: the kind's rules refuse it.
    """
    record = get(tx, resource, record_id)
    resource.before_delete(tx, [record])
    tx.connection.execute(sa.delete(resource.table).where(resource.table.c.id == record_id))
    return record


def delete_all(tx: Tx, resource: RecordKind, workflow_id: int) -> int:
    """Delete all records of one kind in a workflow; return how many."""
    require_workflow(tx, workflow_id)
    mine = [resource.table.c.workflow_id == workflow_id]
    if resource.kept is not None:
        mine.append(sa.not_(resource.kept))
    if resource.before_delete is not _no_action:
        records, _ = find(tx, resource, mine, PageRequest(limit=-1))
        resource.before_delete(tx, records)
    return int(tx.connection.execute(sa.delete(resource.table).where(*mine)).rowcount)


@contextmanager
def constraint_errors_translated(resource: RecordKind, values: Mapping[str, Any]) -> Iterator[None]:
    """Tell a broken constraint in words.

    Raises:
        ConflictError: there is such a record already.
        RuleError: the database refuses it otherwise.
    """
    try:
        yield
    except sa.exc.IntegrityError as error:
        what = f"{resource.kind} {values['name']!r}" if values.get("name") else resource.kind
        if "unique" in str(error.orig).lower():
            raise ConflictError(f"{what} exists already in workflow {values.get('workflow_id')}") from error
        raise RuleError(f"{what}: {error.orig}") from error
