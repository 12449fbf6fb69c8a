"""Transactions, and statements that are compiled once and run many times on the driver's own cursor.

SQLAlchemy writes the SQL, for both databases and checked against the tables. Running a `Statement` takes a few
microseconds, where ``Connection.execute`` takes forty. Values are not converted: statuses are numbers, booleans 0 or 1,
JSON is text.
"""

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from itertools import chain, islice
from typing import Any, Final, cast

import sqlalchemy as sa
from attrs import frozen
from sqlalchemy.sql import visitors

from torc_framework.models.statuses import JobStatus
from torc_framework.store.tables import COUNTED
from torc_framework.store.tables.internal import ID_COUNTER

Row = tuple[Any, ...]
LaterRows = Callable[[], list[Row]]
"""Returns the rows of a query; it is called once."""

IDS: Final = "ids"
BEGIN_SAVEPOINT: Final = "SAVEPOINT change"
RELEASE_SAVEPOINT: Final = "RELEASE SAVEPOINT change"
UNDO_TO_SAVEPOINT: Final = "ROLLBACK TO SAVEPOINT change"
_CHUNKS: Final = (1, 4, 16, 64, 256, 1024)
"""Lengths to which lists of ids are padded, so that a few texts of a statement serve all lengths."""


def param(name: str) -> sa.BindParameter[Any]:
    """Return a parameter that gets its value at each run."""
    return sa.bindparam(name, required=False)


def ids_param() -> sa.BindParameter[Any]:
    """Return the parameter that a list of ids is bound to, for ``column.in_(...)``."""
    return sa.bindparam(IDS, expanding=True, required=False)


def numbers(statuses: Iterable[JobStatus]) -> sa.BindParameter[Any]:
    """Return statuses as literals in the text, for ``column.in_(...)``."""
    values = sorted(int(status) for status in statuses)
    return sa.bindparam(None, values, expanding=True, literal_execute=True, type_=sa.SmallInteger)


def number(value: int) -> sa.BindParameter[Any]:
    """Return a small number or flag as a literal in the text."""
    return sa.bindparam(None, int(value), literal_execute=True, type_=sa.SmallInteger)


def first(query: sa.Select[Any], count: sa.ColumnElement[int]) -> sa.Select[Any]:
    """Return the first ``count`` rows of a query."""
    return query.limit(count).offset(sa.literal_column("0", sa.Integer))


def insertion(table: sa.Table, *columns: str) -> "Insertion":
    """Return an insert of these columns, in this order; the other columns get the database's defaults."""
    bare = sa.table(table.name, *(sa.column(table.c[name].name) for name in columns))
    clause = sa.insert(bare).values({name: param(name) for name in columns})
    without_default = {name for name in columns if table.c[name].nullable and table.c[name].server_default is None}
    return Insertion(table.name, clause, *columns, without_default=without_default)


class Statement:
    """One statement, and the order in which its values are given."""

    def __init__(self, clause: sa.Executable, *order: str) -> None:
        self._clause = clause
        self._order = order
        self._texts: dict[str | tuple[str, int], tuple[str, tuple[int, ...] | None]] = {}

    def _compiled(self, dialect: sa.Dialect, ids: int) -> tuple[str, tuple[int, ...] | None]:
        """Return the text for a number of ids, and its order of values.

        The order is a position in the given values for each of the text's; None if both orders are the same.
        """
        key = (dialect.name, ids) if ids else dialect.name
        found = self._texts.get(key)
        if found is None:
            clause: Any = _with_ids(self._clause, ids) if ids else self._clause
            compiled = clause.compile(dialect=dialect, compile_kwargs={"render_postcompile": True})
            order = [*self._order, *(f"{IDS}_{n + 1}" for n in range(ids))]
            places = tuple(order.index(name) for name in compiled.positiontup)
            plain = places == tuple(range(len(order)))
            found = self._texts[key] = compiled.string, None if plain else places
        return found

    def bind(self, dialect: sa.Dialect, values: Sequence[Any], ids: Sequence[int] = ()) -> tuple[str, Sequence[Any]]:
        """Return the text, and the values in the text's order."""
        text, places = self._compiled(dialect, len(ids))
        given = (*values, *ids) if ids else values
        return text, given if places is None else [given[place] for place in places]

    def bind_many(self, dialect: sa.Dialect, rows: Sequence[Row]) -> tuple[str, Sequence[Sequence[Any]]]:
        """Return the text, and each row's values in the text's order."""
        text, places = self._compiled(dialect, 0)
        return text, rows if places is None else [[row[place] for place in places] for row in rows]


