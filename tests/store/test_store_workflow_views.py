"""Tests of the views of a workflow: counts, graphs, failures, waiting jobs, sweep."""

import time
from typing import Any

import pytest
import sqlalchemy as sa
from store_views import ids_found, pipeline, seen

from torc_framework.models.plan import PlannedJob
from torc_framework.models.records import FileRecord, UserDataRecord
from torc_framework.models.statuses import JobStatus
from torc_framework.store.errors import NotFoundError, RuleError
from torc_framework.store.record_kinds.jobs import JOBS, create_jobs, delete_jobs
from torc_framework.store.records import crud
from torc_framework.store.tables import core as t
from torc_framework.store.workflow_views import graph, graph_of_files, timeline
from torc_framework.store.workflow_views.failures import failures_view
from torc_framework.store.workflow_views.job_columns import ORDER_LIFETIME_S, JobList, job_columns, order_tag
from torc_framework.store.workflow_views.progress import progress_view
from torc_framework.store.workflow_views.structure import workflow_structure
from torc_framework.store.workflow_views.sweep import sweep_view
from torc_framework.store.workflow_views.tags import view_tag, workflow_marks
from torc_framework.store.workflow_views.waiting import waiting_view

# --- progress -----------------------------------------------------------------------------------------


def test_progress_counts_by_stage_and_group(bench: Any) -> None:
    pipeline(bench)
    bench.finish(0)
    bench.finish(1)
    bench.start(2)
    found = seen(bench, progress_view)
    assert [(each.stage, each.group, each.count, each.counts) for each in found.groups] == [
        (1, "prepare", 1, {"completed": 1}),
        (2, "train_lr#.#_bs#", 3, {"completed": 1, "running": 1, "pending": 1}),
        (3, "eval_#", 3, {"pending": 1, "blocked": 2}),
        (4, "report", 1, {"blocked": 1}),
    ]
    assert (found.stage_count, found.group_count) == (4, 4)
    assert [(each.completed, each.failed) for each in found.throughput][-1] == (2, 0)
    assert (found.estimate, found.end_unknown) == (None, "no job of eval_# has completed yet")
    assert found.oldest_ready is None


def test_the_end_is_estimated_from_what_has_started(bench: Any) -> None:
    """Claimed jobs are no places; the estimate goes while a job runs longer than all before, or the rate is another."""
    bench.plan(8)
    bench.start(0, 1, 2, 3)
    for job in (0, 1):
        bench.end(job, exec_time_s=1000.0)
    found = seen(bench, progress_view)
    assert found.end_unknown is None
    assert (found.estimate.left_jobs, found.estimate.places) == (6, 2.0)
    assert found.estimate.least_seconds <= found.estimate.seconds <= found.estimate.most_seconds
    bench.set_status(2, JobStatus.RUNNING, started_s=time.time() - 2000)
    found = seen(bench, progress_view)
    assert (found.estimate, found.end_unknown) == (None, "job# has run longer than any that completed")
    bench.plan(8)
    bench.start(0, 1, 2, 3)
    for job in (0, 1):
        bench.end(job, ended_at=time.time() - 600)
    found = seen(bench, progress_view)
    assert found.estimate is None
    assert found.end_unknown.startswith("what is left needs 30 min")


def test_a_stage_without_run_times_has_those_of_its_group(bench: Any) -> None:
    bench.plan(3, [(1, 0), (2, 1)])
    bench.start(0)
    bench.end(0, exec_time_s=1000.0)
    bench.start(1)
    found = seen(bench, progress_view)
    assert ([each.stage for each in found.groups], found.end_unknown) == ([1, 2, 3], None)
    assert found.estimate.left_jobs == 2


def test_the_oldest_ready_job_is_ready_since_its_last_dependency_ended(bench: Any) -> None:
    pipeline(bench)
    first = seen(bench, progress_view).oldest_ready
    assert (first.name, first.since) == ("prepare", None)
    ended_at = time.time() - 100
    bench.start(0)
    bench.end(0, ended_at=ended_at)
    ready = seen(bench, progress_view).oldest_ready
    assert ready.name == "train_lr0.0_bs1"
    assert ready.since is not None


