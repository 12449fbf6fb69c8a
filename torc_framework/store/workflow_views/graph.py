"""Graphs of a workflow to be drawn: its groups, the members of a group, the neighbours of a job."""

import re
from collections import Counter
from collections.abc import Container, Iterable, Mapping, Sequence
from typing import Final

import sqlalchemy as sa
from attrs import frozen

from torc_framework.graph.drawn_graph import Drawing, DrawnNode, drawing_of
from torc_framework.models.statuses import JobStatus
from torc_framework.models.workflow_views import GraphNode, GraphView
from torc_framework.store.database.sql import Row, Statement, Tx, first, ids_param, param
from torc_framework.store.errors import NotFoundError, RuleError
from torc_framework.store.tables import core as t
from torc_framework.store.workflow_views.limits import DEFAULT_NODES, JOBS_KIND, MOST_NODES
from torc_framework.store.workflow_views.structure import WorkflowStructure, counts_by_node, workflow_structure

GROUP: Final = "g"
JOB: Final = "j"
REST: Final = "r"
REST_KIND: Final = "rest"
MOST_EDGES: Final = 10_000
"""Most edges of a graph; those that stand for fewest dependencies are left out."""
_GROUP_ID: Final = re.compile(f"{GROUP}[0-9]{{1,9}}")
_FAN: Final = 100
"""Most neighbours of a job, on either side, that are drawn one by one."""

# --- groups -------------------------------------------------------------------------------------------


def graph_of_groups(tx: Tx, workflow_id: int, limit: int = DEFAULT_NODES) -> GraphView:
    """Return the graph of the groups of a workflow's jobs.

    Raises:
        NotFoundError: there is no such workflow.
    """
    structure = workflow_structure(tx, workflow_id)
    graph = structure.graph
    counts = counts_by_node(tx, workflow_id, structure)
    drawing = drawing_of([node.stage for node in graph.nodes], graph.edges, limit, [node.count for node in graph.nodes])
    nodes = [group_node(structure, counts, drawn) for drawn in drawing.nodes]
    omitted = len(graph.nodes) - sum(node.kind != REST_KIND for node in nodes)
    return graph_view(structure, nodes, drawing, omitted, kind=JOBS_KIND)


def graph_view(
    structure: WorkflowStructure, nodes: list[GraphNode], drawing: Drawing, omitted: int = 0, *, kind: str
) -> GraphView:
    """Return the answer for a drawing, with those of its edges that stand for most dependencies."""
    most = sorted(drawing.edges.items(), key=lambda edge: (-edge[1], edge[0]))[:MOST_EDGES]
    return GraphView(
        kind,
        structure.name,
        nodes,
        sorted((source, target, count) for (source, target), count in most),
        drawing.layer_count,
        len(structure.ids),
        structure.graph.edge_count,
        omitted,
        len(drawing.edges) - len(most),
        len(structure.ids),
    )


def group_node(structure: WorkflowStructure, counts: Sequence[Mapping[str, int]], drawn: DrawnNode) -> GraphNode:
    """Return the node of a group, or of several that did not fit in; ``counts`` are those of `counts_by_node`."""
    members = [structure.graph.nodes[number] for number in drawn.members]
    by_status: Counter[str] = Counter()
    for number in drawn.members:
        by_status.update(counts[number])
    node, place = members[0], (drawn.layer, drawn.order)
    if len(members) > 1:
        label = f"{node.label} and {len(members) - 1:,} others"
        count = sum(member.count for member in members)
        id_ = f"{REST}{drawn.members[0]}"
        return GraphNode(id_, REST_KIND, label, count, *place, counts=dict(by_status), stage=node.stage)
    is_one = node.count == 1
    return GraphNode(
        f"{JOB}{structure.ids[node.first]}" if is_one else f"{GROUP}{drawn.members[0]}",
        "job" if is_one else "jobs",
        node.first_name if is_one else node.label,
        node.count,
        *place,
        counts=dict(by_status),
        stage=node.stage,
        last_stage=node.last_stage,
        job_id=structure.ids[node.first] if is_one else None,
        inner=node.inner,
    )


