"""Failed jobs, lost work and compared results: the same as what is chosen from all jobs and all results."""

import random
from typing import Any

import pytest
import sqlalchemy as sa

from torc_framework.models.plan import PlannedJob
from torc_framework.models.records import ResourceRequirementsRecord
from torc_framework.models.statuses import FAILURES, UNSUCCESSFUL, JobStatus
from torc_framework.store.runs.job_endings import job_names
from torc_framework.store.tables import core as t
from torc_framework.store.workflows import compared_results as compared_module
from torc_framework.store.workflows import failed_jobs as failed_module

JOBS = 30
ENDS = (JobStatus.COMPLETED, *UNSUCCESSFUL)


@pytest.fixture(params=[1, 2])
def filled(bench: Any, request: pytest.FixtureRequest) -> Any:
    """Jobs of random statuses, with random results of up to two runs and two attempts each."""
    chance = random.Random(request.param)
    requests = [
        ResourceRequirementsRecord(workflow_id=0, name=f"r{n}", num_cpus=n, memory=f"{n}g", runtime=f"PT{n}M")
        for n in (1, 2)
    ]
    jobs = [PlannedJob(f"j{n}", "true", resource_requirements=chance.choice([None, 0, 1])) for n in range(JOBS)]
    bench.plan(jobs, resource_requirements=requests)
    with bench.database.write() as tx:
        for job in range(JOBS):
            status = chance.choice([*ENDS, JobStatus.READY])
            interrupted = status is JobStatus.TERMINATED and chance.random() < 0.5
            ids = []
            for run, attempt in [(1, 1), (1, 2), (2, 1)]:
                if chance.random() < 0.3:
                    continue
                values: dict[str, Any] = {
                    "job_id": bench.job_id(job),
                    "workflow_id": bench.workflow_id,
                    "run_id": run,
                    "attempt_id": attempt,
                    "compute_node_id": bench.nodes[0],
                    "return_code": chance.choice([0, 1]),
                    "exec_time_minutes": chance.choice([0.5, 1.0, 1.5, 3.0]),
                    "completion_time": "2026-01-01T00:00:00Z",
                    "status": int(chance.choice(ENDS)),
                    "peak_memory_bytes": chance.choice([None, 2**29, 2**30, 2**30 + 1, 2**32]),
                    "peak_cpu_percent": chance.choice([None, 50.0, 104.0, 105.1, 300.0]),
                    "exit_class": chance.choice([None, "interrupted", "oom"]),
                }
                ids.append(tx.add(t.RESULT, **values))
            change = {"status": int(status), "is_interrupted": interrupted}
            change["result_id"] = chance.choice([None, *ids])
            tx.connection.execute(sa.update(t.JOB).where(t.JOB.c.id == bench.job_id(job)).values(change))
    return bench


def all_rows(bench: Any) -> tuple[dict[int, Any], list[Any]]:
    """Return the jobs by id, and the results."""
    with bench.database.read() as tx:
        jobs = tx.connection.execute(sa.select(t.JOB).order_by(t.JOB.c.id)).all()
        return {row.id: row for row in jobs}, list(tx.connection.execute(sa.select(t.RESULT).order_by(t.RESULT.c.id)))


def is_failed(job: Any) -> bool:
    return job.status in {status.label for status in FAILURES} and not job.is_interrupted


@pytest.mark.parametrize("few", [0, JOBS])
@pytest.mark.parametrize("size", [1, 4, 1000])
def test_failed_jobs(filled: Any, monkeypatch: pytest.MonkeyPatch, size: int, few: int) -> None:
    """In pages of any size, with the attempts that did not complete; whether they count as few or as many."""
    monkeypatch.setattr(failed_module, "PAGE_JOBS", size)
    monkeypatch.setattr(failed_module, "FEW_FAILED", few)
    jobs, results = all_rows(filled)
    found: list[int] = []
    attempts: list[int] = []
    after, has_more = 0, True
    while has_more:
        with filled.database.read() as tx:
            page: Any = failed_module.failed_jobs(tx, filled.workflow_id, after)
        found += [job["id"] for job in page.jobs]
        attempts += [result["id"] for result in page.results]
        after, has_more = found[-1] if found else 0, page.has_more
    assert found == [id_ for id_, job in jobs.items() if is_failed(job)]
    assert sorted(attempts) == [each.id for each in results if each.job_id in found and each.status != "completed"]


