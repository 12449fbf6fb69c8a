"""The jobs of a workflow that do not run yet, by reason as far as the server knows it."""

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any, Final, cast

import sqlalchemy as sa
from attrs import Factory, define, frozen

from torc_framework.job_filters import filter_text, quoted_value
from torc_framework.models.statuses import UNBLOCKING, UNFINISHED, JobStatus
from torc_framework.models.workflow_views import LikeWaits, WaitingView
from torc_framework.store.database.sql import Row, Statement, Tx, number, numbers, param
from torc_framework.store.records.events import utc_text
from torc_framework.store.tables import core as t
from torc_framework.store.workflow_views.limits import DEFAULT_GROUPS
from torc_framework.store.workflow_views.structure import WorkflowStructure, counts_by_node, workflow_structure

NAMED_JOBS: Final = 5
NAMED_GROUPS: Final = 5
"""Groups of jobs that are named."""
MOST_DETAIL: Final = 300
"""Most characters of what an executor waits for."""
_J: Final = t.JOB.c
_WAITING: Final = UNFINISHED - {JobStatus.RUNNING}
_JOBS: Final = Statement(
    sa.select(
        _J.id,
        _J.name,
        _J.status,
        _J.resource_requirements_id,
        _J.executor,
        _J.not_before,
        _J.waiting_reason,
        _J.is_interrupted,
    )
    .where(
        _J.workflow_id == param("workflow"),
        sa.or_(_J.status.in_(numbers(_WAITING)), _J.is_interrupted != number(0)),
    )
    .order_by(_J.id),
    "workflow",
)
_REQUIREMENTS: Final = Statement(
    sa.select(t.RESOURCE_REQUIREMENTS.c.id, t.RESOURCE_REQUIREMENTS.c.name).where(
        t.RESOURCE_REQUIREMENTS.c.workflow_id == param("workflow")
    ),
    "workflow",
)


@frozen
class _Reason:
    """Why jobs wait; jobs that agree in it are a group.

    Attributes:
        node: Node of the workflow's graph, of jobs that wait for others.
    """

    reason: str
    node: int | None = None
    detail: str | None = None
    resource_requirements_id: int | None = None
    executor: str | None = None


@define
class _Waiting:
    count: int = 0
    groups: Counter[int] = Factory(Counter)
    earliest: str | None = None
    job_ids: list[int] = Factory(list)
    job_names: list[str] = Factory(list)


def waiting_view(tx: Tx, workflow_id: int, limit: int = DEFAULT_GROUPS) -> WaitingView:
    """Return the jobs of a workflow that do not run yet, by reason.

    Raises:
        NotFoundError: there is no such workflow.
    """
    structure = workflow_structure(tx, workflow_id)
    position, group_of, node_of = structure.positions(), structure.graph.group_of, structure.graph.node_of
    now = utc_text()
    found: dict[_Reason, _Waiting] = {}
    rows = tx.rows(_JOBS, workflow_id)
    for row in rows:
        place = position(row[0])
        reason = _reason(row, node_of[place], now)
        group = found.get(reason)
        if group is None:
            group = found[reason] = _Waiting()
        group.count += 1
        group.groups[group_of[place]] += 1
        if reason.reason == "delayed" and (group.earliest is None or row[5] < group.earliest):
            group.earliest = row[5]
        if len(group.job_ids) < NAMED_JOBS:
            group.job_ids.append(row[0])
            group.job_names.append(row[1])
    ordered = sorted(found.items(), key=lambda item: (-item[1].count, item[1].job_ids[0]))[:limit]
    awaited = _awaited(tx, workflow_id, structure) if any(reason.node is not None for reason, _ in ordered) else {}
    requirements: dict[int, str] = dict(cast("Any", tx.rows(_REQUIREMENTS, workflow_id)))
    shown = [_shown(structure, reason, group, awaited, requirements) for reason, group in ordered]
    return WaitingView(shown, len(found), len(rows))


def _reason(row: Row, node: int, now: str) -> _Reason:
    _, _, status, requirements, executor, not_before, waiting_reason, is_interrupted = row
    if is_interrupted:
        return _Reason("interrupted")
    if status == JobStatus.BLOCKED:
        return _Reason("waits_for_jobs", node)
    if status == JobStatus.READY:
        if not_before is not None and not_before > now:
            return _Reason("delayed")
        return _Reason("ready", resource_requirements_id=requirements, executor=executor)
    if status == JobStatus.PENDING:
        return _Reason("launching", detail=None if waiting_reason is None else waiting_reason[:MOST_DETAIL])
    return _Reason("verdict" if status == JobStatus.PENDING_FAILED else "uninitialized")


def _awaited(tx: Tx, workflow_id: int, structure: WorkflowStructure) -> dict[int, Counter[str]]:
    """Return for each node the unfinished jobs of those nodes that it depends on, by label."""
    over = {status.label for status in UNBLOCKING}
    counts = counts_by_node(tx, workflow_id, structure)
    left = [sum(count for label, count in by_status.items() if label not in over) for by_status in counts]
    found: dict[int, Counter[str]] = {}
    nodes = structure.graph.nodes
    inner = [((number, number), node.inner) for number, node in enumerate(nodes) if node.inner]
    for (before, after), _ in (*structure.graph.edges.items(), *inner):
        if left[before]:
            found.setdefault(after, Counter())[nodes[before].label] += left[before]
    return found


def _shown(
    structure: WorkflowStructure,
    reason: _Reason,
    group: _Waiting,
    awaited: Mapping[int, Counter[str]],
    requirements: Mapping[int, str],
) -> LikeWaits:
    labels = structure.graph.labels
    waits_for = awaited.get(reason.node, Counter()) if reason.node is not None else Counter[str]()
    return LikeWaits(
        reason.reason,
        group.count,
        {labels[number]: count for number, count in group.groups.most_common(NAMED_GROUPS)},
        len(group.groups),
        dict(waits_for.most_common(NAMED_GROUPS)),
        reason.detail,
        reason.resource_requirements_id,
        reason.executor,
        group.earliest,
        group.job_ids,
        group.job_names,
        filter_text(_terms(reason, [labels[number] for number in group.groups], requirements)),
    )


_STATUS_OF: Final = {
    "waits_for_jobs": JobStatus.BLOCKED,
    "delayed": JobStatus.READY,
    "ready": JobStatus.READY,
    "launching": JobStatus.PENDING,
    "verdict": JobStatus.PENDING_FAILED,
    "uninitialized": JobStatus.UNINITIALIZED,
}


def _terms(reason: _Reason, labels: Sequence[str], requirements: Mapping[int, str]) -> list[tuple[str, Any]]:
    """Return the terms of a filter that finds jobs which wait for a reason."""
    if reason.reason == "interrupted":
        return [("interrupted", "yes")]
    terms: list[tuple[str, Any]] = [("status", _STATUS_OF[reason.reason].label)]
    if reason.reason == "waits_for_jobs":
        terms.append(("group", quoted_value(labels[0], always=True)))
    if reason.reason == "ready":
        name = requirements.get(reason.resource_requirements_id or 0)
        if name is not None:
            terms.append(("requirements", quoted_value(name)))
        terms.append(("executor", None if reason.executor is None else quoted_value(reason.executor)))
    if reason.reason == "launching":
        cut = reason.detail is not None and len(reason.detail) == MOST_DETAIL
        detail = (
            None
            if reason.detail is None
            else quoted_value(f"{reason.detail}*" if cut else reason.detail, keeps_wildcards=cut)
        )
        terms.append(("waiting", detail))
    return terms
