"""No id is used twice, on either kind of database."""

import sqlite3
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from pathlib import Path
from typing import Any, cast

import pytest
import sqlalchemy as sa
from alembic import command
from alembic.config import Config
from postgres_server import PostgresServer
from sample_records import ACTION, RECORDS

from torc_framework.models.barriers import Barrier
from torc_framework.models.plan import Plan, PlannedAction, PlannedJob
from torc_framework.models.records import WorkflowRecord
from torc_framework.store.access import groups
from torc_framework.store.database.base import NEW_WORKFLOW, Database
from torc_framework.store.database.opening import open_database
from torc_framework.store.database.postgres import PostgresDatabase
from torc_framework.store.database.postgres import schema_transaction as postgres_schema_transaction
from torc_framework.store.database.sql import Tx
from torc_framework.store.database.sqlite import schema_transaction
from torc_framework.store.migrations import upgrade
from torc_framework.store.record_kinds import actions, jobs
from torc_framework.store.record_kinds.kinds import IN_WORKFLOWS
from torc_framework.store.records import crud
from torc_framework.store.records.kind import RecordKind
from torc_framework.store.tables import COUNTED
from torc_framework.store.tables import core as t
from torc_framework.store.tables.internal import ID_COUNTER
from torc_framework.store.workflows.deletion import begin_deletion, finish_deletions
from torc_framework.store.workflows.plans import create_plan

TABLES = sorted([*COUNTED, t.EVENT], key=lambda table: table.name)


def fill(tx: Tx) -> int:
    """Create a workflow with records of every kind; return its id."""
    plan = Plan(
        workflow=WorkflowRecord(name="w", user="u"),
        jobs=[PlannedJob(name=name, command="true") for name in "abcd"],
        barriers=[Barrier([0, 1], [2, 3])],
        actions=[PlannedAction("on_workflow_start", "run_commands", {"commands": ["true"]})],
    )
    workflow_id = create_plan(tx, plan).id
    job_id = jobs.create_jobs(tx, [{"workflow_id": workflow_id, "name": "e", "command": "true"}])[0]["id"]
    node_id = 0
    for resource in IN_WORKFLOWS:
        values = {**RECORDS[resource.path], "workflow_id": workflow_id}
        if resource.path == "results":
            values |= {"job_id": job_id, "compute_node_id": node_id}
        if resource.path == "jobs":
            continue
        made = crud.create(tx, resource, values)
        node_id = made["id"] if resource.path == "compute_nodes" else node_id
    crud.create(tx, actions.ACTIONS, {**ACTION, "workflow_id": workflow_id})
    return workflow_id


def largest(tx: Tx) -> dict[str, int]:
    """Return the largest id of each table."""
    return {table.name: tx.connection.execute(sa.select(sa.func.max(table.c.id))).scalar() or 0 for table in TABLES}


def counters(tx: Tx) -> dict[str, int]:
    """Return the largest id of each table as the store has counted it."""
    if tx.connection.dialect.name != "sqlite":
        last = "SELECT CASE WHEN is_called THEN last_value ELSE 0 END FROM {}_id_seq"
        names = [table.name for table in COUNTED]
        return {name: tx.connection.exec_driver_sql(last.format(name)).scalar_one() for name in names}
    return {row[0]: row[1] for row in tx.connection.execute(sa.select(ID_COUNTER))}


def smallest(tx: Tx, workflow_id: int) -> dict[str, int]:
    """Return the smallest id of each table in a workflow."""
    found = {}
    for table in TABLES:
        owner = table.c.id if table is t.WORKFLOW else table.c.get("workflow_id")
        if owner is not None:
            mine = sa.select(sa.func.min(table.c.id)).where(owner == workflow_id)
            found[table.name] = tx.connection.execute(mine).scalar()
    return {name: first for name, first in found.items() if first is not None}


def test_a_deleted_workflow_takes_its_ids_along(database: Database) -> None:
    """After the newest records were deleted, new records of every table have larger ids."""
    with database.write() as tx:
        begin_deletion(tx, fill(tx), force=True)
        before = counters(tx)
    finish_deletions(database)
    with database.write() as tx:
        again = fill(tx)
        after = smallest(tx, again)
    assert len(after) >= 13
    assert {name: first for name, first in after.items() if first <= before.get(name, 0)} == {}
    assert before["job"] == 5
    assert after["job"] == 6


