"""Create, read, update and delete records of any kind.

`RecordKind` describes a kind; the kinds themselves are in ``record_kinds``. Records are dictionaries by field name,
with the values that JSON has.
"""

from collections.abc import Generator, Iterable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from itertools import chain
from typing import Any, Final

import sqlalchemy as sa
from attrs import evolve

from torc_framework.models.records import FieldAccess
from torc_framework.store.database.sql import Statement, Tx
from torc_framework.store.errors import ConflictError, LargeReadError, NotFoundError, RuleError
from torc_framework.store.records.kind import PageRequest, RecordKind, Values, no_action
from torc_framework.store.records.references import check_references
from torc_framework.store.tables.core import WORKFLOW, WORKFLOW_STATUS

PAGE_BYTES: Final = 16 * 1024 * 1024
"""A page ends with the slice that makes it this large."""
SLICE_RECORDS: Final = 256
SLICE_BYTES: Final = 1024 * 1024
"""A slice is smaller than this, or has one record only."""
ID_BYTES: Final = 8
"""Size of an id in a relation, as it counts towards the size of a page."""
RECORD_BYTES: Final = 256
"""About the size of a record without its texts, as it counts towards the memory that a page takes."""


def get(tx: Tx, kind: RecordKind, record_id: int) -> Values:
    """Return one record with its relations.

    Raises:
        NotFoundError: there is no record of this id.
    """
    query = sa.select(*kind.columns).where(kind.table.c.id == record_id, *_in_existing_workflow(kind))
    row = tx.connection.execute(query).mappings().first()
    if row is None:
        raise NotFoundError(kind.title, record_id)
    record = _present(row.items(), kind.free_fields)
    add_relations(tx, kind, [record])
    return record


def size_of(tx: Tx, kind: RecordKind, condition: sa.ColumnElement[bool]) -> int:
    """Return the length of all texts of the records that satisfy a condition."""
    total = sa.func.coalesce(sa.func.sum(_size(kind)), 0)
    return int(tx.connection.execute(sa.select(total).where(condition)).scalar_one())


def _in_existing_workflow(kind: RecordKind) -> list[sa.ColumnElement[bool]]:
    """Return the condition on records whose workflow is not being deleted (`workflows.deletion`)."""
    column = kind.table.c.id if kind.table is WORKFLOW else kind.table.c.get("workflow_id")
    return [] if column is None else [sa.exists().where(WORKFLOW_STATUS.c.id == column)]


def _present(row: Iterable[tuple[Any, Any]], free: frozenset[str]) -> Values:
    """Return the fields of a row that have a value; null is a value of the free fields."""
    return {name: value for name, value in row if value is not None or name in free}


def _ascending(column: sa.Column[Any]) -> sa.UnaryExpression[Any]:
    return _sortable(column).asc().nulls_first() if column.nullable else _sortable(column).asc()


def _descending(column: sa.Column[Any]) -> sa.UnaryExpression[Any]:
    return _sortable(column).desc().nulls_last() if column.nullable else _sortable(column).desc()


def _sortable(column: sa.Column[Any]) -> sa.ColumnElement[Any]:
    """Return the expression that a column is sorted by; JSON is sorted by its text."""
    return sa.cast(column, sa.Text) if isinstance(column.type, sa.JSON) else column


def find(
    tx: Tx,
    kind: RecordKind,
    conditions: Sequence[sa.ColumnElement[bool]],
    wanted: PageRequest,
    *,
    relations: bool = False,
) -> tuple[list[Values], int]:
    """Return one page of the records that satisfy all conditions, and how many records satisfy them.

    A page with a limit is limited to about `PAGE_BYTES`, too: it may have fewer records than its limit although more
    records follow. The number of records after an ``after_id`` is not counted: it is that of the page, and one more if
    others follow.

    Raises:
        LargeReadError: the page is larger than allowed.
        RuleError: the records have no field of the name to sort by, or the record of ``after_id`` was deleted.
    """
    if kind.table is WORKFLOW:
        conditions = [*conditions, *_in_existing_workflow(kind)]
    if wanted.limit < 0:
        query = _selected(tx, kind, kind.columns, conditions, wanted)
        records = _records(tx, kind, query, relations=relations)
        is_last = True
    else:
        records, is_full = _limited_in_bytes(slices(tx, kind, conditions, wanted, relations=relations))
        is_last = len(records) < wanted.limit and not is_full
    if is_last and (records or not wanted.offset):
        return records, wanted.offset + len(records)
    if wanted.after_id is not None and records:
        rest = evolve(wanted, after_id=records[-1]["id"], offset=0, limit=1)
        follows = tx.connection.execute(_selected(tx, kind, [kind.table.c.id], conditions, rest)).first() is not None
        return records, wanted.offset + len(records) + follows
    count = sa.select(sa.func.count()).select_from(kind.table).where(*conditions)
    return records, int(tx.connection.execute(count).scalar_one())


