"""PostgreSQL only: lost connections, values that it refuses, ids, several servers."""

import json
import subprocess
import sys
from collections.abc import Iterator
from typing import Any, cast

import psycopg
import pytest
from postgres_server import OWNER, PostgresServer

from torc_framework.models.plan import Plan, PlannedJob
from torc_framework.models.records import FileRecord, WorkflowRecord
from torc_framework.store.database.base import Database
from torc_framework.store.database.opening import open_database
from torc_framework.store.database.postgres import PostgresDatabase, schema_transaction
from torc_framework.store.errors import DatabaseError, RuleError
from torc_framework.store.exchange import claims
from torc_framework.store.migrations import upgrade
from torc_framework.store.record_kinds.files import FILES, USER_DATA
from torc_framework.store.record_kinds.results import EVENTS
from torc_framework.store.record_kinds.workflows import WORKFLOWS
from torc_framework.store.records import crud
from torc_framework.store.records.events import TransactionEvents
from torc_framework.store.records.kind import PageRequest, RecordKind
from torc_framework.store.tables import core as t
from torc_framework.store.workflows.deletion import begin_deletion, finish_deletions
from torc_framework.store.workflows.plans import create_plan, new_workflow

COLUMNS = (
    "SELECT table_name, column_name, data_type, is_nullable, column_default, collation_name "
    "FROM information_schema.columns WHERE table_schema = 'public' AND table_name <> 'alembic_version'"
)
INDEXES = "SELECT indexdef FROM pg_indexes WHERE schemaname = 'public' AND tablename <> 'alembic_version'"
CONSTRAINTS = (
    "SELECT conrelid::regclass::text, conname, pg_get_constraintdef(oid) FROM pg_constraint "
    "WHERE connamespace = 'public'::regnamespace AND conrelid <> 'alembic_version'::regclass"
)


@pytest.fixture
def url(postgres: PostgresServer) -> Iterator[str]:
    """A new database of a locale whose order is not that of code points."""
    (version,) = postgres.execute("SHOW server_version_num")[0]
    sorted_so = "TEMPLATE template0 LOCALE_PROVIDER icu ICU_LOCALE 'en' LOCALE 'C'" if int(version) >= 150_000 else ""
    with postgres.database(sorted_so) as made:
        yield made


@pytest.fixture
def own(url: str) -> Iterator[Database]:
    """An open database for one test."""
    opened = open_database(url)
    yield opened
    opened.close()


def test_requirements_of_ready_jobs_are_found_without_reading_the_jobs(own: Database) -> None:
    """Also before PostgreSQL has statistics of the table, which is so right after a workflow was stored."""
    jobs = 2000
    plan = Plan(WorkflowRecord(name="w", user="u"), [PlannedJob(f"j{n}", "true") for n in range(jobs)])
    with own.write() as tx:
        workflow_id = create_plan(tx, plan, initialized=True).id
    with own.read() as tx:
        text, values = claims._READY_REQUIREMENTS.bind(tx.connection.dialect, (workflow_id,))
        query = f"EXPLAIN (ANALYZE, TIMING OFF, FORMAT JSON) {text}"
        (explained,) = json.loads(tx.connection.exec_driver_sql(query, tuple(values)).scalar_one())
    read = [step["Actual Rows"] for step in steps_of(explained["Plan"]) if step.get("Relation Name") == "job"]
    assert read
    assert max(read) <= 1