def test_a_workflow_that_has_not_run_has_no_estimate(bench: Any) -> None:
    pipeline(bench, begin=False)
    found = seen(bench, progress_view)
    assert (found.estimate, found.end_unknown, found.throughput, found.oldest_ready) == (None, None, [], None)


def test_an_empty_workflow_has_all_views(bench: Any) -> None:
    bench.plan(0, begin=False)
    assert seen(bench, progress_view).groups == []
    assert seen(bench, graph.graph_of_groups).nodes == []
    assert seen(bench, graph_of_files.graph_of_linked_groups, "files").nodes == []
    assert seen(bench, timeline.timeline_view, timeline.TimelineWindow()).lanes == []
    assert seen(bench, failures_view).groups == []
    assert seen(bench, waiting_view).groups == []
    assert seen(bench, sweep_view).parameters == []
    assert ids_found(bench, "") == []


def test_views_of_an_unknown_workflow(bench: Any) -> None:
    bench.plan(1)
    bench.workflow_id = 12_345
    for view in (progress_view, graph.graph_of_groups, failures_view, waiting_view, sweep_view):
        with pytest.raises(NotFoundError):
            seen(bench, view)
    with pytest.raises(NotFoundError):
        seen(bench, timeline.timeline_view, timeline.TimelineWindow())


# --- structure ----------------------------------------------------------------------------------------


def test_the_structure_is_kept_until_it_changes(bench: Any) -> None:
    pipeline(bench, begin=False)
    first = seen(bench, workflow_structure)
    assert seen(bench, workflow_structure) is first
    bench.begin()
    bench.finish(0)
    assert seen(bench, workflow_structure) is first
    with bench.database.write() as tx:
        create_jobs(tx, [{"workflow_id": bench.workflow_id, "name": "more", "command": "x"}])
    added = seen(bench, workflow_structure)
    assert added.graph.labels[-1] == "more"
    with bench.database.write() as tx:
        delete_jobs(tx, bench.workflow_id, [added.ids[-1], bench.job_id(2)])
    assert len(seen(bench, workflow_structure).ids) == len(first.ids) - 1
    assert ids_found(bench, "stage:4") == [7]  # the ids have a gap


def test_a_renamed_job_is_in_another_group(bench: Any) -> None:
    pipeline(bench, begin=False)
    seen(bench, workflow_structure)
    with bench.database.write() as tx:
        crud.update(tx, JOBS, bench.job_id(7), {"name": "other", "depends_on_job_ids": []})
    found = seen(bench, workflow_structure).graph
    assert [(node.label, node.stage) for node in found.nodes if node.first == 7] == [("other", 1)]


def test_dependencies_that_files_imply_are_part_of_the_structure(bench: Any) -> None:
    files = [FileRecord(workflow_id=0, name="f", path="/f")]
    bench.plan([PlannedJob("a", "x", output_files=[0]), PlannedJob("b", "x")], files=files, begin=False)
    assert seen(bench, workflow_structure).graph.stage_count == 1
    with bench.database.write() as tx:
        job = crud.create(tx, JOBS, {"workflow_id": bench.workflow_id, "name": "c", "command": "x"})
        file_id = tx.connection.execute(sa.select(t.FILE.c.id)).scalar_one()
        tx.connection.execute(sa.insert(t.JOB_INPUT_FILE).values(job_id=job["id"], file_id=file_id))
    bench.begin()
    assert seen(bench, workflow_structure).graph.stage_count == 2