def _limited_in_bytes(parts: Generator[tuple[list[Values], int], None, None]) -> tuple[list[Values], bool]:
    """Return the records of the first slices, and whether these have reached `PAGE_BYTES`."""
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
    kind: RecordKind,
    conditions: Sequence[sa.ColumnElement[bool]],
    wanted: PageRequest,
    *,
    relations: bool = False,
) -> Generator[tuple[list[Values], int], None, None]:
    """Yield the records that `find` returns, in slices, each with its size in bytes.

    The database sorts ids and sizes only, and reads the records of one slice at a time: neither the database nor this
    process holds more of them in memory.

    Raises:
        LargeReadError: the page is larger than allowed.
        RuleError: the records have no field of the name to sort by.
    """
    id_column = kind.table.c.id
    with tx.connection.execute(_selected(tx, kind, [id_column, _size(kind)], conditions, wanted)) as found:
        groups, total = _grouped(chain.from_iterable(found.partitions(SLICE_RECORDS))), 0
        for ids, size in groups:
            total += size + RECORD_BYTES * len(ids)
            if wanted.allowed_bytes is not None and total > wanted.allowed_bytes:
                raise LargeReadError(_page_size(total, groups))
            query = sa.select(*kind.columns).where(id_column.in_(ids))
            part = _records(tx, kind, query, relations=relations)
            place = {id_: number for number, id_ in enumerate(ids)}
            part.sort(key=lambda record, place=place: place[record["id"]])  # type: ignore[misc]  # mypy infers no type for the default
            related = kind.relations if relations else ()
            yield part, size + ID_BYTES * sum(len(record.get(name, ())) for name in related for record in part)


def _page_size(total: int, groups: Iterable[tuple[list[int], int]]) -> int:
    """Return the size of a page, given that of its first slices and the further ones."""
    for ids, size in groups:
        if total >= PAGE_BYTES:
            break
        total += size + RECORD_BYTES * len(ids)
    return total


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


def _size(kind: RecordKind) -> sa.ColumnElement[int]:
    """Return the expression for the length of all texts of a record."""
    size: sa.ColumnElement[int] = sa.literal(0)
    for column in kind.columns:
        stored_as = getattr(column.type, "impl", column.type)  # SQLModel wraps SQLAlchemy's type
        if isinstance(stored_as, sa.String | sa.JSON):
            size = size + sa.func.coalesce(sa.func.length(_sortable(column)), 0)
    return size


def _selected(
    tx: Tx,
    kind: RecordKind,
    columns: Sequence[sa.ColumnElement[Any]],
    conditions: Sequence[sa.ColumnElement[bool]],
    wanted: PageRequest,
) -> sa.Select[Any]:
    """Return the query for columns of the records on a page, in the page's order."""
    id_column = kind.table.c.id
    order: sa.Column[Any] = id_column
    if wanted.sort_by is not None:
        if wanted.sort_by not in (sortable := [column.name for column in kind.columns]):
            raise RuleError(f"cannot sort {kind.path} by {wanted.sort_by!r}; known: {', '.join(sortable)}")
        order = kind.table.c[wanted.sort_by]
    direction = _descending if wanted.reverse else _ascending
    by = [direction(order)] if order is id_column else [direction(order), direction(id_column)]
    query = sa.select(*columns).where(*conditions).order_by(*by)
    if wanted.after_id is not None:
        query = query.where(_follows(tx, kind, order, wanted.after_id, reverse=wanted.reverse))
    if wanted.offset:
        query = query.offset(wanted.offset)
    return query.limit(wanted.limit) if wanted.limit >= 0 else query


