"""The progress of a workflow by stage and group, its throughput, and an estimate of its end.

The ended attempts that are kept in memory give both the throughput and the run times.
"""

import time
from bisect import bisect_right
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final

import sqlalchemy as sa

from torc_framework.models.run_estimate import RunTimes, WorkLeft, end_of_run
from torc_framework.models.statuses import LIVE, UNFINISHED, JobStatus
from torc_framework.models.workflow_views import JobsOfStage, OldestReady, ProgressView, RunEstimate, Throughput
from torc_framework.store.database.sql import Statement, Tx, number, param
from torc_framework.store.record_kinds.workflows import WORKFLOWS
from torc_framework.store.records.crud import get
from torc_framework.store.records.events import utc_text
from torc_framework.store.runs.progress import workflow_overviews
from torc_framework.store.tables import core as t
from torc_framework.store.workflow_views.attempt_times import RUNNING_ATTEMPTS, end_seconds
from torc_framework.store.workflow_views.attempts import EndedAttempts, ended_attempts
from torc_framework.store.workflow_views.structure import WorkflowStructure, counts_by_node, workflow_structure

MOST_GROUPS: Final = 500
"""Most groups that are returned."""
WINDOWS_S: Final = (60.0, 300.0, 3600.0)
_BUSY_WINDOW_S: Final = 300.0
_LIVE: Final = frozenset(status.label for status in LIVE)
_UNFINISHED: Final = frozenset(status.label for status in UNFINISHED)

_READY: Final = Statement(
    sa.select(sa.func.min(t.JOB.c.id)).where(
        t.JOB.c.workflow_id == param("workflow"), t.JOB.c.status == number(JobStatus.READY)
    ),
    "workflow",
)
_ENDS: Final = (
    sa.select(t.RESULT.c.completion_time.label("ended"))
    .join(t.JOB, t.JOB.c.result_id == t.RESULT.c.id)
    .join(t.JOB_DEPENDENCY, t.JOB_DEPENDENCY.c.depends_on_job_id == t.JOB.c.id)
    .where(t.JOB_DEPENDENCY.c.job_id == param("job")),
    sa.select(t.RESULT.c.completion_time)
    .join(t.JOB, t.JOB.c.result_id == t.RESULT.c.id)
    .join(t.GROUP_MEMBER, t.GROUP_MEMBER.c.job_id == t.JOB.c.id)
    .join(t.GROUP_WAITER, t.GROUP_WAITER.c.group_id == t.GROUP_MEMBER.c.group_id)
    .where(t.GROUP_WAITER.c.job_id == param("job")),
    sa.select(t.RESULT.c.completion_time).where(t.RESULT.c.job_id == param("job")),
)
"""Ends of what a job waited for, and of its own attempts; those of earlier runs are among them."""
_ENDED: Final = tuple(Statement(query, "job") for query in _ENDS)
_NAME: Final = Statement(sa.select(t.JOB.c.name).where(t.JOB.c.id == param("job")), "job")


def progress_view(tx: Tx, workflow_id: int) -> ProgressView:
    """Return the progress of a workflow.

    Raises:
        NotFoundError: there is no such workflow.
    """
    now_s = time.time()
    overview: Any
    (overview,) = workflow_overviews(tx, [get(tx, WORKFLOWS, workflow_id)])
    structure = workflow_structure(tx, workflow_id)
    counts = counts_by_node(tx, workflow_id, structure)
    with ended_attempts(tx, workflow_id, structure) as attempts:
        throughput = _throughput(attempts, overview["run_id"], now_s)
        estimate, end_unknown = None, None
        if not _LIVE.isdisjoint(overview["counts"]):
            work = _work_left(structure, counts, attempts, _oldest(tx, workflow_id, structure, now_s))
            estimate, end_unknown = _end(work, attempts, throughput, now_s)
    nodes = structure.graph.nodes
    groups = [
        JobsOfStage(node.label, node.stage, node.last_stage, node.first_name, node.last_name, node.count, by_status)
        for node, by_status in zip(nodes[:MOST_GROUPS], counts, strict=False)
    ]
    return ProgressView(
        overview,
        utc_text(now_s),
        structure.graph.stage_count,
        groups,
        len(nodes),
        throughput,
        estimate,
        _oldest_ready(tx, workflow_id),
        end_unknown,
    )


