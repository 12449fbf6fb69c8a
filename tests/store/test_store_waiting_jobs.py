"""Jobs in classes and the pages of jobs that wait: the same as what is read from all jobs and all dependencies."""

import random
from collections import Counter
from collections.abc import Iterator
from typing import Any
from unittest.mock import patch

import pytest
import sqlalchemy as sa

from torc_framework.graph.waiting_graph import NOTHING, WaitingGraph
from torc_framework.models.records import JobRecord
from torc_framework.models.statuses import JobStatus
from torc_framework.models.waiting_jobs import GroupMembers, JobClass, WaitingJobs
from torc_framework.store.record_kinds.workflow_queries import dependency_graph
from torc_framework.store.runs import waiting_jobs as module
from torc_framework.store.tables import core as t

JOBS = 40
WAITING = ("blocked", "canceled")


@pytest.fixture(params=[1, 2, 3])
def filled(bench: Any, request: pytest.FixtureRequest) -> Any:
    """A workflow with random dependencies, groups and statuses beside another one, whose ids surround its own."""
    chance = random.Random(request.param)
    bench.plan(3, [(1, 0), (2, 1)])
    pairs = {(job, chance.randrange(job)) for job in range(1, JOBS) for _ in range(chance.randrange(3))}
    barriers = [(sorted(chance.sample(range(20), 5)), sorted(chance.sample(range(20, JOBS), 6))) for _ in range(3)]
    first, last = bench.plan(JOBS, sorted(pairs), barriers), bench.first_job
    bench.plan(2, [(1, 0)])
    bench.workflow_id, bench.first_job, bench.count = first, last, JOBS
    values: dict[str, list[Any]] = {
        "status": [int(status) for status in JobStatus],
        "attempt_id": [1, 2],
        "is_interrupted": [False],
        "resource_requirements_id": [None, 8, 9],
        "scheduler_id": [None, 7],
        "executor": [None, "ssh"],
        "container": [None, "", "image"],
        "not_before": [None, "2001-01-01T00:00:00Z", "9999-01-01T00:00:00Z"],
        "waiting_reason": [None, "queued"],
    }
    with bench.database.write() as tx:
        for job in range(JOBS):
            change = {name: chance.choice(choices) for name, choices in values.items()}
            change["is_interrupted"] = change["status"] == JobStatus.TERMINATED and chance.random() < 0.5
            tx.connection.execute(sa.update(t.JOB).where(t.JOB.c.id == bench.job_id(job)).values(change))
    return bench


def class_of(row: Any) -> JobClass:
    return JobClass(
        row.status,
        row.is_interrupted,
        row.resource_requirements_id,
        row.scheduler_id,
        row.executor,
        bool(row.container),
        row.not_before is not None and row.not_before > "2026",
        row.waiting_reason,
        row.attempt_id,
        row.active_compute_node_id,
    )


def rows_of(bench: Any) -> list[Any]:
    with bench.database.read() as tx:
        return list(
            tx.connection.execute(sa.select(t.JOB).where(t.JOB.c.workflow_id == bench.workflow_id).order_by(t.JOB.c.id))
        )


def pages_of(bench: Any, *, only_canceled: bool = False) -> Iterator[WaitingJobs]:
    after, has_more = 0, True
    with bench.database.read() as tx:
        while has_more:
            page = module.waiting_jobs(tx, bench.workflow_id, after, only_canceled=only_canceled)
            has_more = page.has_more
            after = page.jobs[-1] if page.jobs else 0
            yield page


def members_of(bench: Any) -> Iterator[GroupMembers]:
    after, has_more = (0, 0), True
    with bench.database.read() as tx:
        while has_more:
            page = module.group_members(tx, bench.workflow_id, *after)
            has_more = page.has_more
            after = (page.members[-2], page.members[-1]) if page.members else after
            yield page