def _follows(tx: Tx, kind: RecordKind, order: sa.Column[Any], after_id: int, *, reverse: bool) -> Any:
    """Return the condition on the records that come after one, in the order of a column and the id."""
    id_column = kind.table.c.id
    next_ids = id_column < after_id if reverse else id_column > after_id
    if order is id_column:
        return next_ids
    key = _sortable(order)
    found = tx.connection.execute(sa.select(key).where(id_column == after_id)).first()
    if found is None:
        raise RuleError(f"after_id: {kind.title} {after_id} does not exist any more; read the list from its beginning")
    value = None if found[0] is None else sa.literal(found[0], key.type)
    nulls_follow = sa.and_(order.is_(None), next_ids) if value is None else order.is_(None)
    if reverse:  # nulls come last
        return nulls_follow if value is None else sa.or_(key < value, sa.and_(key == value, next_ids), nulls_follow)
    if value is None:
        return sa.or_(order.is_not(None), nulls_follow)
    return sa.or_(key > value, sa.and_(key == value, next_ids))


def _records(tx: Tx, kind: RecordKind, query: sa.Select[Any], *, relations: bool) -> list[Values]:
    """Return the records whose columns a query selects, with their relations if wanted."""
    names = [column.name for column in kind.columns]
    rows = tx.connection.execute(query).all()
    free = kind.free_fields
    records = [_present(zip(names, row, strict=True), free) for row in rows]
    if relations:
        add_relations(tx, kind, records)
    return records


def find_in_workflow(
    tx: Tx,
    kind: RecordKind,
    workflow_id: int | None,
    filters: Mapping[str, Any],
    wanted: PageRequest,
    *,
    more: Sequence[sa.ColumnElement[bool]] = (),
    relations: bool = False,
) -> tuple[list[Values], int]:
    """Return one page of the records that satisfy the filters, and how many records satisfy them.

    Args:
        workflow_id: Return records of this workflow only; None returns those of all workflows.
        filters: Values by the names of the kind's filters; None does not filter.
        more: Further conditions.

    Raises:
        LargeReadError: the page is larger than allowed.
        NotFoundError: there is no such workflow.
        RuleError: the records have no field of the name to sort by, or a filter refuses its value.
    """
    values = ((each, filters.get(name), each.default) for name, each in kind.filters.items())
    found = ((each, default if value is None else value) for each, value, default in values)
    chosen = [(each, value) for each, value in found if value is not None]
    conditions = [*more, *(each.condition(value) for each, value in chosen)]
    if workflow_id is not None:
        require_workflow(tx, workflow_id)
        column: sa.ColumnElement[Any] = kind.table.c.workflow_id
        if any(each.finds_few for each, _ in chosen):
            column += 0  # SQLite would read all rows of the workflow in the order of their ids, to spare a sort
        conditions.append(column == workflow_id)
    return find(tx, kind, conditions, wanted, relations=relations)


_RELATION_QUERIES: Final[dict[tuple[str, str], Statement]] = {}


def add_relations(tx: Tx, kind: RecordKind, records: Sequence[Values]) -> None:
    """Add the lists of ids of their relations to records, in order; empty lists are left out."""
    by_id = {record["id"]: record for record in records}
    for name, relation in kind.relations.items():
        key = kind.path, name
        if key not in _RELATION_QUERIES:
            _RELATION_QUERIES[key] = relation.query()
        for owner, other in sorted(tx.rows_for(_RELATION_QUERIES[key], list(by_id))):
            by_id[owner].setdefault(name, []).append(other)


def require_workflow(tx: Tx, workflow_id: int) -> None:
    """Raise `NotFoundError` unless the workflow exists."""
    if (
        tx.connection.execute(sa.select(WORKFLOW_STATUS.c.id).where(WORKFLOW_STATUS.c.id == workflow_id)).first()
        is None
    ):
        raise NotFoundError("Workflow", workflow_id)


