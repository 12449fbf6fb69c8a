"""The structure of a workflow: its jobs in groups and stages. It is kept until jobs or dependencies change."""

from array import array
from bisect import bisect_left
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from typing import Any, Final, cast

import sqlalchemy as sa
from attrs import frozen

from torc_framework.graph.drawn_graph import GroupedGraph, grouped_graph
from torc_framework.models.barriers import Barrier
from torc_framework.models.statuses import JobStatus
from torc_framework.store.database.sql import Statement, Tx, param
from torc_framework.store.tables import core as t
from torc_framework.store.workflow_views.kept_values import KeptValues
from torc_framework.store.workflow_views.tags import workflow_marks

_MOST_WEIGHT: Final = 4_000_000
"""Jobs of all kept structures, and ten for each node; a job takes 32 bytes."""
_NODE_WEIGHT: Final = 10

_JOBS: Final = Statement(
    sa.select(t.JOB.c.id, t.JOB.c.name).where(t.JOB.c.workflow_id == param("workflow")).order_by(t.JOB.c.id), "workflow"
)
_DIRECT: Final = Statement(
    sa.select(t.JOB_DEPENDENCY.c.job_id, t.JOB_DEPENDENCY.c.depends_on_job_id)
    .join(t.JOB, t.JOB.c.id == t.JOB_DEPENDENCY.c.job_id)
    .where(t.JOB.c.workflow_id == param("workflow"))
    .order_by(t.JOB_DEPENDENCY.c.job_id),
    "workflow",
)
_DIRECT_OF_SPAN: Final = Statement(
    sa.select(t.JOB_DEPENDENCY.c.job_id - param("first"), t.JOB_DEPENDENCY.c.depends_on_job_id - param("first"))
    .where(t.JOB_DEPENDENCY.c.job_id.between(param("first"), param("last")))
    .order_by(t.JOB_DEPENDENCY.c.job_id),
    *("first", "last"),
)
"""The query for the dependencies of jobs whose ids are dense, by position: no other workflow has ids between them."""
_MEMBERS, _WAITERS = (
    Statement(
        sa.select(table.c.group_id, table.c.job_id)
        .join(t.DEPENDENCY_GROUP, t.DEPENDENCY_GROUP.c.id == table.c.group_id)
        .where(t.DEPENDENCY_GROUP.c.workflow_id == param("workflow")),
        "workflow",
    )
    for table in (t.GROUP_MEMBER, t.GROUP_WAITER)
)
_STATUS_COUNTS: Final = Statement(
    sa.select(t.JOB.c.status, sa.func.count())
    .where(t.JOB.c.workflow_id == param("workflow"))
    .group_by(t.JOB.c.status)
    .order_by(t.JOB.c.status),
    "workflow",
)
_OTHER_STATUSES: Final = Statement(
    sa.select(t.JOB.c.id, t.JOB.c.status).where(
        t.JOB.c.workflow_id == param("workflow"), t.JOB.c.status != param("status")
    ),
    *("workflow", "status"),
)


@frozen
class WorkflowStructure:
    """The jobs of a workflow in groups and stages.

    Attributes:
        version: Differs from that of every other structure.
        ids: Ids of the jobs, ascending; the position of a job in it is that in ``graph``.
    """

    version: tuple[str, int]
    ids: "array[int]"
    graph: GroupedGraph

    @property
    def name(self) -> str:
        """Differs from that of every other structure of the workflow."""
        return f"{len(self.ids)}-{self.version[1]}"

    def position(self, job_id: int) -> int | None:
        """Return the position of a job; None if it is not among these."""
        if not self.ids or not self.ids[0] <= job_id <= self.ids[-1]:
            return None
        if self.is_dense:
            return job_id - self.ids[0]
        found = bisect_left(self.ids, job_id)
        return found if self.ids[found] == job_id else None

    @property
    def is_dense(self) -> bool:
        """Whether no number between the first and the last id is missing."""
        return self.ids[-1] - self.ids[0] + 1 == len(self.ids)

    def positions(self) -> Callable[[int], int]:
        """Return a fast function from the id of a job of the structure to its position."""
        if not self.ids or self.is_dense:
            return (self.ids[0] if self.ids else 0).__rsub__
        return {id_: position for position, id_ in enumerate(self.ids)}.__getitem__