# --- jobs ---------------------------------------------------------------------------------------------

JOBS: Final = Statement(sa.select(t.JOB.c.id, t.JOB.c.name, t.JOB.c.status).where(t.JOB.c.id.in_(ids_param())))
"""The query for ids, names and statuses of jobs."""
_D, _M, _W = t.JOB_DEPENDENCY.c, t.GROUP_MEMBER.c, t.GROUP_WAITER.c
_COUNT: Final = param("count")
_NEIGHBOURS: Final = tuple(
    tuple(Statement(first(query, _COUNT), "job", "count") for query in side)
    for side in (
        (
            sa.select(_D.depends_on_job_id).where(_D.job_id == param("job")),
            sa.select(_M.job_id).join(t.GROUP_WAITER, _W.group_id == _M.group_id).where(_W.job_id == param("job")),
        ),
        (
            sa.select(_D.job_id).where(_D.depends_on_job_id == param("job")),
            sa.select(_W.job_id).join(t.GROUP_MEMBER, _W.group_id == _M.group_id).where(_M.job_id == param("job")),
        ),
    )
)
"""The queries for some of the jobs that a job waits for, and of those that wait for it."""
_DIRECT: Final = tuple(
    Statement(sa.select(_D.depends_on_job_id, _D.job_id).where(column.in_(ids_param())))
    for column in (_D.job_id, _D.depends_on_job_id)
)
_GROUPS_OF: Final = tuple(
    Statement(sa.select(columns.group_id).where(columns.job_id.in_(ids_param())).distinct()) for columns in (_M, _W)
)
_IN_GROUP: Final = tuple(Statement(sa.select(c.job_id).where(c.group_id == param("group")), "group") for c in (_M, _W))


@frozen
class JobChoice:
    """Jobs of a workflow that are drawn one by one.

    Attributes:
        job_ids: Their ids, ascending.
        total: Number of jobs from which they are a part.
        offset: Number of these jobs before them.
        of_others: Show the groups at the other ends of dependencies of these jobs only; None is of all.
    """

    job_ids: Sequence[int]
    total: int
    offset: int = 0
    of_others: Container[int] | None = None


def group_members(tx: Tx, workflow_id: int, group: str, *, offset: int = 0, limit: int = DEFAULT_NODES) -> JobChoice:
    """Return members of a group.

    Args:
        group: Id of a node of `graph_of_groups`.
        offset: Members to skip, in the order of their ids.
        limit: Most members.

    Raises:
        NotFoundError: there is no such workflow.
        RuleError: the workflow has no such group.
    """
    structure = workflow_structure(tx, workflow_id)
    number = int(group[1:]) if _GROUP_ID.fullmatch(group) else -1
    if not 0 <= number < len(structure.graph.nodes):
        raise RuleError(
            f"open: the graph has no group {group[:20]!r}; ids of groups change with the jobs of a workflow"
        )
    members = [id_ for id_, node in zip(structure.ids, structure.graph.node_of, strict=True) if node == number]
    return JobChoice(members[offset : offset + limit], len(members), offset)


def jobs_around(tx: Tx, workflow_id: int, job_id: int, *, depth: int = 1, limit: int = DEFAULT_NODES) -> JobChoice:
    """Return a job and its neighbours; of many neighbours of one job the first.

    Args:
        depth: Most dependencies between the job and a neighbour.
        limit: Most jobs.

    Raises:
        NotFoundError: there is no such workflow, or it has no such job.
    """
    structure = workflow_structure(tx, workflow_id)
    if structure.position(job_id) is None:
        raise NotFoundError("Job", job_id)
    found: dict[int, None] = {job_id: None}
    for queries in _NEIGHBOURS:
        edge = [job_id]
        for _ in range(depth):
            reached = {row[0]: None for job in edge for query in queries for row in tx.rows(query, job, _FAN)}
            edge = [other for other in reached if other not in found][: max(0, limit - len(found))]
            found.update(dict.fromkeys(edge))
    return JobChoice(sorted(found), len(structure.ids), of_others={job_id})