def create(tx: Tx, kind: RecordKind, sent: Mapping[str, Any]) -> Values:
    """Store a new record; return it as stored.

    Raises:
        NotFoundError: its workflow does not exist.
        ConflictError: another record has its name.
        RuleError: the kind's rules refuse it, or it refers to a record that its workflow does not have.
    """
    if "workflow_id" in sent:
        require_workflow(tx, sent["workflow_id"])
    allowed = set(kind.names) - kind.names_with(FieldAccess.SERVER)
    values = kind.before_create(tx, {name: value for name, value in sent.items() if name in allowed})
    if "workflow_id" in values:
        check_references(tx, kind.path, values["workflow_id"], [values])
    own = {name: value for name, value in values.items() if name not in kind.relations}
    with constraint_errors_translated(kind, values):
        record_id = tx.add(kind.table, **own)
    for name, relation in kind.relations.items():
        if others := values.get(name):
            rows = [{relation.owner: record_id, relation.other: other} for other in others]
            tx.connection.execute(sa.insert(relation.table), rows)
    record = get(tx, kind, record_id)
    kind.after_create(tx, record)
    return record


def update(tx: Tx, kind: RecordKind, record_id: int, sent: Mapping[str, Any]) -> Values:
    """Change the fields that were sent with a value; return the changed record.

    Raises:
        NotFoundError: there is no record of this id.
        ConflictError: another record has its new name.
        RuleError: a field cannot be changed, or the kind's rules refuse the change.
    """
    before = get(tx, kind, record_id)
    frozen_names = kind.names_with(FieldAccess.CREATE)
    given = {name: value for name, value in sent.items() if value is not None}
    changed = [name for name in given if name in frozen_names and differs(given[name], before.get(name))]
    if changed:
        raise RuleError(f"{kind.title} {record_id}: cannot change {', '.join(sorted(changed))}")
    allowed = set(kind.names) - kind.names_with(FieldAccess.SERVER) - frozen_names
    wanted = {name: value for name, value in sent.items() if name in allowed}
    if "workflow_id" in before:
        check_references(tx, kind.path, before["workflow_id"], [wanted])
    changes = kind.before_update(tx, before, wanted)
    own = {name: value for name, value in changes.items() if name not in kind.relations}
    if own:
        with constraint_errors_translated(kind, {**before, **own}):
            tx.connection.execute(sa.update(kind.table).where(kind.table.c.id == record_id).values(own))
    after = get(tx, kind, record_id)
    kind.after_update(tx, before, after)
    return after


def differs(sent: Any, stored: Any) -> bool:
    """Return whether a sent value is not the stored one; an empty list equals None."""
    if isinstance(sent, list):
        return sorted(sent) != sorted(stored or [])
    return bool(sent != stored)


def delete(tx: Tx, kind: RecordKind, record_id: int) -> Values:
    """Delete a record with the rows that belong to it; return the deleted record.

    Workflows are deleted by `workflows.deletion`, in slices.

    Raises:
        NotFoundError: there is no record of this id.
        RuleError: the kind's rules refuse the deletion.
    """
    record = get(tx, kind, record_id)
    kind.before_delete(tx, [record])
    tx.connection.execute(sa.delete(kind.table).where(kind.table.c.id == record_id))
    return record


def delete_all(tx: Tx, kind: RecordKind, workflow_id: int) -> int:
    """Delete all records of one kind in a workflow but those that are `RecordKind.kept`; return how many."""
    require_workflow(tx, workflow_id)
    mine = [kind.table.c.workflow_id == workflow_id]
    if kind.kept is not None:
        mine.append(sa.not_(kind.kept))
    if kind.before_delete is not no_action:
        records, _ = find(tx, kind, mine, PageRequest(limit=-1))
        kind.before_delete(tx, records)
    return int(tx.connection.execute(sa.delete(kind.table).where(*mine)).rowcount)


@contextmanager
def constraint_errors_translated(kind: RecordKind, values: Mapping[str, Any]) -> Iterator[None]:
    """Replace the driver's error about a broken constraint by one with a plain message.

    Raises:
        ConflictError: a record of this name exists.
        RuleError: another constraint is broken.
    """
    try:
        yield
    except sa.exc.IntegrityError as error:
        what = f"{kind.title} {values['name']!r}" if values.get("name") else kind.title
        if "unique" in str(error.orig).lower():
            raise ConflictError(f"{what} exists already in workflow {values.get('workflow_id')}") from error
        raise RuleError(f"{what}: {error.orig}") from error
