"""Deletes a workflow: it disappears at once, and its rows are deleted in many short transactions.

A workflow exists as long as its row in ``workflow_status`` does. `begin_deletion` deletes that row only, so that no
function of the store finds the workflow any more; `finish_deletions` deletes the other rows, those that refer to others
first. Other changes go between its transactions, and a crash between two of them loses nothing: the next call continues
with all workflows that have no status.
"""

import time
from collections.abc import Callable
from functools import cache
from typing import Any, Final

import sqlalchemy as sa
from attrs import frozen

from torc_framework.store.database.base import Database
from torc_framework.store.database.sql import Statement, Tx, first, param
from torc_framework.store.job_state.jobs_to_stop import check_workflow_deletable
from torc_framework.store.record_kinds.workflows import WORKFLOWS
from torc_framework.store.records.crud import get
from torc_framework.store.records.kind import Values
from torc_framework.store.tables import METADATA
from torc_framework.store.tables import core as t
from torc_framework.store.tables.internal import ID_COUNTER, JOB_TO_STOP

SLICE_S: Final = (0.05, 0.2)
"""The slice after one that took less than the first time is twice as large; after one that took more than the second
time, it is half as large.
"""
PAUSE_S: Final = 0.002
"""Pause between two slices, in which a change that waits for the write lock gets it."""
_FEWEST, _MOST = 100, 100_000
"""Least and largest number of rows, or of jobs whose rows are deleted, in one slice."""
_FIRST: Final = 5_000


def begin_deletion(tx: Tx, workflow_id: int, *, force: bool) -> Values:
    """Make a workflow disappear; return its record.

    Raises:
        NotFoundError: there is no such workflow.
        ConflictError: without ``force``, some of its jobs are pending or running.
    """
    check_workflow_deletable(tx, workflow_id, force=force)
    record = get(tx, WORKFLOWS, workflow_id)
    WORKFLOWS.before_delete(tx, [record])
    tx.connection.execute(sa.delete(t.WORKFLOW_STATUS).where(t.WORKFLOW_STATUS.c.id == workflow_id))
    return record


def unfinished_deletions(database: Database) -> list[int]:
    """Return the ids of the workflows that have disappeared and still have rows."""
    with database.read() as tx:
        return [row[0] for row in tx.rows(_DISAPPEARED)]


def finish_deletions(database: Database, is_stopping: Callable[[], bool] = lambda: False) -> None:
    """Delete the rows of all workflows that have disappeared; return early when ``is_stopping`` returns True.

    Raises:
        DatabaseError: the database cannot be written; a later call continues.
    """
    for workflow_id in unfinished_deletions(database):
        slices = _Slices(database, workflow_id, is_stopping)
        for part in _parts():
            slices.delete(part)


@frozen
class _RowsOfWorkflow:
    """The rows of a table that has the workflow in a column."""

    table: sa.Table
    delete: Statement

    @classmethod
    def of(cls, table: sa.Table, column: sa.Column[Any]) -> "_RowsOfWorkflow":
        key = [*table.primary_key.columns]
        if len(key) > 1:  # a short list, without ids
            return cls(table, Statement(sa.delete(table).where(column == param("workflow")), "workflow", "count"))
        some = sa.select(key[0]).where(column == param("workflow"))
        chosen = key[0].in_(first(some, param("count")))
        if any([each.name for each in index.columns] == ["workflow_id", "id"] for index in table.indexes):
            # Rows that lie side by side take a third of the time of others, and a range a fifth less than a list.
            ids = first(some.order_by(key[0]), param("count")).subquery("some")
            chosen = sa.and_(column == param("workflow"), key[0] <= sa.select(sa.func.max(ids.c.id)).scalar_subquery())
        return cls(table, Statement(sa.delete(table).where(chosen), "workflow", "count"))


@frozen
class _RowsOfJobs:
    """The rows of a table that has the job in a column, of the jobs whose ids are in a range.

    Attributes:
        delete: Deletes those of the jobs of one workflow.
        delete_range: Deletes those of all jobs in the range, which takes half of the time.
    """

    table: sa.Table
    any_row: Statement
    delete: Statement
    delete_range: Statement

    @classmethod
    def of(cls, table: sa.Table) -> "_RowsOfJobs":
        column = table.c.job_id
        of_range = sa.and_(column > param("after"), column <= param("last"))
        jobs = sa.select(t.JOB.c.id).where(
            t.JOB.c.workflow_id == param("workflow"), t.JOB.c.id > param("after"), t.JOB.c.id <= param("last")
        )
        return cls(
            table,
            Statement(first(sa.select(column).where(of_range), sa.literal_column("1", sa.Integer)), "after", "last"),
            Statement(sa.delete(table).where(column.in_(jobs)), "workflow", "after", "last"),
            Statement(sa.delete(table).where(of_range), "after", "last"),
        )