def graph_of_jobs(tx: Tx, workflow_id: int, choice: JobChoice) -> GraphView:
    """Return jobs with their dependencies, and the groups of the jobs at the other ends of these.

    Raises:
        NotFoundError: there is no such workflow.
    """
    structure, job_ids = workflow_structure(tx, workflow_id), choice.job_ids
    graph = structure.graph
    ends = _Ends(structure, choice)
    for query in _DIRECT:
        for on, job in tx.rows_for(query, job_ids):
            # A dependency between two of the jobs is found from both of its ends.
            if ends.matters(on, job) and not (query is _DIRECT[1] and ends.is_shown(job)):
                ends.add([on], [job])
    for group in {row[0] for query in _GROUPS_OF for row in tx.rows_for(query, job_ids)}:
        ends.add(*([row[0] for row in tx.rows(query, group)] for query in _IN_GROUP))
    groups = list(ends.groups)
    stages = [graph.stage_of[ends.position(job_id)] for job_id in job_ids]
    drawing = drawing_of([*stages, *(graph.nodes[node].stage for node in groups)], ends.edges, MOST_NODES * 2)
    rows = {row[0]: row for row in tx.rows_for(JOBS, job_ids)}
    counts = counts_by_node(tx, workflow_id, structure) if groups else []
    nodes = []
    for drawn in drawing.nodes:
        number = drawn.members[0]
        if number < len(job_ids):
            nodes.append(job_node(rows[job_ids[number]], stages[number], drawn))
        else:
            whole = DrawnNode([groups[number - len(job_ids)]], drawn.layer, drawn.order)
            nodes.append(group_node(structure, counts, whole))
    view = graph_view(structure, nodes, drawing, kind=JOBS_KIND)
    view.total, view.offset = choice.total, choice.offset
    return view


class _Ends:
    """The edges of shown jobs; an end that is no shown job is its group."""

    def __init__(self, structure: WorkflowStructure, choice: JobChoice) -> None:
        self._node_of, self._of_others = structure.graph.node_of, choice.of_others
        self.position = structure.positions()
        self._place = {job_id: number for number, job_id in enumerate(choice.job_ids)}
        self.groups: dict[int, int] = {}
        self.edges: Counter[tuple[int, int]] = Counter()

    def is_shown(self, job_id: int) -> bool:
        return job_id in self._place

    def matters(self, on: int, job: int) -> bool:
        """Return whether a dependency makes an edge."""
        of_others = self._of_others
        return of_others is None or on in of_others or job in of_others or (on in self._place and job in self._place)

    def add(self, before: Iterable[int], after: Iterable[int]) -> None:
        """Add the dependencies of all of some jobs on all of others that have a shown job at one end."""
        (sources, far_sources), (targets, far_targets) = self._divided(before), self._divided(after)
        for source in sources:
            for target in targets:
                self.edges[self._place[source], self._place[target]] += 1
        for source in self._with_others(sources):
            for node, count in far_targets.items():
                self.edges[self._place[source], self._end(node)] += count
        for target in self._with_others(targets):
            for node, count in far_sources.items():
                self.edges[self._end(node), self._place[target]] += count

    def _with_others(self, job_ids: Iterable[int]) -> Iterable[int]:
        return [job_id for job_id in job_ids if self._of_others is None or job_id in self._of_others]

    def _end(self, node: int) -> int:
        return self.groups.setdefault(node, len(self._place) + len(self.groups))

    def _divided(self, job_ids: Iterable[int]) -> tuple[list[int], Counter[int]]:
        """Return which of the jobs are shown, and the number of the others by node."""
        shown = [job_id for job_id in job_ids if job_id in self._place]
        others = Counter([self._node_of[self.position(job_id)] for job_id in job_ids if job_id not in self._place])
        return shown, others


def job_node(row: Row, stage: int, drawn: DrawnNode) -> GraphNode:
    """Return the node of one job, given its row of `JOBS`."""
    job_id, name, status = row
    counts = {JobStatus(status).label: 1}
    return GraphNode(
        f"{JOB}{job_id}",
        "job",
        name,
        1,
        drawn.layer,
        drawn.order,
        counts=counts,
        stage=stage,
        last_stage=stage,
        job_id=job_id,
    )