class Insertion(Statement):
    """An insert of one row, or of a hundred at once, which takes about four tenths of the time for each.

    Args:
        table: Name of the table.
        clause: The statement for one row.
        columns: Names of the columns.
        without_default: Those of them that are null in rows for which they have no value.
    """

    ROWS_AT_ONCE: Final = 100

    def __init__(self, table: str, clause: sa.Executable, *columns: str, without_default: Collection[str] = ()) -> None:
        super().__init__(clause, *columns)
        self.table = table
        self.columns = columns
        self._without_default = without_default

    def bind_block(self, dialect: sa.Dialect, same: Mapping[int, Any]) -> tuple[str, list[Any]]:
        """Return the text that inserts `ROWS_AT_ONCE` rows, and the values that all rows have.

        The text takes these values first, then those of row after row.

        Args:
            dialect: The dialect of SQLite, whose parameters may have numbers.
            same: The values that all rows have, by the position of their column.
        """
        text, order = self._compiled(dialect, 0)
        assert order is None, "values of an insert are given in the order of its columns"
        into, _, listed = text.partition(" VALUES ")[0].partition(" (")
        nulls = {at for at, value in same.items() if value is None and self.columns[at] in self._without_default}
        shared = {at: value for at, value in same.items() if at not in nulls}
        places = [at for at in range(len(self.columns)) if at not in nulls]
        names = listed.rstrip(")").split(", ")
        number_of = {at: number for number, at in enumerate(shared, 1)}
        following = iter(range(len(shared) + 1, 2**31))
        rows = (
            ", ".join(f"?{number_of.get(at) or next(following)}" for at in places) for _ in range(self.ROWS_AT_ONCE)
        )
        chosen = ", ".join(names[at] for at in places)
        return f"{into} ({chosen}) VALUES ({'), ('.join(rows)})", [*shared.values()]


@frozen
class Same:
    """A column with one value in all rows."""

    value: Any


def _with_ids(clause: sa.Executable, count: int) -> Any:
    """Return the clause with room for ``count`` ids in its list."""

    def set_length(parameter: Any) -> None:
        if parameter.key == IDS:
            parameter.value = [0] * count

    return visitors.cloned_traverse(cast("Any", clause), {}, {"bindparam": set_length})


def whole_row(row: Row, same: Mapping[int, Any]) -> Row:
    """Return a row with the values that all rows have, which are given by the position of their column."""
    left = iter(row)
    return tuple(same[place] if place in same else next(left) for place in range(len(row) + len(same)))


_TAKE_IDS: Final = Statement(
    sa.update(ID_COUNTER)
    .where(ID_COUNTER.c.table_name == param("table"))
    .values(last_id=ID_COUNTER.c.last_id + param("count"))
    .returning(ID_COUNTER.c.last_id),
    "count",
    "table",
)


def padded(ids: Sequence[int]) -> Iterator[Sequence[int]]:
    """Yield ids in chunks whose lengths are among a few; the last chunk is filled by repeating its last id."""
    largest = _CHUNKS[-1]
    if len(ids) == 1:
        yield ids
        return
    for start in range(0, len(ids), largest):
        chunk = ids[start : start + largest]
        length = next(size for size in _CHUNKS if size >= len(chunk))
        yield chunk if length == len(chunk) else [*chunk, *[chunk[-1]] * (length - len(chunk))]