@pytest.mark.parametrize("resource", IN_WORKFLOWS, ids=lambda resource: resource.path)
def test_a_deleted_record_takes_its_id_along(database: Database, resource: RecordKind) -> None:
    """After the newest record of a kind, or all of the kind, were deleted, the next has a larger id."""
    with database.write() as tx:
        workflow_id = fill(tx)
    ids = []
    for _ in range(3):
        with database.write() as tx:
            values = {**RECORDS[resource.path], "workflow_id": workflow_id}
            if "name" in values:
                values["name"] = "other"
            if resource.path == "jobs":
                ids.append(jobs.create_jobs(tx, [values])[0]["id"])
                jobs.delete_jobs(tx, workflow_id, ids[-1:])
                continue
            if resource.path == "results":
                one = {"workflow_id": workflow_id, "name": "x", "command": "true"}
                values |= {"job_id": jobs.create_jobs(tx, [one])[0]["id"]}
                values |= {"compute_node_id": largest(tx)["compute_node"]}
            ids.append(crud.create(tx, resource, values)["id"])
            if len(ids) % 2:
                crud.delete(tx, resource, ids[-1])
            else:
                crud.delete_all(tx, resource, workflow_id)
    assert ids == sorted(set(ids))


def test_groups_take_their_ids_along(database: Database) -> None:
    """The same for access groups and memberships; the group of administrators keeps its id."""
    ids = []
    with database.write() as tx:
        groups.set_admins(tx, ["root"])
        for _ in range(2):
            group = groups.create_group(tx, "g", None)
            ids.append((group["id"], groups.add_member(tx, group["id"], "p", "member")["id"]))
            groups.delete_group(tx, group["id"])
    assert ids[0][0] > groups.ADMINS_ID
    assert ids[1][0] > ids[0][0]
    assert ids[1][1] > ids[0][1]


def test_several_servers_count_together(database: Database) -> None:
    """Two programs on one database, each of which deletes its records, never use the same id."""
    other = open_database(database.source)
    given: list[int] = []
    try:
        with database.write() as tx:
            workflow_id = fill(tx)
        for each in (database, other, database, other):
            with each.write() as tx:
                values = {"workflow_id": workflow_id, "name": "x", "command": "true"}
                given += [job["id"] for job in jobs.create_jobs(tx, [values, values])]
                jobs.delete_jobs(tx, workflow_id, given[-2:])
    finally:
        other.close()
    assert given == sorted(set(given))


def test_ids_outlive_the_server(sqlite: Database, tmp_path: Path) -> None:
    """A database that is opened again continues with the next id."""
    with sqlite.write() as tx:
        workflow_id = fill(tx)
        last = largest(tx)["job"]
        jobs.delete_jobs(tx, workflow_id, [last])
    sqlite.close()
    again = open_database(str(tmp_path / "torc.db"))
    try:
        with again.write() as tx:
            made = jobs.create_jobs(tx, [{"workflow_id": workflow_id, "name": "x", "command": "true"}])
    finally:
        again.close()
    assert made[0]["id"] == last + 1


def test_ids_of_a_change_that_is_taken_back(database: Database) -> None:
    """SQLite uses the ids of a change that is rolled back again; a sequence of PostgreSQL goes on."""

    def fail() -> int:
        with database.write() as tx:
            assert tx.new_ids(t.JOB, 2) == 1
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        fail()
    first = 1 if database.is_local else 3
    with database.write() as tx:
        assert tx.new_ids(t.JOB, 3) == first
        assert tx.new_ids(t.JOB, 1) == first + 3


def test_blocks_of_ids_of_changes_at_the_same_time(fresh_postgres: Callable[[], Database]) -> None:
    """Changes of different workflows take ids at the same time: each gets consecutive ids of its own, none waits."""
    database = fresh_postgres()
    with database.write(7) as one, database.write(8) as two, database.write(NEW_WORKFLOW) as three:
        blocks = [(tx.new_ids(t.JOB, size), size) for size in (3, 1, 50) for tx in (one, two, three)]
    given = [first + n for first, size in blocks for n in range(size)]
    assert sorted(given) == [*range(1, 163)]

    def take(number: int) -> list[int]:
        with database.write(100 + number % 4) as tx:
            first = tx.new_ids(t.RESULT, 1 + number % 5)
            return [first + n for n in range(1 + number % 5)]

    with ThreadPoolExecutor(8) as pool:
        taken = [id_ for ids in pool.map(take, range(200)) for id_ in ids]
    assert len(taken) == len(set(taken)) == 600


