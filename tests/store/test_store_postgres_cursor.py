"""PostgreSQL only: statements that stay prepared, that are sent together, that fail, and that are interrupted."""

import itertools
import signal
from collections.abc import Callable, Iterator
from contextlib import suppress
from typing import Any

import psycopg
import pytest
import sqlalchemy as sa
from change_groups import write_group
from postgres_server import PostgresServer

from torc_framework.models.records import WorkflowRecord
from torc_framework.store.database import postgres_cursor
from torc_framework.store.database.base import NEW_WORKFLOW, Database
from torc_framework.store.database.opening import open_database
from torc_framework.store.database.postgres_cursor import PREPARED_AFTER, ConnectionStatements, PostgresCursor, numbered
from torc_framework.store.database.postgres_dialect import PostgresTx
from torc_framework.store.database.sql import Statement, Tx, ids_param, insertion, param
from torc_framework.store.errors import DatabaseError
from torc_framework.store.tables import core as t
from torc_framework.store.workflows.plans import create_workflow

NAMES = Statement(sa.select(t.FILE.c.name).where(t.FILE.c.workflow_id == param("workflow")), "workflow")
RENAME = Statement(
    sa.update(t.FILE).where(t.FILE.c.workflow_id == param("workflow")).values(name=param("name")), "name", "workflow"
)
NEW_FILE = insertion(t.FILE, "id", "workflow_id", "name", "path")
PATH = Statement(sa.select(t.FILE.c.path).where(t.FILE.c.id == param("file")), "file")
SLEEP = Statement(sa.select(sa.func.pg_sleep(param("seconds"))), "seconds")


@pytest.fixture
def own(postgres: PostgresServer) -> Iterator[Database]:
    """An open database for one test."""
    with postgres.database() as url:
        opened = open_database(url)
        yield opened
        opened.close()


@pytest.fixture
def workflow(own: Database) -> int:
    """A workflow with one file, ``first``."""
    with own.write(NEW_WORKFLOW) as tx:
        workflow_id = create_workflow(tx, WorkflowRecord(name="w", user="u"))
        add_file(tx, workflow_id, "first")
    return workflow_id


def add_file(tx: Tx, workflow_id: int, name: str) -> None:
    """Insert a file by a statement that waits for the next one."""
    tx.run(NEW_FILE, tx.new_ids(t.FILE, 1), workflow_id, name, "/")


def file_names(database: Database, workflow_id: int) -> list[str]:
    """Return the names of the files that are stored."""
    with database.read() as tx:
        return sorted(name for (name,) in tx.rows(NAMES, workflow_id))