def _throughput(attempts: EndedAttempts, run_id: int, now_s: float) -> list[Throughput]:
    ends = attempts.ends.get(run_id)
    if ends is None:
        return []
    run_s = now_s - attempts.run_begins[run_id]
    found = []
    for window_s in (*(each for each in WINDOWS_S if each < run_s), max(run_s, 1.0)):
        completed, failed = (len(each) - bisect_right(each, now_s - window_s) for each in ends)
        rate = (completed + failed) * 60 / window_s
        found.append(Throughput(round(window_s, 3), completed, failed, round(rate, 3)))
    return found


def _oldest(tx: Tx, workflow_id: int, structure: WorkflowStructure, now_s: float) -> dict[int, float]:
    """Return how long the attempt has run that runs longest, by node of the graph."""
    oldest: dict[int, float] = {}
    rows: Iterable[Any] = tx.rows(RUNNING_ATTEMPTS, workflow_id)
    for job_id, _, started_s in rows:
        place = structure.position(job_id)
        if place is not None and started_s is not None:
            node = structure.graph.node_of[place]
            oldest[node] = max(oldest.get(node, 0.0), now_s - started_s)
    return oldest


def _work_left(
    structure: WorkflowStructure,
    counts: Sequence[Mapping[str, int]],
    attempts: EndedAttempts,
    oldest: Mapping[int, float],
) -> list[WorkLeft]:
    nodes, times = structure.graph.nodes, attempts.run_times
    of_group: dict[str, list[RunTimes]] = {}
    for place, its_times in times.items():
        of_group.setdefault(nodes[place].label, []).append(its_times)
    groups = {label: RunTimes.merged(several) for label, several in of_group.items()}
    found = []
    for place, (node, by_status) in enumerate(zip(nodes, counts, strict=True)):
        if _UNFINISHED.isdisjoint(by_status):
            continue
        whole = groups.get(node.label, RunTimes())
        running = by_status.get(JobStatus.RUNNING.label, 0)
        found.append(
            WorkLeft(
                node.label if node.count > 1 else node.first_name,
                node.stage,
                sum(by_status.get(label, 0) for label in _UNFINISHED) - running,
                running,
                times.get(place, whole),
                whole.longest,
                oldest.get(place, 0.0),
            )
        )
    return found


def _end(
    work: Sequence[WorkLeft], attempts: EndedAttempts, throughput: Sequence[Throughput], now_s: float
) -> tuple[RunEstimate | None, str | None]:
    """Return the estimate of the end, or why there is none."""
    running = sum(each.running for each in work)
    places = max(running, attempts.busy_seconds(now_s - _BUSY_WINDOW_S, now_s) / _BUSY_WINDOW_S)
    rates = ((each.completed + each.failed) / each.window_s for each in throughput)
    left = end_of_run(work, places, next(filter(None, rates), None))
    if isinstance(left, str):
        return None, left
    estimate = RunEstimate(
        sum(each.waiting + each.running for each in work),
        seconds=round(left.expected, 1),
        least_seconds=round(left.least, 1),
        most_seconds=round(left.most, 1),
        ends_at=utc_text(now_s + left.expected),
        places=round(places, 1),
        samples=sum(each.count for each in attempts.run_times.values()),
    )
    return estimate, None


def _oldest_ready(tx: Tx, workflow_id: int) -> OldestReady | None:
    job_id: Any = tx.value(_READY, workflow_id)
    if job_id is None:
        return None
    ends = {row[0] for query in _ENDED for row in tx.rows(query, job_id)}
    known = [end for text in ends if (end := end_seconds(text)) is not None]
    return OldestReady(job_id, tx.value(_NAME, job_id), utc_text(max(known)) if known else None)
