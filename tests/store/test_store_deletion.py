"""A deleted workflow disappears at once; its rows are deleted in short transactions, between which others change."""

from typing import Any

import pytest
import sqlalchemy as sa

from torc_framework.store.access.checks import may_use
from torc_framework.store.database.base import Database
from torc_framework.store.database.sql import Tx
from torc_framework.store.errors import ConflictError, NotFoundError
from torc_framework.store.record_kinds.kinds import IN_WORKFLOWS
from torc_framework.store.record_kinds.workflows import WORKFLOWS
from torc_framework.store.records import crud, events
from torc_framework.store.records.kind import PageRequest
from torc_framework.store.runs.counts import count_database
from torc_framework.store.runs.workflow_status import workflow_status
from torc_framework.store.tables import METADATA
from torc_framework.store.tables import core as t
from torc_framework.store.workflows import deletion
from torc_framework.store.workflows.deletion import OF_NO_WORKFLOW, begin_deletion, finish_deletions

JOBS = 3
"""Jobs of each workflow."""
OF_WORKFLOWS = [
    table for table in METADATA.sorted_tables if table.name not in OF_NO_WORKFLOW or table is t.WORKFLOW_STATUS
]


def insert(tx: Tx, table: sa.Table, number: int, parents: dict[str, int]) -> None:
    """Insert a row with some value in each column that needs one, and references to the parents."""
    values: dict[str, Any] = {}
    for column in table.columns:
        if column.foreign_keys:
            (key,) = column.foreign_keys
            values[column.name] = parents[key.column.table.name]
        elif column.primary_key and column.name == "id":
            values[column.name] = number
        elif column.name == "data" or isinstance(column.type, sa.JSON):
            values[column.name] = {"event_type": "mine"}
        elif column.name == "status" and table in (t.JOB, t.RESULT):
            values[column.name] = "completed"
        elif not column.nullable:
            kind = getattr(column.type, "impl", column.type).python_type  # SQLModel wraps SQLAlchemy's type
            values[column.name] = f"text {number}" if kind is str else kind(number)
    tx.connection.execute(sa.insert(table).values(values))


@pytest.fixture
def two(request: pytest.FixtureRequest, database: Database) -> Database:
    """Workflows 1 and 2 with rows in every table; their ids alternate unless the test asks for ``side by side``."""
    is_alternating = getattr(request, "param", "alternating") == "alternating"
    with database.write() as tx:
        insert(tx, METADATA.tables["access_group"], 1, {})
        for table in OF_WORKFLOWS:
            for number in range(1, 2 * JOBS + 1 if "job_id" in table.c or table is t.JOB else 3):
                last_of_1 = JOBS if "job_id" in table.c or table is t.JOB else 1
                workflow_id = 2 - number % 2 if is_alternating else 1 + (number > last_of_1)
                parents = dict.fromkeys(METADATA.tables, workflow_id) | {"job": number, "access_group": 1}
                insert(tx, table, number, parents)
    return database


def contents(database: Database) -> dict[str, list[str]]:
    """Return all rows."""
    with database.read() as tx:
        return {
            table.name: sorted(map(repr, tx.connection.execute(sa.select(table)))) for table in METADATA.sorted_tables
        }


@pytest.mark.parametrize("two", ["alternating", "side by side"], indirect=True)
@pytest.mark.parametrize("size", [1, 2, JOBS, 1000])
def test_nothing_is_left_of_a_deleted_workflow(two: Database, monkeypatch: pytest.MonkeyPatch, size: int) -> None:
    """In any table; of the other workflow, everything is left."""
    for limit in ("_FIRST", "_FEWEST", "_MOST"):
        monkeypatch.setattr(deletion, limit, size)
    with two.write() as tx:
        assert begin_deletion(tx, 1, force=True)["id"] == 1
    finish_deletions(two)
    found = contents(two)
    with two.read() as tx:
        assert tx.connection.execute(sa.select(t.WORKFLOW.c.id)).scalars().all() == [2]
    for table in OF_WORKFLOWS:
        rows = JOBS if "job_id" in table.c or table is t.JOB else 1
        assert len(found[table.name]) == rows, table.name
    assert len(found["access_group"]) == 1
    assert dangling(two) == {}


