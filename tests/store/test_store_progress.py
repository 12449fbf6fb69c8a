"""The progress of workflows, and their jobs in groups by name."""

import time
from collections import Counter
from datetime import UTC, datetime
from typing import Any

import pytest
import sqlalchemy as sa

from torc_framework.models.plan import PlannedJob
from torc_framework.models.progress import RunTotals, WorkflowOverview
from torc_framework.models.runner_states import SILENT_AFTER_S
from torc_framework.store.record_kinds.workflows import WORKFLOWS
from torc_framework.store.records import crud
from torc_framework.store.records.events import utc_text
from torc_framework.store.runs import job_groups as job_groups_module
from torc_framework.store.runs import run_totals as run_totals_module
from torc_framework.store.runs.job_groups import MAX_GROUPS, job_groups
from torc_framework.store.runs.progress import workflow_overviews, workflow_progress
from torc_framework.store.runs.run_totals import run_totals
from torc_framework.store.tables import core as t
from torc_framework.store.workflow_views.attempt_times import end_seconds


def progress_of(bench: Any) -> Any:
    """Return the progress of the bench's workflow."""
    with bench.database.read() as tx:
        return workflow_progress(tx, crud.get(tx, WORKFLOWS, bench.workflow_id))


def groups_of(bench: Any) -> list[Any]:
    """Return the groups of the bench's jobs."""
    with bench.database.read() as tx:
        return job_groups(tx, bench.workflow_id).groups


def test_an_empty_workflow(bench: Any) -> None:
    bench.plan(0, begin=False)
    found = progress_of(bench)
    assert (found["overview"]["counts"], found["ready"], found["failures"], found["recent"]) == ({}, {}, {}, [])
    assert found["started_at"] is None
    assert groups_of(bench) == []


def test_the_progress_of_a_run(bench: Any) -> None:
    """Counts, failures by class, the load of the runner by what has started, and ends, newest first."""
    bench.plan(5)
    bench.start(0, 1, 2)
    bench.end(0)
    bench.end(1, "failed", exit_class="oom")
    found = progress_of(bench)
    assert found["overview"]["counts"] == {"completed": 1, "failed": 1, "running": 1, "pending": 2}
    assert found["failures"] == {"oom": 1}
    (load,) = found["loads"]
    assert (load.compute_node_id, load.jobs, load.num_cpus, load.claimed) == (bench.nodes[0], 1, 1, 2)
    assert len(found["recent"]) == 2
    assert found["started_at"] < found["recent"][1]
    assert found["overview"]["active_runners"] == 1
    assert found["overview"]["updated_at"] > 0
    assert found["ready"] == {}


def _overview(bench: Any) -> WorkflowOverview:
    return WorkflowOverview(**progress_of(bench)["overview"])


def test_a_workflow_whose_runners_are_all_silent(bench: Any) -> None:
    """Runners that have not been heard of for minutes are counted; the state says so when none is left."""
    bench.plan(1)
    bench.start(0)
    with bench.database.write() as tx:
        tx.connection.execute(
            sa.update(t.COMPUTE_NODE).values(last_heard_at=utc_text(time.time() - SILENT_AFTER_S - 5))
        )
    overview = _overview(bench)
    assert (overview.active_runners, overview.silent_runners, overview.state) == (1, 1, "silent")
    with bench.database.write() as tx:
        tx.connection.execute(sa.update(t.COMPUTE_NODE).values(last_heard_at=utc_text()))
    overview = _overview(bench)
    assert (overview.silent_runners, overview.state) == (0, "running")


def test_ready_jobs_by_their_requirements(bench: Any) -> None:
    bench.plan(3)
    ((_, count),) = progress_of(bench)["ready"].items()
    assert count == 3


def test_the_totals_of_runs(bench: Any) -> None:
    """Present results only, each in its run; a time that is none counts in no span."""
    bench.plan(4)
    bench.start(0, 1, 2, 3)
    for job in range(4):
        bench.end(job)
    times = ["2026-01-01T00:10:00Z", "2026-01-01T00:01:00Z", "noon", "2026-01-02T00:00:00Z"]
    with bench.database.write() as tx:
        ids = tx.connection.execute(sa.select(t.RESULT.c.id).order_by(t.RESULT.c.id)).scalars().all()
        for result_id, ended, run_id in zip(ids, times, [1, 1, 1, 2], strict=True):
            values = {"completion_time": ended, "exec_time_minutes": 2.0, "run_id": run_id}
            tx.connection.execute(sa.update(t.RESULT).where(t.RESULT.c.id == result_id).values(values))
        tx.connection.execute(sa.update(t.JOB).where(t.JOB.c.result_id == ids[3]).values(result_id=None))
    end = datetime(2026, 1, 1, 0, 10, tzinfo=UTC).timestamp()
    with bench.database.read() as tx:
        assert run_totals(tx, bench.workflow_id) == [RunTotals(1, 3, 360.0, end - 660, end)]


_FIRST = datetime(2026, 1, 1, tzinfo=UTC).timestamp()