def trips(tx: Tx, monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Return a list that gets the number of statements of each round trip from now on."""
    assert isinstance(tx, PostgresTx)
    seen: list[int] = []
    send = postgres_cursor.PostgresCursor._results

    def counted(self: Any, commands: Any) -> Any:
        seen.append(len(commands))
        return send(self, commands)

    monkeypatch.setattr(postgres_cursor.PostgresCursor, "_results", counted)
    return seen


def prepared(tx: Tx) -> set[str]:
    """Return the texts of the statements that are prepared on the connection."""
    return set(tx.connection.exec_driver_sql("SELECT statement FROM pg_prepared_statements").scalars())


def test_statements_stay_prepared_when_a_savepoint_is_undone(own: Database, workflow: int) -> None:
    """The driver forgets all statements at ``ROLLBACK TO SAVEPOINT``, which taking ids and refused changes run."""
    with own.write(workflow) as tx:
        for _ in range(PREPARED_AFTER + 1):
            tx.rows(NAMES, workflow)
        before = {text for text in prepared(tx) if "FROM file" in text}
        tx.new_ids(t.FILE, 1)
        tx.begin_savepoint(is_first=True)
        tx.undo_to_savepoint()
        for _ in range(PREPARED_AFTER + 1):
            tx.rows(NAMES, workflow)
        after = {text for text in prepared(tx) if "FROM file" in text}
        names = tx.connection.exec_driver_sql("SELECT name FROM pg_prepared_statements").scalars().all()
    assert (len(before), after) == (1, before)
    assert all(name.startswith("torc_") for name in names), "the driver prepares nothing that it would deallocate"


def test_a_statement_is_prepared_once_for_values_of_any_type(own: Database, workflow: int) -> None:
    """Large and small numbers, and no value, go to the same prepared statement."""
    with own.write(workflow) as tx:
        for value in (1, 2**20, 2**40, None, True) * PREPARED_AFTER:
            tx.rows(NAMES, value)
        assert len([text for text in prepared(tx) if "FROM file" in text]) == 1


def test_a_connection_prepares_a_limited_number_of_statements(
    own: Database, workflow: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Further ones, and those with many values, are run without; ids are looked up in lists of several lengths."""
    monkeypatch.setattr(postgres_cursor, "MOST_PREPARED", 2)
    by_ids = Statement(sa.select(t.FILE.c.name).where(t.FILE.c.id.in_(ids_param())))
    with own.write(workflow) as tx:
        for _ in range(2 * PREPARED_AFTER):
            assert tx.rows_for(by_ids, [*range(1000), 2**40]) == tx.rows(NAMES, workflow) == [("first",)]
            for length in (1, 2, 5, 20):
                assert tx.rows_for(by_ids, range(2**40, 2**40 + length)) == []
        assert 0 < len(prepared(tx)) <= 3, "those of one round trip are prepared together"


def test_statements_are_planned_anew(own: Database, monkeypatch: pytest.MonkeyPatch) -> None:
    """A plan that was made for a small table is not kept while the table grows, also without statistics."""
    monkeypatch.setattr(postgres_cursor, "REPLANNED_EACH_S", 0.0)
    create = "CREATE TABLE numbers AS SELECT n AS number FROM generate_series(1, 5) AS n"
    with own.write() as tx:
        for statement in (create, "CREATE INDEX ix_number ON numbers (number)"):
            tx.connection.exec_driver_sql(statement)
    numbers = Statement(sa.text("SELECT number FROM numbers WHERE number = :number").bindparams(number=0), "number")
    plans = []
    for count in (5, 5, 20_000):
        with own.write() as tx:
            more = "INSERT INTO numbers SELECT generate_series(6, %s)"
            tx.connection.exec_driver_sql(more, (count,))
        with own.write() as tx:
            for _ in range(3 * PREPARED_AFTER):
                tx.rows(numbers, 1)
            name = "SELECT name FROM pg_prepared_statements WHERE statement LIKE 'SELECT number FROM numbers%%'"
            (prepared_name,) = tx.connection.exec_driver_sql(name).scalars()
            tx.connection.exec_driver_sql("SET LOCAL plan_cache_mode = force_generic_plan")
            plans.append(str(tx.connection.exec_driver_sql(f"EXPLAIN EXECUTE {prepared_name}(1)").all()))
    assert ["Seq Scan" in plan for plan in plans] == [True, True, False]


def test_changes_and_queries_are_sent_with_the_next_query(
    own: Database, workflow: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A query sees the changes that were made before it, and not those after it."""
    with own.write(workflow) as tx:
        seen = trips(tx, monkeypatch)
        tx.run(RENAME, "second", workflow)
        early = tx.rows_later(NAMES, workflow)
        tx.run(RENAME, "third", workflow)
        assert seen == []
        assert tx.rows(NAMES, workflow) == [("third",)]
        assert (early(), seen) == ([("second",)], [4])
        tx.run(RENAME, "fourth", workflow)
        assert tx.connection.execute(sa.select(t.FILE.c.name)).scalars().all() == ["fourth"]
        tx.run(RENAME, "fifth", workflow)
    assert seen == [4, 1, 2], "the last change goes with the commit"
    assert file_names(own, workflow) == ["fifth"]


def test_a_change_that_waited_and_fails_is_told(own: Database, workflow: int) -> None:
    """At the commit at the latest; nothing of its transaction is stored."""

    def add_twice() -> None:
        with own.write(workflow) as tx:
            add_file(tx, workflow, "second")
            tx.run(NEW_FILE, 2**40, workflow, "third", "/")
            tx.run(NEW_FILE, 2**40, workflow, "fourth", "/")
            tx.run(RENAME, "fifth", workflow)

    with pytest.raises(psycopg.errors.UniqueViolation):
        add_twice()
    assert file_names(own, workflow) == ["first"]


def test_a_change_that_waited_fails_alone_in_a_group(own: Database, workflow: int) -> None:
    """The error belongs to the change that made it, not to the next one, whose statements are sent later."""

    def failing(tx: Tx) -> None:
        tx.run(NEW_FILE, 2**40, workflow, "a", "/")
        tx.run(NEW_FILE, 2**40, workflow, "b", "/")

    outcomes = write_group(
        own, [lambda tx: add_file(tx, workflow, "x"), failing, lambda tx: add_file(tx, workflow, "y")]
    )
    assert [outcome.error is None for outcome in outcomes] == [True, False, True]
    assert file_names(own, workflow) == ["first", "x", "y"]


def test_what_waits_is_forgotten_with_its_transaction(own: Database, workflow: int) -> None:
    """Neither the next transaction on the connection nor one after an undone savepoint runs it."""

    def fail() -> None:
        with own.write(workflow) as tx:
            tx.run(RENAME, "second", workflow)
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        fail()
    with own.write(workflow) as tx:
        tx.begin_savepoint(is_first=True)
        tx.run(RENAME, "third", workflow)
        tx.undo_to_savepoint()
        assert tx.rows(NAMES, workflow) == [("first",)]
        add_file(tx, workflow, "more")
    assert file_names(own, workflow) == ["first", "more"]


def test_many_statements_may_wait(own: Database, workflow: int) -> None:
    """More than are kept in memory, and more than the connection takes before its answers are read."""
    count = 3 * postgres_cursor._MOST_WAITING + 1
    with own.write(workflow) as tx:
        first = tx.new_ids(t.FILE, count)
        tx.run_each(NEW_FILE, [(first + n, workflow, f"n{n}", "/" * 2000) for n in range(count)])
        paths = [tx.rows_later(PATH, first + n) for n in range(400)]
        assert {row for later in paths for row in later()} == {("/" * 2000,)}
    assert len(file_names(own, workflow)) == count + 1


def test_ids_are_taken_however_many_statements_wait(
    own: Database, workflow: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also if some of the statements that take them are sent before the others."""
    monkeypatch.setattr(postgres_cursor, "_MOST_WAITING", 7)
    with own.write(workflow) as tx:
        last = tx.new_ids(t.FILE, 1)
        for waiting in range(7):
            for _ in range(waiting):
                tx.run(RENAME, "second", workflow)
            first, last = last + 1, last + 3
            assert tx.new_ids(t.FILE, 3) == first


def test_the_transaction_of_an_error_that_was_caught_is_not_committed_silently(own: Database, workflow: int) -> None:
    """PostgreSQL answers a commit with a rollback then."""

    def go_on_after_an_error() -> None:
        with own.write(workflow) as tx:
            tx.run(RENAME, "second", workflow)
            with suppress(psycopg.DataError):
                tx.rows(NAMES, "no number")

    with pytest.raises(DatabaseError, match="was rolled back"):
        go_on_after_an_error()
    assert file_names(own, workflow) == ["first"]


class TimerError(BaseException):
    """Is raised by a timer, as `KeyboardInterrupt` is by Ctrl-C."""


def interrupt(work: Callable[[], object], after_s: float) -> None:
    """Call a function that does not return, and interrupt it."""

    def raise_error(*_: object) -> None:
        raise TimerError

    before = signal.signal(signal.SIGALRM, raise_error)
    try:
        signal.setitimer(signal.ITIMER_REAL, after_s)
        work()
        pytest.fail("the function has returned")
    except TimerError:
        return
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


@pytest.mark.parametrize("waiting", [0, 3])
def test_an_interrupt_ends_a_statement(own: Database, workflow: int, waiting: int) -> None:
    """The transaction is rolled back, and the connection is used again; also with statements that waited."""
    with own.write(workflow) as tx:
        (before,) = tx.connection.exec_driver_sql("SELECT pg_backend_pid()").one()

    def sleep() -> None:
        with own.write(workflow) as tx:
            for _ in range(waiting):
                tx.run(RENAME, "second", workflow)
            tx.rows(SLEEP, 600)

    interrupt(sleep, 1.0)
    with own.write(workflow) as tx:
        assert tx.connection.exec_driver_sql("SELECT pg_backend_pid()").one() == (before,)
    assert file_names(own, workflow) == ["first"]


def test_interrupts_at_any_moment_leave_a_connection_that_works(postgres: PostgresServer) -> None:
    """Between any two steps of sending statements and reading their results."""
    with psycopg.connect(postgres.url("postgres")) as connection:
        statements = ConnectionStatements.new(connection)

        def run_transactions() -> None:
            for number in itertools.count():
                cursor = PostgresCursor(statements)
                cursor.execute("BEGIN")
                cursor.execute_later("SAVEPOINT one")
                later = cursor.rows_later("SELECT %s::bigint", (number,))
                cursor.execute("SELECT %s::bigint", (number + 1,))
                assert (later(), cursor.fetchall()) == ([(number,)], [(number + 1,)])
                cursor.execute("COMMIT")

        for number in range(200):
            interrupt(run_transactions, 0.001 + number / 100_000)
            connection.rollback()
            last = PostgresCursor(statements)
            last.execute("SELECT %s::bigint", (number,))
            assert last.fetchone() == (number,)
            connection.rollback()


def test_placeholders_get_numbers() -> None:
    """The driver's ``%s``; a doubled percent sign is one."""
    assert numbered("SELECT %s, 'a%%s' LIKE %s") == b"SELECT $1, 'a%s' LIKE $2"