def _part(table: sa.Table) -> _RowsOfWorkflow | _RowsOfJobs:
    """Return how the rows of a workflow in a table are found."""
    if table is t.WORKFLOW:
        return _RowsOfWorkflow.of(table, table.c.id)
    if table is JOB_TO_STOP:
        nodes = sa.select(t.COMPUTE_NODE.c.id).where(t.COMPUTE_NODE.c.workflow_id == param("workflow"))
        delete = sa.delete(table).where(table.c.compute_node_id.in_(nodes))
        return _RowsOfWorkflow(table, Statement(delete, "workflow", "count"))
    if "workflow_id" in table.c:
        return _RowsOfWorkflow.of(table, table.c.workflow_id)
    return _RowsOfJobs.of(table)


OF_NO_WORKFLOW: Final = frozenset({ID_COUNTER.name, "access_group", "user_group_membership", t.WORKFLOW_STATUS.name})
"""Tables of which a workflow that has disappeared has no row."""


@cache
def _parts() -> tuple[_RowsOfWorkflow | _RowsOfJobs, ...]:
    """Return all tables with rows of workflows; each comes before those to which its rows refer.

    Not made when the module is imported: every server and every read imports it, and few of them delete.
    """
    return tuple(_part(table) for table in reversed(METADATA.sorted_tables) if table.name not in OF_NO_WORKFLOW)


_DISAPPEARED: Final = Statement(
    sa.select(t.WORKFLOW.c.id).where(~sa.exists().where(t.WORKFLOW_STATUS.c.id == t.WORKFLOW.c.id))
)
_JOBS: Final = sa.select(t.JOB.c.id).where(t.JOB.c.workflow_id == param("workflow"), t.JOB.c.id > param("after"))
_JOB_RANGE: Final = Statement(
    sa.select(
        *(  # two queries: SQLite finds the least and the largest by the index only if they are asked for one by one
            sa.select(bound(t.JOB.c.id)).where(t.JOB.c.workflow_id == param("workflow")).scalar_subquery()
            for bound in (sa.func.min, sa.func.max)
        )
    ),
    "workflow",
)
_NEXT: Final = first(_JOBS.order_by(t.JOB.c.id), param("count")).subquery()
_NEXT_JOBS: Final = Statement(sa.select(sa.func.max(_NEXT.c.id), sa.func.count()), "workflow", "after", "count")
"""The largest id and the number of the next jobs."""


class _Slices:
    """Deletes the rows of one workflow in transactions of about the same duration."""

    def __init__(self, database: Database, workflow_id: int, is_stopping: Callable[[], bool]) -> None:
        self._database = database
        self._workflow_id = workflow_id
        self._is_stopping = is_stopping
        self._size = _FIRST

    def delete(self, part: _RowsOfWorkflow | _RowsOfJobs) -> None:
        """Delete the rows in one table."""
        if isinstance(part, _RowsOfJobs):
            self._delete_rows_of_jobs(part)
            return
        while not self._is_stopping() and self._change(part.delete, self._workflow_id, self._size):
            if len(part.table.primary_key.columns) > 1:
                return

    def _delete_rows_of_jobs(self, part: _RowsOfJobs) -> None:
        with self._database.read() as tx:
            ((least, largest),) = tx.rows(_JOB_RANGE, self._workflow_id)
            if least is None or tx.row(part.any_row, least - 1, largest) is None:
                return
        after = least - 1
        while not self._is_stopping():
            with self._database.read() as tx:
                ((last, count),) = tx.rows(_NEXT_JOBS, self._workflow_id, after, self._size)
                is_empty = last is None or tx.row(part.any_row, after, last) is None
            if last is None:
                return
            if not is_empty and last - after == count:  # as many ids as jobs: none belongs to another workflow
                self._change(part.delete_range, after, last)
            elif not is_empty:
                self._change(part.delete, self._workflow_id, after, last)
            after = last

    def _change(self, delete: Statement, *values: int) -> int:
        """Delete one slice; return the number of its rows."""
        begin = time.monotonic()
        with self._database.write_bulk(self._workflow_id) as tx:
            count = tx.changed(delete, *values)
        took_s = time.monotonic() - begin
        if took_s < SLICE_S[0]:
            self._size = min(2 * self._size, _MOST)
        elif took_s > SLICE_S[1]:
            self._size = max(self._size // 2, _FEWEST)
        if count:
            time.sleep(PAUSE_S)
        return count
