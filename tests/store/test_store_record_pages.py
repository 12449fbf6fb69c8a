"""Pages of lists are limited in number and in bytes, and together have every record once."""

from typing import Any

import pytest

from torc_framework.models.plan import Barrier, Plan, PlannedJob
from torc_framework.models.records import WorkflowRecord
from torc_framework.store.database.base import Database
from torc_framework.store.record_kinds.jobs import JOBS
from torc_framework.store.records import crud
from torc_framework.store.records.crud import find
from torc_framework.store.records.kind import PageRequest
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