def dangling(database: Database) -> dict[str, int]:
    """Return the number of rows that refer to rows that do not exist, by table."""
    found = {}
    with database.read() as tx:
        for table in METADATA.sorted_tables:
            for column in table.columns:
                for key in column.foreign_keys:
                    missing = ~sa.exists().where(key.column.table.alias().c[key.column.name] == column)
                    query = sa.select(sa.func.count()).select_from(table).where(column.is_not(None), missing)
                    if count := tx.connection.execute(query).scalar_one():
                        found[f"{table.name}.{column.name}"] = count
    return found


def test_a_deleted_workflow_is_found_nowhere(two: Database) -> None:
    """From the first transaction on, before its rows are deleted."""
    with two.read() as tx:
        ids = {
            kind.path: [
                record["id"] for record in crud.find(tx, kind, [kind.table.c.workflow_id == 1], PageRequest())[0]
            ]
            for kind in IN_WORKFLOWS
        }
        assert count_database(tx).jobs.total() == 2 * JOBS
    assert all(ids.values())
    with two.write() as tx:
        begin_deletion(tx, 1, force=True)
    with two.read() as tx:
        for kind in IN_WORKFLOWS:
            for record_id in ids[kind.path]:
                with pytest.raises(NotFoundError):
                    crud.get(tx, kind, record_id)
            with pytest.raises(NotFoundError):
                crud.find_in_workflow(tx, kind, 1, {}, PageRequest())
        with pytest.raises(NotFoundError):
            crud.get(tx, WORKFLOWS, 1)
        with pytest.raises(NotFoundError):
            workflow_status(tx, 1)
        found, total = crud.find_in_workflow(tx, WORKFLOWS, None, {}, PageRequest())
        assert ([workflow["id"] for workflow in found], total) == ([2], 1)
        assert events.events_after(tx, 1, 0, 10) is None
        assert events.last_event_id(tx, 1) is None
        assert not may_use(tx, "text 1", 1)
        assert may_use(tx, "text 2", 2)
        counts = count_database(tx)
        assert (counts.jobs.total(), counts.workflows.total()) == (JOBS, 1)
    with two.write() as tx, pytest.raises(NotFoundError):
        begin_deletion(tx, 1, force=True)


def test_others_change_between_the_slices(two: Database, monkeypatch: pytest.MonkeyPatch) -> None:
    """And the deletion continues where an earlier one was stopped."""
    for limit in ("_FIRST", "_FEWEST", "_MOST"):
        monkeypatch.setattr(deletion, limit, 1)
    names: list[str] = []

    def stops_after_eight() -> bool:
        names.append(f"name {len(names)}")
        with two.write() as tx:
            crud.update(tx, WORKFLOWS, 2, {"name": names[-1]})
        return len(names) > 8

    with two.write() as tx:
        begin_deletion(tx, 1, force=True)
    finish_deletions(two, stops_after_eight)
    with two.read() as tx:
        assert crud.get(tx, WORKFLOWS, 2)["name"] == names[-1]
        assert tx.connection.execute(sa.select(t.WORKFLOW.c.id).order_by(t.WORKFLOW.c.id)).scalars().all() == [1, 2]
    finish_deletions(two)
    assert [len(rows) for name, rows in contents(two).items() if name == "workflow"] == [1]
    assert dangling(two) == {}


def test_a_workflow_with_running_jobs_stays_without_force(two: Database) -> None:
    with two.write() as tx:
        tx.connection.execute(sa.update(t.JOB).where(t.JOB.c.id == 1).values(status="running"))
    before = contents(two)
    with two.write() as tx, pytest.raises(ConflictError, match="running"):
        begin_deletion(tx, 1, force=False)
    finish_deletions(two)
    assert contents(two) == before