_kept: Final = KeptValues[WorkflowStructure](
    _MOST_WEIGHT, lambda kept: len(kept.ids) + _NODE_WEIGHT * len(kept.graph.nodes)
)


def workflow_structure(tx: Tx, workflow_id: int) -> WorkflowStructure:
    """Return the structure of a workflow.

    Raises:
        NotFoundError: there is no such workflow.
    """
    version = workflow_marks(tx, workflow_id).version
    kept = _kept.get(tx, workflow_id)
    if kept is not None and kept.version == version:
        return kept
    with _kept.making:
        kept = _kept.get(tx, workflow_id)
        if kept is None or kept.version != version:
            kept = _read_structure(tx, workflow_id, version)
            _kept.keep(tx, workflow_id, kept)
    return kept


def _read_structure(tx: Tx, workflow_id: int, version: tuple[str, int]) -> WorkflowStructure:
    rows = tx.rows(_JOBS, workflow_id)
    ids = array("q", [id_ for id_, _ in rows])
    names = [name for _, name in rows]
    without_graph = WorkflowStructure(version, ids, GroupedGraph([], array("q"), array("q"), [], array("q")))
    of_id = without_graph.positions()
    pairs: list[Any]
    if ids and without_graph.is_dense:
        pairs = tx.rows(_DIRECT_OF_SPAN, ids[0], ids[-1])
    else:
        pairs = [(of_id(job), of_id(on)) for job, on in tx.rows(_DIRECT, workflow_id)]
    barriers: dict[int, Barrier] = {}
    for group, job in tx.rows(_MEMBERS, workflow_id):
        barriers.setdefault(group, Barrier([], [])).upstream.append(of_id(job))
    for group, job in tx.rows(_WAITERS, workflow_id):
        barriers.setdefault(group, Barrier([], [])).downstream.append(of_id(job))
    return WorkflowStructure(version, ids, grouped_graph(names, pairs, list(barriers.values())))


def counts_by_node(tx: Tx, workflow_id: int, structure: WorkflowStructure) -> list[dict[str, int]]:
    """Return for each node of a workflow's graph the number of its jobs by status label."""
    totals: dict[int, int] = dict(cast("Any", tx.rows(_STATUS_COUNTS, workflow_id)))
    most = max(totals, key=totals.__getitem__, default=0)
    rows = tx.rows(_OTHER_STATUSES, workflow_id, most)
    nodes = map(structure.graph.node_of.__getitem__, map(structure.positions(), [id_ for id_, _ in rows]))
    # Counted by pairs, without a step of Python for each job. Jobs of the most frequent status are those that are left.
    counts = Counter(zip(nodes, [status for _, status in rows], strict=True))
    left = [node.count for node in structure.graph.nodes]
    for (node, _), count in counts.items():
        left[node] -= count
    counts += Counter({(node, most): count for node, count in enumerate(left) if count})
    found: list[dict[str, int]] = [{} for _ in left]
    for (node, status), count in sorted(counts.items()):
        found[node][JobStatus(status).label] = count
    return found


def id_ranges(ids: Iterable[int], known: Sequence[int]) -> list[tuple[int, int]]:
    """Return ascending ids as ranges, both ends included; a range may have numbers that are not among ``known``.

    Args:
        ids: Some of the known ids, ascending.
        known: All ids that may be asked for, ascending.
    """
    ranges: list[tuple[int, int]] = []
    place = -1
    for id_ in ids:
        found = place + 1 if 0 <= place + 1 < len(known) and known[place + 1] == id_ else bisect_left(known, id_)
        if ranges and found == place + 1:
            ranges[-1] = ranges[-1][0], id_
        else:
            ranges.append((id_, id_))
        place = found
    return ranges
