"""Pages of lists are limited in number and in bytes, and together have every record once."""

from typing import Any

import pytest
import sqlalchemy as sa

from torc_framework.models.barriers import Barrier
from torc_framework.models.plan import Plan, PlannedJob
from torc_framework.models.records import WorkflowRecord
from torc_framework.store.database.base import Database
from torc_framework.store.errors import RuleError
from torc_framework.store.record_kinds.jobs import JOBS, delete_jobs
from torc_framework.store.records import crud
from torc_framework.store.records.crud import find
from torc_framework.store.records.kind import PageRequest
from torc_framework.store.tables import core as t
from torc_framework.store.workflows.plans import create_plan


@pytest.fixture
def jobs(database: Database) -> Database:
    """Forty jobs, of which the second half waits for the first."""
    plan = Plan(
        WorkflowRecord(name="w", user="u"),
        [PlannedJob(f"j{n % 7}-{n}", "x" * (n * 10)) for n in range(40)],
        barriers=[Barrier([*range(20)], [*range(20, 40)])],
    )
    with database.write() as tx:
        create_plan(tx, plan)
    return database


@pytest.mark.parametrize("relations", [False, True])
@pytest.mark.parametrize(("slice_records", "page_bytes"), [(256, 3000), (8, 3000), (1, 1), (3, 10**6)])
def test_pages_hold_all_records_once(
    jobs: Database, monkeypatch: pytest.MonkeyPatch, relations: bool, slice_records: int, page_bytes: int
) -> None:
    """Pages and slices of any size have all records in their order."""
    monkeypatch.setattr(crud, "SLICE_RECORDS", slice_records)
    monkeypatch.setattr(crud, "SLICE_BYTES", 1000)
    monkeypatch.setattr(crud, "PAGE_BYTES", page_bytes)
    with jobs.read() as tx:
        whole, total = find(tx, JOBS, [], PageRequest(limit=-1, sort_by="name", reverse=True), relations=relations)
        assert (len(whole), total) == (40, 40)
        found: list[dict[str, Any]] = []
        pages = 0
        while len(found) < total:
            page, total = find(tx, JOBS, [], PageRequest(len(found), 1000, "name", reverse=True), relations=relations)
            assert (bool(page), total) == (True, 40)
            found += page
            pages += 1
    assert found == whole
    assert ("depends_on_job_ids" in whole[0]) == (relations and int(whole[0]["name"].split("-")[1]) >= 20)
    assert (pages == 1) == (page_bytes == 10**6)


def test_relations_count_as_bytes_of_a_page(jobs: Database, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(crud, "SLICE_RECORDS", 1)
    monkeypatch.setattr(crud, "PAGE_BYTES", 3000)
    with jobs.read() as tx:
        sizes = [len(find(tx, JOBS, [], PageRequest(20, 1000), relations=wanted)[0]) for wanted in (False, True)]
    assert sizes[1] < sizes[0]


@pytest.mark.parametrize("reverse", [False, True])
@pytest.mark.parametrize(
    "sort_by", [None, "name", "status", "scheduler_id", "executor_options", "cancel_on_blocking_job_failure"]
)
@pytest.mark.parametrize("size", [1, 7, 100])
def test_pages_after_an_id_hold_all_records_once(jobs: Database, sort_by: str | None, reverse: bool, size: int) -> None:
    """In the order of any field, also of one that some records lack and others have in common."""
    with jobs.write() as tx:
        for column, value in (("scheduler_id", t.JOB.c.id % 3), ("status", t.JOB.c.id % 2)):
            tx.connection.execute(sa.update(t.JOB).where(t.JOB.c.id % 2 == 0).values({column: value}))
        tx.connection.execute(sa.update(t.JOB).where(t.JOB.c.id % 4 == 0).values(executor_options={"a": {"b": 1}}))
    with jobs.read() as tx:
        whole, _ = find(tx, JOBS, [], PageRequest(limit=-1, sort_by=sort_by, reverse=reverse))
        found, after, follows = list[dict[str, Any]](), None, True
        while follows:
            page, total = find(tx, JOBS, [], PageRequest(0, size, sort_by, reverse, after))
            found += page
            after = page[-1]["id"]
            follows = total > len(page)
            assert after == whole[len(found) - 1]["id"]
            if len(found) > len(page):
                assert total == len(page) + (len(found) < 40)
    assert found == whole


def test_a_page_after_a_deleted_record_is_refused_where_its_place_is_unknown(jobs: Database) -> None:
    """By id, its place is known."""
    with jobs.write() as tx:
        (first, second), _ = find(tx, JOBS, [], PageRequest(limit=2))
        delete_jobs(tx, first["workflow_id"], [first["id"]])
        assert find(tx, JOBS, [], PageRequest(limit=1, after_id=first["id"]))[0] == [second]
        with pytest.raises(RuleError, match="does not exist any more"):
            find(tx, JOBS, [], PageRequest(limit=1, sort_by="name", after_id=first["id"]))