class Tx:
    """One transaction.

    Attributes:
        workflows_to_wake: Workflows whose runners have to hear of a change, such as the end, the cancellation or the
            deletion of the workflow, or a job to stop: the server wakes all of their waiting runners.
        workflows_with_ready_jobs: Workflows in which jobs became ready, or were interrupted and may become ready: the
            server wakes waiting runners that have free places, a few at a time.
        workflows_with_events: Workflows with new events, or that are deleted: the server wakes their event streams.
        events: The new events, each as (workflow, time in milliseconds, JSON text).
        transition_counts: How many jobs changed their status, by the name of the transition.
    """

    def __init__(self, connection: sa.Connection, whole: "Tx | None" = None) -> None:
        """Make an object for a transaction that has begun, or for a part of ``whole``."""
        self._connection = connection
        self._is_part = whole is not None
        self.workflows_to_wake: set[int] = set()
        self.workflows_with_ready_jobs: set[int] = set()
        self.workflows_with_events: set[int] = set()
        self.events: list[tuple[int, int, str]] = []
        self.transition_counts: dict[str, int] = {}
        self._dialect = connection.dialect
        self._cursor: Any = self._new_cursor() if whole is None else whole._cursor

    def _new_cursor(self) -> Any:
        return self._connection.connection.cursor()

    @property
    def connection(self) -> sa.Connection:
        """SQLAlchemy's connection, for statements that need not be fast."""
        return self._connection

    def close(self) -> None:
        """Run no more statements, if this is the whole transaction; the attributes stay.

        It is called before another thread may use the connection. All cursors of a connection share its statements, and
        Python resets the statement of a cursor when it frees the cursor, also while another thread is running it.
        """
        if not self._is_part:
            self._cursor.close()

    @property
    def is_connected(self) -> bool:
        """Whether the connection can be used, also after the transaction."""
        return True

    def part(self) -> "Tx":
        """Return a transaction object for a part of this transaction, which gets notifications of its own."""
        return type(self)(self._connection, self)

    def send_waiting(self) -> None:
        """Run the statements that have not been run at once, so that an error of theirs is raised here."""

    def begin_savepoint(self, *, is_first: bool) -> None:
        """Begin a part of the transaction that can be undone; what was done before is kept if this part is undone.

        Args:
            is_first: The transaction has no savepoint yet.
        """
        if not is_first:
            self._cursor.execute(RELEASE_SAVEPOINT)
        self._cursor.execute(BEGIN_SAVEPOINT)

    def undo_to_savepoint(self) -> None:
        """Undo what was done since `begin_savepoint`.

        Raises:
            Exception: the driver's error, if the database has ended the transaction.
        """
        self._cursor.execute(UNDO_TO_SAVEPOINT)

    def add_notifications(self, part: "Tx") -> None:
        """Add what the listeners would get from a part of this transaction."""
        self.workflows_to_wake |= part.workflows_to_wake
        self.workflows_with_ready_jobs |= part.workflows_with_ready_jobs
        self.workflows_with_events |= part.workflows_with_events
        self.events += part.events
        for name, count in part.transition_counts.items():
            self.add_count(name, count)

    def add_count(self, transition: str, jobs: int) -> int:
        """Add a number of jobs to `transition_counts`; return the number."""
        if jobs:
            self.transition_counts[transition] = self.transition_counts.get(transition, 0) + jobs
        return jobs

    def rows(self, statement: Statement, *values: Any) -> list[Row]:
        """Run a query; return its rows."""
        self._cursor.execute(*statement.bind(self._dialect, values))
        found: list[Row] = self._cursor.fetchall()
        return found

    def row(self, statement: Statement, *values: Any) -> Row | None:
        """Run a query; return its first row."""
        self._cursor.execute(*statement.bind(self._dialect, values))
        found: Row | None = self._cursor.fetchone()
        return found

    def value(self, statement: Statement, *values: Any) -> Any:
        """Run a query; return the first column of its first row, None if there is none."""
        found = self.row(statement, *values)
        return None if found is None else found[0]

    def rows_for(self, statement: Statement, ids: Sequence[int], *values: Any) -> list[Row]:
        """Run a query for many ids, in chunks; return all rows.

        The query must find each row from a single id, because each chunk is a query of its own.
        """
        found: list[Row] = []
        for chunk in padded(ids):
            self._cursor.execute(*statement.bind(self._dialect, values, chunk))
            found += self._cursor.fetchall()
        return found

    def discard_notifications(self) -> None:
        """Forget what the listeners would get, after the changes of this transaction were rolled back to its begin."""
        self.workflows_to_wake.clear()
        self.workflows_with_ready_jobs.clear()
        self.workflows_with_events.clear()
        self.events.clear()
        self.transition_counts.clear()

    def new_ids(self, table: sa.Table, count: int) -> int:
        """Reserve ``count`` consecutive ids that no row of the table has ever had; return the first.

        They come from the table of counters on SQLite, from the table's sequence on PostgreSQL.
        """
        last: int = self.value(_TAKE_IDS, count, table.name)
        return last - count + 1

    def add(self, table: sa.Table, **values: Any) -> int:
        """Insert one row; return its new id."""
        if table in COUNTED:
            values["id"] = self.new_ids(table, 1)
        made = self.connection.execute(sa.insert(table).values(**values))
        return int(made.inserted_primary_key[0])  # type: ignore[index]  # never None after an insert of one row

    def rows_later(self, statement: Statement, *values: Any) -> LaterRows:
        """Return a function that returns the rows of a query; it runs at the latest when the function is called.

        PostgreSQL runs it together with the next statement whose result is needed, which saves a round trip. So it
        depends on the database whether the query sees what is changed before the function is called.
        """
        return lambda: self.rows(statement, *values)

    def rows_for_later(self, statement: Statement, ids: Sequence[int], *values: Any) -> LaterRows:
        """Return a function that returns the rows of `rows_for`; otherwise as `rows_later` does."""
        return lambda: self.rows_for(statement, ids, *values)

    def changed(self, statement: Statement, *values: Any) -> int:
        """Run a change; return the number of changed rows."""
        self._cursor.execute(*statement.bind(self._dialect, values))
        return int(self._cursor.rowcount)

    def changed_for(self, statement: Statement, ids: Sequence[int], *values: Any) -> int:
        """Run a change for many ids, in chunks; return the number of changed rows."""
        changed = 0
        for chunk in padded(ids):
            self._cursor.execute(*statement.bind(self._dialect, values, chunk))
            changed += int(self._cursor.rowcount)
        return changed

    def run(self, statement: Statement, *values: Any) -> None:
        """Run a change. PostgreSQL may run it with a later statement, which then raises its error."""
        self._run(statement, values)

    def run_for(self, statement: Statement, ids: Sequence[int], *values: Any) -> None:
        """Run a change for many ids, in chunks; otherwise as `run` does."""
        for chunk in padded(ids):
            self._run(statement, values, chunk)

    def run_each(self, statement: Statement, rows: Sequence[Row]) -> None:
        """Run a change once for each row of values; otherwise as `run` does."""
        if rows:
            self._cursor.executemany(*statement.bind_many(self._dialect, rows))

    def count_for(self, transition: str, statement: Statement, ids: Sequence[int], *values: Any) -> None:
        """Run a transition of jobs as `run_for` does, and count the jobs."""
        self.add_count(transition, self.changed_for(statement, ids, *values))

    def count_each(self, transition: str, statement: Statement, rows: Sequence[Row]) -> None:
        """Run a transition of jobs as `run_each` does, and count the jobs."""
        self.run_each(statement, rows)
        if rows:
            self.add_count(transition, int(self._cursor.rowcount))

    def _run(self, statement: Statement, values: Sequence[Any], ids: Sequence[int] = ()) -> None:
        self._cursor.execute(*statement.bind(self._dialect, values, ids))

    def insert(self, statement: Insertion, rows: Iterable[Row]) -> None:
        """Insert rows from an iterable without holding all of them in memory."""
        self._insert_blocks(statement, rows, {})

    def insert_columns(self, statement: Insertion, columns: Sequence[Iterable[Any] | Same]) -> None:
        """Insert rows that are given as columns, at least one of which is no `Same`.

        A value that all rows have is passed once for many rows, which takes a third of the time.
        """
        same = {place: column.value for place, column in enumerate(columns) if isinstance(column, Same)}
        others = [column for column in columns if not isinstance(column, Same)]
        self._insert_blocks(statement, zip(*others, strict=True), same)

    def _insert_blocks(self, statement: Insertion, rows: Iterable[Row], same: Mapping[int, Any]) -> None:
        """Insert rows without the values that all rows have, which are given by the position of their column."""
        left, size = iter(rows), Insertion.ROWS_AT_ONCE
        block = list(islice(left, size))
        if len(block) == size:
            text, shared = statement.bind_block(self._dialect, same)

            def values() -> Iterator[list[Any]]:
                nonlocal block
                while len(block) == size:
                    yield [*shared, *chain.from_iterable(block)]
                    block = list(islice(left, size))

            self._cursor.executemany(text, values())
        self.run_each(statement, [whole_row(row, same) for row in block])
