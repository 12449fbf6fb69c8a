"""The statements: they use indexes, and their values are bound in the right order."""

from typing import Any

import pytest
import sqlalchemy as sa
from waiting import eventually

from torc_framework.store.database.base import Database
from torc_framework.store.database.opening import open_database
from torc_framework.store.database.sql import IDS, Insertion, Statement, Tx, ids_param, insertion, padded, param
from torc_framework.store.exchange import claims, exchange, reports
from torc_framework.store.job_state import dependency_counters, propagation, transitions, triggers
from torc_framework.store.tables import core as t

HOT = {
    f"{module.__name__.rpartition('.')[2]}.{name}": statement
    for module in (dependency_counters, claims, propagation, exchange, reports, transitions, triggers)
    for name, statement in vars(module).items()
    if type(statement) is Statement
}


def text_of(tx: Tx, statement: Statement) -> tuple[str, int]:
    """Return a statement's text and the number of its values."""
    ids = 4 if _takes_ids(statement) else 0
    text, values = statement.bind(tx.connection.dialect, [1] * len(statement._order), [1] * ids)
    return text, len(values)


def _takes_ids(statement: Statement) -> bool:
    clause: Any = statement._clause  # SQLAlchemy's types do not say that executable clauses can be visited
    return IDS in {part.key for part in sa.sql.visitors.iterate(clause) if isinstance(part, sa.BindParameter)}


@pytest.mark.parametrize("name", HOT)
def test_no_hot_statement_reads_through_a_table(sqlite: Database, name: str) -> None:
    """Each finds its rows by an index, or by their ids."""
    with sqlite.read() as tx:
        text, count = text_of(tx, HOT[name])
        plan = [row[3] for row in tx.connection.exec_driver_sql(f"EXPLAIN QUERY PLAN {text}", (1,) * count)]
    steps = [
        step for step in plan if "CONSTANT ROW" not in step and step != "SCAN ready"
    ]  # what the query itself found
    assert not [step for step in steps if step.startswith("SCAN")]
    if "job.id IN" in text:
        assert any("SEARCH job USING INTEGER PRIMARY KEY" in step for step in steps)


def test_values_are_bound_by_name() -> None:
    """Values are given in the declared order, also if the text has another."""
    statement = Statement(
        sa.update(t.FILE)
        .where(t.FILE.c.name == param("name"), t.FILE.c.id.in_(ids_param()))
        .values(path=param("path")),
        "path",
        "name",
    )
    text, values = statement.bind(sa.create_engine("sqlite://").dialect, ("/p", "n"), (1, 2, 3, 4))
    assert text.index("path=") < text.index("name =") < text.index("id IN (?, ?, ?, ?)")
    assert list(values) == ["/p", "n", 1, 2, 3, 4]


@pytest.mark.parametrize("count", [0, 1, 2, 4, 5, 63, 64, 65, 1023, 1024, 1025, 3000])
def test_ids_come_in_few_lengths(count: int) -> None:
    """Every id is in a chunk; the last chunk is filled with its last id."""
    chunks = list(padded(list(range(count))))
    assert sorted({number for chunk in chunks for number in chunk}) == list(range(count))
    assert {len(chunk) for chunk in chunks} <= {1, 4, 16, 64, 256, 1024}


def test_inserts_keep_their_order(database: Any) -> None:
    """In blocks and after the last block, row after row."""
    statement = insertion(t.WORKFLOW_STATUS, "run_id", "id", "is_canceled", "is_archived", COMPLETION)
    assert isinstance(statement, Insertion)
    with database.write() as tx:
        tx.run_each(insertion(t.WORKFLOW, *WORKFLOW), [(n, "w", "u", 60, 90, 0, 20, 300, 0) for n in range(1, 124)])
        tx.insert(statement, [(n * 2, n, 0, 0, 0) for n in range(1, 124)])
        rows = tx.connection.execute(sa.select(t.WORKFLOW_STATUS.c.id, t.WORKFLOW_STATUS.c.run_id)).all()
        assert [tuple(row) for row in rows] == [(n, n * 2) for n in range(1, 124)]


COMPLETION = "has_detected_need_to_run_completion_script"
WORKFLOW = [
    "id",
    *[column.name for column in t.WORKFLOW.c if not column.nullable and column.name != "id"],
]


def test_a_transaction_that_raises_leaves_nothing(database: Any) -> None:
    """Its changes are rolled back, and the next transaction works."""

    def fail() -> None:
        with database.write() as tx:
            tx.connection.execute(sa.insert(t.WORKFLOW).values(name="w", user="u"))
            raise RuntimeError

    with pytest.raises(RuntimeError):
        fail()
    with database.write() as tx:
        assert tx.connection.execute(sa.select(sa.func.count()).select_from(t.WORKFLOW)).scalar() == 0


def test_an_ended_transaction_does_not_disturb_the_next(sqlite: Database) -> None:
    """The cursors of a connection share its statements: one that is freed late would reset what another thread runs."""
    insert = insertion(t.FILE, "workflow_id", "name", "path")
    with sqlite.write() as tx:
        workflow_id = tx.add(t.WORKFLOW, name="w", user="tester")
        tx.run_each(insert, [(workflow_id, "first", "/")])
    kept = [tx]
    del tx

    class FreesTheFirst:
        def __conform__(self, _protocol: object) -> str:
            kept.clear()
            return "second"

    rows: list[tuple[Any, ...]] = [(workflow_id, FreesTheFirst(), "/"), (workflow_id, "third", "/")]
    with sqlite.write() as other:
        other.run_each(insert, rows)
        assert sorted(other.connection.execute(sa.select(t.FILE.c.name)).scalars()) == ["first", "second", "third"]


def test_an_ended_transaction_runs_nothing(database: Any) -> None:
    query = Statement(sa.select(t.FILE.c.id))
    for begin in (database.read, database.write):
        with begin() as tx:
            assert tx.rows(query) == []
        with pytest.raises(Exception, match="closed"):
            tx.rows(query)


def test_a_reader_sees_one_state(database: Any) -> None:
    """Commits during a read are not seen."""
    with database.read() as reader:
        count = sa.select(sa.func.count()).select_from(t.WORKFLOW)
        assert reader.connection.execute(count).scalar() == 0
        with database.write() as tx:
            tx.connection.execute(sa.insert(t.WORKFLOW).values(name="w", user="u"))
        assert reader.connection.execute(count).scalar() == 0


def test_a_change_that_cannot_begin_at_once_is_left(database: Any) -> None:
    """While this process or another is writing, ``write_if_free`` yields None without waiting."""
    with database.write(), database.write_if_free() as tx:
        assert tx is None
    other = open_database(database.source)
    try:
        with other.write(), database.write_if_free() as tx:
            assert tx is None
        with database.write_if_free() as tx:
            assert tx is not None
    finally:
        other.close()


def test_commits_of_others_are_noticed_once(database: Any) -> None:
    """Commits of other connections are reported, own ones are not."""
    database.others_committed()
    with database.write() as tx:
        tx.connection.execute(sa.insert(t.WORKFLOW).values(name="w", user="u"))
        tx.workflows_to_wake.add(1)
    assert not database.others_committed()
    other = open_database(database.source)
    with other.write() as tx:
        tx.connection.execute(sa.insert(t.WORKFLOW).values(name="w", user="u"))
        tx.workflows_to_wake.add(1)
    other.close()
    eventually(database.others_committed)  # PostgreSQL tells in its own time
    assert not database.others_committed()