@pytest.mark.parametrize("size", [1, 3, 1000])
def test_classes(filled: Any, monkeypatch: pytest.MonkeyPatch, size: int) -> None:
    """Each job that neither waits nor has completed is in one class, in slices of any size."""
    monkeypatch.setattr(module, "SLICE_JOBS", size)
    with filled.database.read() as tx:
        found = module.job_classes(tx, filled.workflow_id)
    rows = [row for row in rows_of(filled) if row.status not in (*WAITING, "completed")]
    assert {each.job_class: each.count for each in found} == Counter(map(class_of, rows))
    for each in found:
        first = [row for row in rows if class_of(row) == each.job_class][: module.NAMED_JOBS]
        assert each.first_ids == [row.id for row in first]
        assert each.first_names == [row.name for row in first]
    assert [each.first_ids[0] for each in found] == sorted(each.first_ids[0] for each in found)


def test_more_classes_need_no_more_queries(bench: Any) -> None:
    """There may be as many classes as jobs, as with requirements of their own."""
    bench.plan(JOBS)
    counts: list[tuple[int, int]] = []
    for classes in (1, JOBS):
        with bench.database.write() as tx:
            for job in range(JOBS):
                change = {"status": int(JobStatus.READY), "executor": f"e{job % classes}"}
                tx.connection.execute(sa.update(t.JOB).where(t.JOB.c.id == bench.job_id(job)).values(change))
        with bench.database.read() as tx:
            statements: list[str] = []
            sa.event.listen(
                tx.connection, "before_cursor_execute", lambda *given, into=statements: into.append(given[2])
            )
            with patch.object(type(tx), "rows", autospec=True, side_effect=type(tx).rows) as rows:
                found = module.job_classes(tx, bench.workflow_id)
            counts.append((len(found), rows.call_count + len(statements)))
    assert [each[0] for each in counts] == [1, JOBS]
    assert counts[0][1] == counts[1][1]


@pytest.mark.parametrize("size", [1, 3, 1000])
@pytest.mark.parametrize("only_canceled", [False, True])
def test_pages(filled: Any, monkeypatch: pytest.MonkeyPatch, size: int, only_canceled: bool) -> None:
    """The graph of pages of any size finds the roots that following every dependency finds."""
    monkeypatch.setattr(module, "PAGE_JOBS", size)
    rows = {row.id: row for row in rows_of(filled)}
    with filled.database.read() as tx:
        whole = dependency_graph(tx, filled.workflow_id)
    before: dict[int, set[int]] = {}
    for job, other in whole["dependencies"]:
        before.setdefault(job, set()).add(other)
    for group in whole["groups"]:
        for job in group["downstream"]:
            before.setdefault(job, set()).update(group["upstream"])
    shown = ("canceled",) if only_canceled else WAITING
    classes: dict[int, JobClass] = {}

    def value(job: int, job_class: JobClass) -> int:
        classes[job] = job_class
        return job

    graph = WaitingGraph(pages_of(filled, only_canceled=only_canceled), members_of(filled), value)
    assert graph.jobs.tolist() == [id_ for id_, row in rows.items() if row.status in shown]
    assert [bool(flag) for flag in graph.is_canceled] == [rows[id_].status == "canceled" for id_ in graph.jobs]
    assert all(class_of(rows[job]) == job_class for job, job_class in classes.items())

    def root(job: int) -> int:
        found = [
            other if rows[other].status not in WAITING else root(other) if rows[other].status in shown else NOTHING
            for other in before.get(job, ())
            if rows[other].status != "completed"
        ]
        return min(found, default=NOTHING)

    assert graph.least_values().tolist() == [root(job) for job in graph.jobs]
    for job in graph.jobs:
        unfinished = {other for other in before.get(job, ()) if rows[other].status != "completed"}
        assert set(graph.dependencies(job)) == unfinished


def test_a_record_has_what_a_class_has() -> None:
    """A new field of jobs that decides whether they run belongs to the class, too."""
    same = {"status", "is_interrupted", "resource_requirements_id", "scheduler_id", "executor", "waiting_reason"}
    assert same | {"attempt_id"} <= {field.name for field in JobRecord.__attrs_attrs__} & {*JobClass.__struct_fields__}