def test_lost_work(filled: Any) -> None:
    """Of jobs that are not failed now; an interrupted attempt that ended with 0 has saved its work."""
    jobs, results = all_rows(filled)
    expected: dict[int | None, float] = {}
    for each in results:
        job = jobs[each.job_id]
        saved = each.exit_class == "interrupted" and each.return_code == 0
        if each.status != "completed" and not saved and not is_failed(job):
            key = job.resource_requirements_id
            expected[key] = expected.get(key, 0.0) + each.exec_time_minutes
    with filled.database.read() as tx:
        found = failed_module.lost_work(tx, filled.workflow_id)
    assert {each.resource_requirements_id: each.exec_time_minutes for each in found} == pytest.approx(expected)


@pytest.mark.parametrize("size", [1, 7, 1000])
@pytest.mark.parametrize("run_id", [None, 1])
@pytest.mark.parametrize("all_attempts", [False, True])
def test_compared_results(
    filled: Any, monkeypatch: pytest.MonkeyPatch, size: int, run_id: int | None, all_attempts: bool
) -> None:
    """All are counted; those of jobs that exceed nothing and did not fail are left out if only excess is wanted."""
    monkeypatch.setattr(compared_module, "SPAN_JOBS", size)
    jobs, results = all_rows(filled)
    by_id = {each.id: each for each in results}
    chosen = []
    for each in results:
        present = by_id.get(jobs[each.job_id].result_id)
        run = run_id if run_id is not None else present and present.run_id
        if each.run_id != run:
            continue
        of_run = [other for other in results if other.job_id == each.job_id and other.run_id == run]
        last: Any = present if run_id is None else max(of_run, key=lambda other: other.attempt_id)
        if all_attempts or (last is each and each.status == "completed"):
            chosen.append(each)
    with filled.database.read() as tx:
        wanted = {row.id: row for row in tx.connection.execute(sa.select(t.RESOURCE_REQUIREMENTS))}

    def is_shown(each: Any) -> bool:
        asked = wanted[jobs[each.job_id].resource_requirements_id]
        exceeds = asked.name != "default" and (
            (each.peak_memory_bytes or 0) > asked.memory_bytes
            or each.exec_time_minutes * 60 > asked.runtime_s
            or (each.peak_cpu_percent or 0) > asked.num_cpus * compared_module.LEAST_CPU_PERCENT
        )
        return exceeds or each.status in {status.label for status in FAILURES}

    shown_jobs = {each.job_id for each in chosen if is_shown(each)}
    for only_excess in (False, True):
        choice = compared_module.ResultChoice(run_id, all_attempts, only_excess)
        found: list[int] = []
        count, after, has_more = 0, 0, True
        while has_more:
            with filled.database.read() as tx:
                page: Any = compared_module.compared_results(tx, filled.workflow_id, after, choice)
            found += [result["id"] for result in page.results]
            count += page.count
            after, has_more = page.last_id, page.has_more
            assert {job["id"] for job in page.jobs} == {result["job_id"] for result in page.results}
        assert count == len(chosen)
        expected = [each.id for each in chosen if not only_excess or each.job_id in shown_jobs]
        assert sorted(found) == expected


def test_names_of_a_range(filled: Any) -> None:
    """Both ends of the range are part of it, and jobs of other workflows are not."""
    first = filled.first_job
    other = filled.plan(2)
    with filled.database.read() as tx:
        found = job_names(tx, other, first, 2**63 - 1)
        some = job_names(tx, other - 1, first + 1, first + 3)
    assert found.names == ["job0", "job1"]
    assert (some.ids, some.names) == ([first + 1, first + 2, first + 3], ["j1", "j2", "j3"])