def test_sequences_go_on_after_the_counters(postgres: PostgresServer) -> None:
    """The migration to sequences begins each after the largest id that was counted."""
    config = Config()
    config.set_main_option("script_location", str(upgrade.MIGRATIONS))
    with postgres.database() as url:
        old = cast("PostgresDatabase", open_database(url))
        with old._writing_connection() as writer:
            with writer.begin():
                writer.exec_driver_sql("DROP SCHEMA public CASCADE")
                writer.exec_driver_sql("CREATE SCHEMA public")
            with postgres_schema_transaction(writer, migrating=True):
                config.attributes["connection"] = writer
                command.upgrade(config, "0017")
                writer.exec_driver_sql("UPDATE id_counter SET last_id = 41 WHERE table_name = 'job'")
        old.close()
        again = open_database(url)
        with again.write() as tx:
            assert tx.new_ids(t.JOB, 2) == 42
            assert tx.new_ids(t.FILE, 1) == 1
            assert tx.connection.execute(sa.select(sa.func.count()).select_from(ID_COUNTER)).scalar() == 0
        again.close()


def test_sequences_have_sixty_four_bits(fresh_postgres: Callable[[], Database]) -> None:
    """No sequence ends at the largest number of 32 bits."""
    with fresh_postgres().read() as tx:
        small = "SELECT sequencename FROM pg_sequences WHERE max_value < 9223372036854775807"
        assert tx.connection.exec_driver_sql(small).all() == []


def test_an_older_database_goes_on_after_all_that_it_remembers(tmp_path: Path) -> None:
    """A migration counts from the largest id in rows, sequences and events."""
    path = tmp_path / "old.db"
    engine = sa.create_engine(f"sqlite:///{path}")
    config = Config()
    config.set_main_option("script_location", str(upgrade.MIGRATIONS))
    with engine.connect() as connection, schema_transaction(connection, migrating=True):
        config.attributes["connection"] = connection
        command.upgrade(config, "0010")
    engine.dispose()
    with closing(sqlite3.connect(path)) as old, old:
        _old_rows(old)
    database = open_database(str(path))
    try:
        with database.read() as tx:
            found = counters(tx)
    finally:
        database.close()
    assert found == {**dict.fromkeys((table.name for table in COUNTED), 0)} | {
        "workflow": 9,
        "job": 7,
        "resource_requirements": 8,
        "file": 3,
        "compute_node": 0,
    }


def _old_rows(old: sqlite3.Connection) -> None:
    """Insert rows of an older version, and delete some of them."""
    for workflow_id in (5, 9):
        row: dict[str, Any] = {
            "id": workflow_id,
            "name": "w",
            "user": "u",
            "compute_node_expiration_buffer_seconds": 1,
            "compute_node_wait_for_new_jobs_seconds": 1,
            "compute_node_ignore_workflow_completion": 0,
            "compute_node_wait_for_healthy_database_minutes": 1,
            "compute_node_min_time_for_new_jobs_seconds": 1,
            "use_pending_failed": 0,
        }
        _insert(old, "workflow", row)
    old.execute("DELETE FROM workflow WHERE id = 9")
    _insert(old, "file", {"id": 3, "workflow_id": 5, "name": "f", "path": "p"})
    values = {"id": 8, "workflow_id": 5, "name": "r", "num_cpus": 1, "num_gpus": 0, "num_nodes": 1, "memory": "1m"}
    _insert(old, "resource_requirements", values | {"runtime": "PT1M", "memory_bytes": 1, "runtime_s": 1})
    for data in ('{"event_type": "job_started", "job_id": 7}', '{"job_id": 9223372036854775807}', '{"job_id": "x"}'):
        _insert(old, "event", {"workflow_id": 5, "timestamp": 1, "data": data})


def _insert(old: sqlite3.Connection, table: str, row: dict[str, Any]) -> None:
    places = ", ".join("?" * len(row))
    old.execute(f"INSERT INTO {table} ({', '.join(row)}) VALUES ({places})", [*row.values()])