def steps_of(step: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """Yield a step of a query plan and all steps below it."""
    yield step
    for part in step.get("Plans", ()):
        yield from steps_of(part)


def workflow(database: Database) -> int:
    """Create an empty workflow."""
    with database.write() as tx:
        return int(new_workflow(tx, {"name": "w", "user": "u"})["id"])


def end_connections(postgres: PostgresServer, url: str) -> None:
    """End every connection to a database, as an administrator can."""
    name = url.partition("?")[0].rpartition("/")[2]
    postgres.execute(f"SELECT pg_terminate_backend(pid, 5000) FROM pg_stat_activity WHERE datname = '{name}'")


def test_migrations_make_the_tables(url: str) -> None:
    """All migrations, one after another, create the tables as they are declared."""
    new = open_database(url)
    expected = _tables(new)
    with new._writing_connection() as writer:
        with writer.begin():
            writer.exec_driver_sql("DROP SCHEMA public CASCADE")
            writer.exec_driver_sql("CREATE SCHEMA public")
        upgrade.migrate(writer, "base", "new", schema_transaction)
    assert _tables(new) == expected
    new.close()


def _tables(database: Database) -> list[Any]:
    with database.read() as tx:
        return [sorted(map(str, tx.connection.exec_driver_sql(query))) for query in (COLUMNS, INDEXES, CONSTRAINTS)]


@pytest.mark.parametrize(
    ("statements", "words"),
    [
        (["CREATE TABLE recipes (id int)"], "belongs to another program"),
        (["CREATE TABLE alembic_version (version_num text)", "INSERT INTO alembic_version VALUES ('9999')"], "9999"),
        (["REVOKE CREATE ON SCHEMA public FROM PUBLIC", "DROP SCHEMA public"], "cannot use database"),
    ],
)
def test_a_database_that_is_not_ours_is_refused(
    postgres: PostgresServer, url: str, statements: list[str], words: str
) -> None:
    """A database of another program, of a later version or without a schema for tables is refused."""
    name = url.partition("?")[0].rpartition("/")[2]
    for statement in statements:
        postgres.execute(statement, name)
    with pytest.raises(DatabaseError, match=words):
        open_database(url)


def test_a_database_of_bytes_is_refused(postgres: PostgresServer) -> None:
    """A database without an encoding is refused, because it would return texts as bytes."""
    bytes_ = "TEMPLATE template0 ENCODING 'SQL_ASCII' LOCALE 'C'"
    with postgres.database(bytes_) as url, pytest.raises(DatabaseError, match="its encoding is SQL_ASCII"):
        open_database(url)


@pytest.mark.parametrize(
    ("url", "words"),
    [
        ("postgresql://u:sesame@127.0.0.1:1/x", "127.0.0.1"),
        ("postgresql+psycopg://u:sesame@127.0.0.1:1/x", "postgresql://u@127.0.0.1:1/x"),
        ("postgresql://u@127.0.0.1:1/x?password=sesame", "127.0.0.1"),
        ("postgresql://u:a@sesame@host/x", "%40"),
        ("postgresql://u:a/sesame@host/x", "%2F"),
        ("postgresql://u:sesame@[::1/x", "IPv6"),
        ("postgresql://u:%sesame@h/x", "percent-encoded"),
        ("postgresql:///x?passwd=sesame", "invalid URI query parameter"),
        ("postgresql:x", "expected postgresql://user@host:port/name"),
    ],
)
def test_a_wrong_url_is_told_without_its_password(url: str, words: str) -> None:
    """The message is one line with the error and without the password."""
    with pytest.raises(DatabaseError, match="cannot") as caught:
        open_database(url)
    message = str(caught.value)
    assert words in message
    assert "sesame" not in message
    assert "\n" not in message


def test_a_missing_driver_is_told() -> None:
    """The message has the command that installs it."""
    code = (
        "import sys; sys.modules['psycopg'] = None; from torc_framework.store.database.probe import check_database; "
        "check_database('postgresql://u:sesame@h/x')"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    last = done.stderr.strip().splitlines()[-1]
    assert "pip install '.[postgres]' in a clone" in last
    assert "sesame" not in last


def test_an_old_client_library_is_told(url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """The driver without its binary package uses the system's libpq; here its version is a fake."""
    monkeypatch.setattr(psycopg.capabilities, "_cache", {})
    monkeypatch.setattr(psycopg.pq, "version", lambda: 130_014)
    with pytest.raises(DatabaseError, match=r"is 13\.14; the feature requires libpq version 14\.0"):
        open_database(url)


# --- values -----------------------------------------------------------------------------------------


def test_what_cannot_be_stored_is_refused(own: Database) -> None:
    """In a single insert, in bulk, in JSON and in a query; no row is left, and the next change works."""
    workflow_id = workflow(own)
    mine = {"workflow_id": workflow_id}
    sent: list[tuple[RecordKind, dict[str, Any]]] = [
        (FILES, {**mine, "name": "a\0b", "path": "p"}),
        (USER_DATA, {**mine, "name": "x", "data": {"deep": ["a\0b"]}}),
        (EVENTS, {**mine, "data": {"category": "\0"}}),
        (WORKFLOWS, {"name": "w", "user": "u", "compute_node_wait_for_new_jobs_seconds": 2**63}),
    ]
    for resource, values in sent:
        with pytest.raises(RuleError, match=r"NUL|too large"), own.write() as tx:
            crud.create(tx, resource, values)
    for count in (1, 200):
        files = [FileRecord(workflow_id=0, name=f"{n}\0", path="p") for n in range(count)]
        with pytest.raises(RuleError, match="NUL"), own.write_bulk() as tx:
            create_plan(tx, Plan(workflow=WorkflowRecord(name="w", user="u"), jobs=[], files=files))
    with pytest.raises(RuleError, match="NUL"), own.read() as tx:
        crud.find(tx, FILES, [t.FILE.c.name == "\0"], PageRequest())
    with own.read() as tx:
        assert [crud.find(tx, kind, [], PageRequest())[1] for kind, _ in sent] == [0, 0, 0, 1]
    with own.write() as tx:
        text = {"looks": "like \\u0000"}
        assert crud.create(tx, USER_DATA, {**mine, "name": "x", "data": text})["data"] == text


def test_events_can_be_looked_into_whatever_they_tell(database: Database) -> None:
    """A NUL in a reason does not make later searches by category fail."""
    workflow_id = workflow(database)
    with database.write() as tx:
        events = TransactionEvents(workflow_id)
        events.add("job_failed", reason="a\0b")
        events.write(tx)
        found, _ = crud.find_in_workflow(tx, EVENTS, workflow_id, {"category": "job_failed"}, PageRequest())
    assert [event["data"]["reason"] for event in found] == ["a\ufffdb"]


def test_a_reason_with_a_nul_costs_no_result(bench: Any) -> None:
    """A result whose reason has a NUL is stored: otherwise the runner would send the report again and again."""
    bench.plan(1)
    bench.start(0)
    bench.end(0, "failed", 1, reason="Killed\0?", observation={"quoted": "\0"})
    (result,) = bench.results()
    assert (result["reason"], result["observation"]) == ("Killed\ufffd?", {"quoted": "\0"})
    assert bench.events("job_failed")[0]["reason"] == "Killed\ufffd?"


def test_lists_are_sorted_alike(own: Database, sqlite: Database) -> None:
    """Both databases sort by code points, nulls first; filters on a part of a text ignore case."""
    texts = ["b", "A", "ä", "a", "Z", "_", None, "", "é", "1"]
    answers = []
    for database in (own, sqlite):
        with database.write() as tx:
            for text in texts:
                new_workflow(tx, {"name": "w", "user": "u", "description": text})
            pages = [
                crud.find_in_workflow(
                    tx, WORKFLOWS, None, filters, PageRequest(sort_by="description", reverse=reverse)
                )[0]
                for filters in ({}, {"description": "A"})
                for reverse in (False, True)
            ]
        answers.append([[row.get("description") for row in page] for page in pages])
    assert answers[0] == answers[1]
    assert answers[0][0] == [None, "", "1", "A", "Z", "_", "a", "b", "ä", "é"]
    assert answers[0][2] == ["A", "a"]


# --- ids --------------------------------------------------------------------------------------------


def test_ids_given_in_bulk_and_one_by_one_do_not_meet(database: Database) -> None:
    """Rows of a plan and single rows get different ids, also after deletions."""
    workflow_id = workflow(database)
    files = [FileRecord(workflow_id=0, name=f"f{n}", path="p") for n in range(30)]
    seen: list[int] = []
    for round_ in range(3):
        with database.write_bulk() as tx:
            create_plan(tx, Plan(workflow=WorkflowRecord(name="w", user="u"), jobs=[], files=files))
        with database.write() as tx:
            made = crud.create(tx, FILES, {"workflow_id": workflow_id, "name": f"x{round_}", "path": "p"})
        seen.append(made["id"])
    assert seen == [31, 62, 93]
    with database.write() as tx:
        crud.delete_all(tx, FILES, workflow_id)
        crud.create(tx, FILES, {"workflow_id": workflow_id, "name": "y", "path": "p"})


def test_a_workflows_id_is_never_used_twice(database: Database) -> None:
    """Also the id of the last workflow is not used again."""
    first = workflow(database)
    with database.write() as tx:
        begin_deletion(tx, first, force=True)
    finish_deletions(database)
    assert workflow(database) > first


# --- connections ------------------------------------------------------------------------------------


def test_a_lost_connection_is_replaced(postgres: PostgresServer, url: str, own: Database) -> None:
    """A connection lost between changes causes no error, neither for writers nor for readers."""
    workflow(own)
    with own.read() as one, own.read() as two:
        assert one.connection is not two.connection
    for _ in range(2):
        end_connections(postgres, url)
        with own.read() as tx:
            assert crud.find(tx, WORKFLOWS, [], PageRequest())[1] >= 1
        end_connections(postgres, url)
        workflow(own)
    end_connections(postgres, url)
    with own.write_if_free() as maybe:
        assert maybe is None, "connecting again takes time"


def test_several_lost_connections_are_replaced(postgres: PostgresServer, url: str, own: Database) -> None:
    """All connections for changes are lost at once, as in a restart of PostgreSQL; no change notices it."""
    with own.write(1), own.write(2), own.write(3):
        pass
    end_connections(postgres, url)
    for _ in range(4):
        workflow(own)
    with own.write(1), own.write(2), own.write(3):
        pass


def test_a_connection_lost_in_a_change_is_told(postgres: PostgresServer, url: str, own: Database) -> None:
    """The change is rolled back with an error, and the next one works."""

    def broken() -> None:
        with own.write() as tx:
            new_workflow(tx, {"name": "w", "user": "u"})
            end_connections(postgres, url)
            new_workflow(tx, {"name": "w", "user": "u"})

    with pytest.raises(DatabaseError, match=f"cannot use database postgresql://{OWNER}@"):
        broken()
    with own.read() as tx:
        assert crud.find(tx, WORKFLOWS, [], PageRequest())[1] == 0
    workflow(own)


def test_a_server_that_is_gone_is_told(postgres: PostgresServer, url: str, own: Database) -> None:
    """Reading and writing raise an error at once; when the server is back, they work again."""
    postgres.stop()
    try:
        with pytest.raises(DatabaseError, match="cannot use database"), own.read():
            pass
        with pytest.raises(DatabaseError, match="cannot use database"), own.write():
            pass
        assert not own.others_committed()
        with own.write_if_free() as maybe:
            assert maybe is None
        with pytest.raises(DatabaseError, match="cannot open database"):
            open_database(url)
    finally:
        postgres.start()
    workflow(own)
    with own.read() as tx:
        assert crud.find(tx, WORKFLOWS, [], PageRequest())[1] == 1


def test_settings_are_durable(own: Database) -> None:
    """A commit is on disk before it returns; a server that stops in a change loses the change."""
    with own.write() as tx:
        setting = {
            name: tx.connection.exec_driver_sql(f"SHOW {name}").scalar()
            for name in ("synchronous_commit", "transaction_isolation", "idle_in_transaction_session_timeout")
        }
    assert setting == {
        "synchronous_commit": "on",
        "transaction_isolation": "read committed",
        "idle_in_transaction_session_timeout": "1min",
    }
    assert cast("PostgresDatabase", own).is_local is False