def test_the_tag_of_a_list_changes_when_its_kept_order_does(bench: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    pipeline(bench)
    clock = [1000.0]
    monkeypatch.setattr("torc_framework.store.workflow_views.job_columns.time.monotonic", lambda: clock[0])
    wanted = JobList(bench.workflow_id, "status:completed")

    def look() -> tuple[str, int]:
        with bench.database.read() as tx:
            return order_tag(tx, wanted, 1000), job_columns(tx, wanted).total

    bench.start(0)
    before = look()
    bench.end(0)
    kept = look()
    clock[0] += ORDER_LIFETIME_S
    after = look()
    assert [total for _, total in (before, kept, after)] == [0, 0, 1]
    assert len({tag for tag, _ in (before, kept, after)}) == 3
    assert look() == after


def test_a_tag_changes_with_events_and_with_jobs(bench: Any) -> None:
    pipeline(bench)

    def tag() -> str:
        return view_tag(seen(bench, workflow_marks), 10**9)

    tags = [tag()]
    bench.finish(0)
    tags.append(tag())
    with bench.database.write() as tx:
        crud.update(tx, JOBS, bench.job_id(1), {"executor": "local"})
    tags.append(tag())
    assert len(set(tags)) == 3
    assert tag() == tags[-1]


# --- graph --------------------------------------------------------------------------------------------


def drawn(view: Any) -> tuple[dict[str, tuple[str, int, int]], set[tuple[str, str, int]]]:
    """Return the nodes of a graph by label, and its edges by labels."""
    nodes = {node.label: (node.kind, node.count, node.layer) for node in view.nodes}
    return nodes, {(view.nodes[a].label, view.nodes[b].label, count) for a, b, count in view.edges}


def test_graph_of_groups(bench: Any) -> None:
    pipeline(bench)
    bench.finish(0)
    found = seen(bench, graph.graph_of_groups)
    nodes, edges = drawn(found)
    assert nodes == {
        "prepare": ("job", 1, 0),
        "train_lr#.#_bs#": ("jobs", 3, 1),
        "eval_#": ("jobs", 3, 2),
        "report": ("job", 1, 3),
    }
    assert edges == {
        ("prepare", "train_lr#.#_bs#", 3),
        ("train_lr#.#_bs#", "eval_#", 3),
        ("eval_#", "report", 3),
    }
    assert found.nodes[1].counts == {"ready": 3}
    assert found.nodes[0].job_id == bench.job_id(0)
    assert (found.job_count, found.edge_count) == (8, 9)


def test_groups_that_do_not_fit_in_are_counted(bench: Any) -> None:
    bench.plan([PlannedJob("abcdefgh"[n] * 3, "x") for n in range(8)])
    found = seen(bench, graph.graph_of_groups, 4)
    assert [(node.kind, node.count) for node in found.nodes] == [("job", 1), ("job", 1), ("job", 1), ("rest", 5)]
    assert (found.omitted, found.nodes[3].counts) == (5, {"ready": 5})


def test_members_of_a_group_with_what_they_depend_on(bench: Any) -> None:
    pipeline(bench)
    group = next(node.id for node in seen(bench, graph.graph_of_groups).nodes if node.label == "eval_#")
    choice = seen(bench, graph.group_members, group, offset=1, limit=1)
    found = seen(bench, graph.graph_of_jobs, choice)
    nodes, edges = drawn(found)
    assert nodes == {"train_lr#.#_bs#": ("jobs", 3, 0), "eval_1": ("job", 1, 1), "report": ("job", 1, 2)}
    assert edges == {("train_lr#.#_bs#", "eval_1", 1), ("eval_1", "report", 1)}
    assert (found.total, found.offset) == (3, 1)


def test_members_that_depend_on_each_other_and_barriers(bench: Any) -> None:
    bench.plan(6, [(1, 0)], [([0, 1, 2], [3, 4, 5])])
    choice = graph.JobChoice([bench.job_id(n) for n in (0, 1, 3)], 6)
    found = seen(bench, graph.graph_of_jobs, choice)
    _, edges = drawn(found)
    assert edges == {
        ("job0", "job1", 1),
        ("job0", "job3", 1),
        ("job1", "job3", 1),
        ("job#", "job3", 1),
        ("job0", "job#", 2),
        ("job1", "job#", 2),
    }


@pytest.mark.parametrize("group", ["", "g", "g99", "j1", "gx", "g-1", "g9999999999999999999", "g١"])
def test_an_unknown_group_is_refused(bench: Any, group: str) -> None:
    pipeline(bench)
    with pytest.raises(RuleError, match="has no group"):
        seen(bench, graph.group_members, group)


def test_neighbours_of_a_job(bench: Any) -> None:
    pipeline(bench)

    def names(depth: int) -> set[str]:
        choice = seen(bench, graph.jobs_around, bench.job_id(4), depth=depth)
        return {node.label for node in seen(bench, graph.graph_of_jobs, choice).nodes if node.kind == "job"}

    assert names(1) == {"train_lr0.0_bs1", "eval_0", "report"}
    assert names(2) == {"prepare", "train_lr0.0_bs1", "eval_0", "report"}
    with pytest.raises(NotFoundError):
        seen(bench, graph.jobs_around, 10**12)


def test_jobs_with_files_and_user_data(bench: Any) -> None:
    files = [FileRecord(workflow_id=0, name=name, path=f"/{name}") for name in ("in", "out1", "out2")]
    data = [UserDataRecord(workflow_id=0, name="d")]
    bench.plan(
        [
            PlannedJob("make1", "x", input_files=[0], output_files=[1], output_user_data=[0]),
            PlannedJob("make2", "x", input_files=[0], output_files=[2]),
            PlannedJob("use", "x", input_files=[1, 2], input_user_data=[0]),
        ],
        [(2, 0), (2, 1)],
        files=files,
        user_data=data,
    )
    nodes, edges = drawn(seen(bench, graph_of_files.graph_of_linked_groups, "files"))
    assert nodes == {
        "in": ("file", 1, 0),
        "make#": ("jobs", 2, 1),
        "out#": ("files", 2, 2),
        "use": ("job", 1, 3),
    }
    assert edges == {("in", "make#", 2), ("make#", "out#", 2), ("out#", "use", 2)}
    nodes, edges = drawn(seen(bench, graph_of_files.graph_of_linked_groups, "user_data"))
    assert edges == {("make#", "d", 1), ("d", "use", 1)}
    choice = graph.JobChoice([bench.job_id(0)], 3)
    nodes, edges = drawn(seen(bench, graph_of_files.linked_graph_of_jobs, "files", choice))
    assert edges == {("in", "make1", 1), ("make1", "out1", 1)}


# --- failures -----------------------------------------------------------------------------------------


def test_failures_are_grouped_and_their_filters_find_them(bench: Any) -> None:
    pipeline(bench, 9)
    bench.finish(0)
    bench.claim()
    endings: dict[int, dict[str, Any]] = {
        1: {"exit_class": "oom", "signal": 9, "reason": "used 100 MiB"},
        2: {"exit_class": "oom", "signal": 9, "reason": "used 230 MiB"},
        3: {"exit_class": "failure", "exit_code": 3},
        4: {"exit_class": "failure", "exit_code": 3, "reason": 'said "no" * 2'},
        5: {"reason": "x" * 500},
    }
    for n, fields in endings.items():
        bench.end(n, "failed", 137 if "signal" in fields else 3, **fields)
    bench.end(6, "terminated", 1, exit_class="timeout")
    found = seen(bench, failures_view)
    assert [(each.count, each.exit_class, each.exit, each.signature) for each in found.groups][:2] == [
        (2, "oom", 137, "used * MiB"),
        (1, "failure", 3, None),
    ]
    assert found.job_count == 6
    assert found.canceled > 0
    for each in found.groups:
        assert len(ids_found(bench, each.filter)) == each.count, each.filter
    for by in ("node", "group", "status", "class", "exit", "signal", "reason"):
        for each in seen(bench, failures_view, [by]).groups:
            assert len(ids_found(bench, each.filter)) == each.count, each.filter


def test_failures_by_something_else(bench: Any) -> None:
    bench.plan(1)
    with pytest.raises(RuleError, match="did you mean 'node'"):
        seen(bench, failures_view, ["nodes"])


def test_retried_failures_are_counted_apart(bench: Any) -> None:
    bench.plan(2)
    bench.start(0, 1)
    bench.retry(0, 3)
    found = seen(bench, failures_view)
    assert (found.job_count, found.retried) == (0, 1)


# --- waiting ------------------------------------------------------------------------------------------


def test_jobs_that_wait_are_grouped_and_their_filters_find_them(bench: Any) -> None:
    pipeline(bench)
    bench.finish(0)
    bench.start(1)
    bench.set_status(2, JobStatus.READY)
    bench.set_status(3, JobStatus.READY, not_before="2999-01-01T00:00:00.000Z")
    found = {each.reason: each for each in seen(bench, waiting_view).groups}
    assert {reason: (each.count, each.job_names) for reason, each in found.items() if reason != "waits_for_jobs"} == {
        "ready": (1, ["train_lr0.1_bs2"]),
        "delayed": (1, ["train_lr0.2_bs4"]),
    }
    assert found["delayed"].earliest == "2999-01-01T00:00:00.000Z"
    blocked = {tuple(each.groups): each for each in seen(bench, waiting_view).groups if each.reason == "waits_for_jobs"}
    assert blocked["eval_#",].waits_for == {"train_lr#.#_bs#": 3}
    assert blocked["report",].waits_for == {"eval_#": 3}
    for each in seen(bench, waiting_view).groups:
        at_least = len(ids_found(bench, each.filter))
        assert at_least == each.count or each.reason in ("ready", "delayed"), each.filter


def test_what_an_executor_waits_for_is_a_reason(bench: Any) -> None:
    bench.plan(2)
    bench.claim()
    with bench.database.write() as tx:
        mine = t.JOB.c.workflow_id == bench.workflow_id
        tx.connection.execute(sa.update(t.JOB).where(mine).values(waiting_reason='pod "x" ' + "y" * 400))
    (group,) = seen(bench, waiting_view).groups
    assert (group.reason, group.count) == ("launching", 2)
    assert len(ids_found(bench, group.filter)) == 2


# --- sweep --------------------------------------------------------------------------------------------


def test_a_sweep_is_a_grid(bench: Any) -> None:
    bench.plan([PlannedJob(f"train_lr0.{x}_bs{y}", "x") for x in (1, 2) for y in (16, 8)] + [PlannedJob("end", "x")])
    bench.claim()
    bench.end(0, exec_time_s=10, peak_memory_bytes=100)
    bench.end(1, "failed", exec_time_s=20, peak_memory_bytes=300)
    found = seen(bench, sweep_view)
    assert (found.family, found.x, found.y) == ("train_lr{lr}_bs{bs}", "lr", "bs")
    assert (found.x_values, found.y_values) == (["0.1", "0.2"], ["8", "16"])
    cells = found.cells
    assert list(zip(cells.x, cells.y, cells.counts, cells.seconds, cells.peak_memory_bytes, strict=True)) == [
        (0, 0, {"failed": 1}, 20, 300),
        (0, 1, {"completed": 1}, 10, 100),
        (1, 0, {"pending": 1}, None, None),
        (1, 1, {"pending": 1}, None, None),
    ]
    assert (found.job_count, found.omitted) == (4, 0)
    turned = seen(bench, sweep_view, x="bs", y="lr", limit=1)
    assert (turned.x, turned.x_values, turned.job_count, turned.omitted) == ("bs", ["8"], 1, 3)
    with pytest.raises(RuleError, match="no parameter"):
        seen(bench, sweep_view, x="lr_")
    with pytest.raises(RuleError, match="no jobs"):
        seen(bench, sweep_view, "eval")
