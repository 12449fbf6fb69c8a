"""Tests of views of 100,000 jobs: every answer stays small, and any part of a list is found."""

import time
from datetime import UTC, datetime
from typing import Any

import msgspec
import pytest
import sqlalchemy as sa

from torc_framework.models.plan import PlannedJob
from torc_framework.models.statuses import JobStatus
from torc_framework.store.tables import core as t
from torc_framework.store.workflow_views import graph, graph_of_files, timeline
from torc_framework.store.workflow_views.failures import failures_view
from torc_framework.store.workflow_views.job_columns import JobList, job_columns
from torc_framework.store.workflow_views.progress import progress_view
from torc_framework.store.workflow_views.sweep import sweep_view
from torc_framework.store.workflow_views.waiting import waiting_view

JOBS = 100_000
RUNNERS = 100
MOST_BYTES = 200_000


@pytest.fixture
def many(bench: Any) -> Any:
    """Half of the jobs have ended; the names of 1,000 jobs have groups of their own."""
    half = JOBS // 2
    word = [f"{a}{b}{c}" for a in "abcdefghij" for b in "abcdefghij" for c in "abcdefghij"]
    names = [f"train_lr{n % 100}_bs{n % 64}_{n}" for n in range(half)]
    names += [f"eval_{n}" for n in range(half - 1000)] + [f"{each}_job" for each in word]
    pairs = [(n, n - half) for n in range(half, JOBS)]
    bench.plan([PlannedJob(name, "x") for name in names], pairs)
    bench.nodes += [bench.node(hostname=f"n{n}") for n in range(RUNNERS - 1)]
    first, now = bench.first_job, datetime.fromtimestamp(time.time(), UTC).isoformat(timespec="milliseconds")
    with bench.database.write() as tx:
        run = tx.connection.execute
        number = t.JOB.c.id - first
        failed = number % 50 == 0
        columns = {
            "id": t.JOB.c.id + 10,
            "job_id": t.JOB.c.id,
            "workflow_id": t.JOB.c.workflow_id,
            "run_id": sa.literal(1),
            "attempt_id": sa.literal(1),
            "compute_node_id": bench.nodes[0] + number % RUNNERS,
            "return_code": sa.case((failed, number % 100 + 1), else_=0),
            "exec_time_minutes": (number % 1000 + 1) / 100.0,
            "completion_time": sa.literal(now),
            "status": sa.case((failed, int(JobStatus.FAILED)), else_=int(JobStatus.COMPLETED)),
        }
        ended = sa.select(*columns.values()).where(t.JOB.c.workflow_id == bench.workflow_id, number < half)
        run(sa.insert(t.RESULT).from_select(list(columns), ended, include_defaults=False))
        run(
            sa.update(t.JOB)
            .where(t.JOB.c.workflow_id == bench.workflow_id, number < half)
            .values(status=columns["status"], result_id=t.JOB.c.id + 10)
        )
    return bench


def test_answers_stay_small(many: Any) -> None:
    views: dict[str, Any] = {
        "progress": progress_view,
        "graph": graph.graph_of_groups,
        "files": lambda tx, id_: graph_of_files.graph_of_linked_groups(tx, id_, "files"),
        "timeline": lambda tx, id_: timeline.timeline_view(tx, id_, timeline.TimelineWindow(limit=200)),
        "failures": failures_view,
        "waiting": waiting_view,
        "sweep": sweep_view,
        "jobs": lambda tx, id_: job_columns(tx, JobList(id_, sort="-seconds"), offset=90_000, limit=1000),
        "members": lambda tx, id_: graph.graph_of_jobs(tx, id_, graph.group_members(tx, id_, "g0", offset=40_000)),
    }
    with many.database.read() as tx:
        found: dict[str, Any] = {name: view(tx, many.workflow_id) for name, view in views.items()}
    assert {name: size for name, view in found.items() if (size := len(msgspec.json.encode(view))) > MOST_BYTES} == {}
    assert sum(found["graph"].nodes[n].count for n in range(len(found["graph"].nodes))) == JOBS
    assert found["graph"].omitted > 0
    assert sum(found["timeline"].bars.count) == JOBS // 2
    assert found["failures"].job_count == JOBS // 100
    assert found["waiting"].job_count == JOBS // 2
    assert (found["members"].total, found["members"].offset) == (JOBS // 2, 40_000)
    assert found["jobs"].total == JOBS
    assert len(found["jobs"].columns["id"]) == 1000


def test_dependencies_on_half_of_all_jobs_stay_small(bench: Any) -> None:
    """Of 50,000 jobs that each wait for 50,000 others, a part is read as fast as any other."""
    half = JOBS // 2
    jobs = [PlannedJob(f"a_job_with_a_longer_name_{n}", "x") for n in range(JOBS)]
    bench.plan(jobs, [(half, n) for n in range(0, half, 2)], [([*range(half)], [*range(half, JOBS)])])
    with bench.database.read() as tx:
        wanted = JobList(bench.workflow_id)
        found = job_columns(tx, wanted, ["id", "dependencies"], offset=half, limit=1000)
    assert {each.count for each in found.columns["dependencies"]} == {half}
    assert {tuple(each.job_ids) for each in found.columns["dependencies"]} == {tuple(map(bench.job_id, range(3)))}
    assert len(msgspec.json.encode(found)) < MOST_BYTES


def test_parts_at_any_place_are_those_of_the_whole_list(many: Any) -> None:
    with many.database.read() as tx:
        for text, count in {
            "": JOBS,
            "group:train": JOBS // 2,
            "stage:2": JOBS // 2,
            "-started:any": JOBS // 2,
        }.items():
            wanted = JobList(many.workflow_id, text)
            assert job_columns(tx, wanted).total == count, text
            last = job_columns(tx, wanted, ["id"], offset=count - 1).columns["id"]
            assert len(last) == 1, text