@pytest.mark.parametrize(
    "times",
    [
        [f"2026-01-01T00:00:{second:02}.500Z" for second in (5, 9, 7, 1, 3, 8, 2, 6)],
        [*(f"2026-01-01T00:00:{second:02}.500Z" for second in range(1, 8)), "2026-01-01t00:00:00.500Z"],
        [*(f"2026-01-01T00:00:{second:02}.500Z" for second in range(1, 8)), "2025-12-31T23:59:59.500+00:00"],
        [*(f"2026-01-01T00:00:{second:02}.500Z" for second in range(1, 8)), "9026-99-99T99:99:99.999Z"],
        [*(f"2026-01-01T00:00:{second:02}.500Z" for second in range(1, 8)), "2026-W01-4T00:00:00.500Z"],
    ],
    ids=["unordered", "a small letter", "an offset", "no time", "a week"],
)
def test_totals_by_slices_are_those_of_each_result(
    bench: Any, times: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The database sums slices up; the first begin may be in a later slice; other forms of times are read singly."""
    bench.plan(8)
    bench.start(*range(8))
    for job in range(8):
        bench.end(job)
    minutes = [1.0, 0.5, 0.25, 2.0, 0.125, 4.0, 0.0, 0.75]
    with bench.database.write() as tx:
        ids = tx.connection.execute(sa.select(t.RESULT.c.id).order_by(t.RESULT.c.id)).scalars().all()
        for result_id, ended, spent in zip(ids, times, minutes, strict=True):
            values = {"completion_time": ended, "exec_time_minutes": spent}
            tx.connection.execute(sa.update(t.RESULT).where(t.RESULT.c.id == result_id).values(values))
    known = [(end, 60 * spent) for text, spent in zip(times, minutes, strict=True) if (end := end_seconds(text))]
    span = min(end - spent_s for end, spent_s in known), max(end for end, _ in known)
    assert span[1] > _FIRST
    monkeypatch.setattr(run_totals_module, "RESULTS_AT_ONCE", 2)
    with bench.database.read() as tx:
        assert run_totals(tx, bench.workflow_id) == [RunTotals(1, 8, 60 * sum(minutes), *span)]


def test_overviews_of_many_workflows(bench: Any) -> None:
    """Each has its own numbers, in the order in which they are given."""
    ids = [bench.plan(number) for number in (1, 3, 2)]
    with bench.database.read() as tx:
        found = workflow_overviews(tx, [crud.get(tx, WORKFLOWS, id_) for id_ in reversed(ids)])
    assert [each["workflow"]["id"] for each in found] == ids[::-1]
    assert [each["counts"] for each in found] == [{"ready": 2}, {"ready": 3}, {"ready": 1}]


def test_groups_by_name(bench: Any) -> None:
    """Jobs whose names differ in digits are one group; a blocked group names unfinished jobs that it waits for."""
    names = ["prep", *(f"train_lr0.{n}_s{n}" for n in range(1, 12)), "report"]
    jobs = [PlannedJob(name=name, command="true") for name in names]
    bench.plan(jobs, [(n, 0) for n in range(1, 12)], [(list(range(1, 12)), [12])])
    bench.finish(0)
    found = groups_of(bench)
    assert [(each.count, each.counts, each.waits_for) for each in found] == [
        (1, {"completed": 1}, []),
        (11, {"ready": 11}, []),
        (1, {"blocked": 1}, ["train_lr0.10_s10"]),
    ]
    assert (found[1].first_name, found[1].last_name) == ("train_lr0.10_s10", "train_lr0.9_s9")


def test_the_number_of_groups_is_limited(bench: Any) -> None:
    names = [f"{chr(97 + n // 26)}{chr(97 + n % 26)}" for n in range(MAX_GROUPS + 5)]
    bench.plan([PlannedJob(name=name, command="true") for name in names])
    with bench.database.read() as tx:
        found = job_groups(tx, bench.workflow_id)
    assert (len(found.groups), found.group_count) == (MAX_GROUPS, MAX_GROUPS + 5)


@pytest.mark.parametrize("names", [["a1", "a\x1e2", "a3"], ["\x1e", "b"], ["é1", "é２", "é22"]])
def test_groups_of_unusual_names(bench: Any, monkeypatch: pytest.MonkeyPatch, names: list[str]) -> None:
    """Control characters and digits of other scripts are letters like others."""
    monkeypatch.setattr(job_groups_module, "SLICE_JOBS", 2)
    bench.plan([PlannedJob(name=name, command="true") for name in [*names, *(f"{name}0" for name in names)]])
    stems = [name.translate({ord(digit): None for digit in "0123456789"}) for name in names]
    assert sorted(each.count for each in groups_of(bench)) == sorted(2 * count for count in Counter(stems).values())


@pytest.mark.parametrize("size", [1, 2, 3])
def test_groups_are_the_same_in_slices_of_any_size(bench: Any, monkeypatch: pytest.MonkeyPatch, size: int) -> None:
    """A group whose jobs are in several slices, in other orders of names than of ids, is one group."""
    names = [f"{stem}{number}{end}" for number in (9, 10, 1) for stem in "ba" for end in ("", "_end")]
    bench.plan([PlannedJob(name=name, command="true") for name in names], [(11, 0), (4, 1)])
    bench.finish(2)
    whole = groups_of(bench)
    assert [(each.first_name, each.last_name, each.count) for each in whole] == [
        ("b1", "b9", 3),
        ("b10_end", "b9_end", 3),
        ("a1", "a9", 3),
        ("a10_end", "a9_end", 3),
    ]
    monkeypatch.setattr(job_groups_module, "SLICE_JOBS", size)
    assert groups_of(bench) == whole
