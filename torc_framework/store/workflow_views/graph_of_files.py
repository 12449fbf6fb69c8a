"""Graphs of jobs with the files, or the user data, that they write and read."""

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final, cast

import sqlalchemy as sa
from attrs import define, frozen

from torc_framework.graph.drawn_graph import DrawnNode, drawing_of, group_label
from torc_framework.models.workflow_views import GraphNode, GraphView
from torc_framework.store.database.sql import Statement, Tx, ids_param, param
from torc_framework.store.tables import core as t
from torc_framework.store.workflow_views.graph import (
    JOBS,
    REST,
    REST_KIND,
    JobChoice,
    graph_view,
    group_node,
    job_node,
)
from torc_framework.store.workflow_views.limits import DEFAULT_NODES, LINKED_KINDS, MOST_NODES
from torc_framework.store.workflow_views.structure import counts_by_node, workflow_structure


@frozen
class _Linked:
    """What jobs are linked with: its tables.

    Attributes:
        one: Kind of a node of one of it.
        several: Kind of a node of a group of it.
        prefix: First letter of the id of a node.
    """

    one: str
    several: str
    prefix: str
    names: Statement
    every_name: Statement
    every_link: Sequence[Statement]
    links_of: Sequence[Statement]


def _linked(kinds: tuple[str, str], prefix: str, table: sa.Table, links: Sequence[sa.Table], key: str) -> _Linked:
    of_workflow = [
        sa.select(link.c.job_id, link.c[key])
        .join(t.JOB, t.JOB.c.id == link.c.job_id)
        .where(t.JOB.c.workflow_id == param("workflow"))
        for link in links
    ]
    of_jobs = [sa.select(link.c.job_id, link.c[key]).where(link.c.job_id.in_(ids_param())) for link in links]
    return _Linked(
        *kinds,
        prefix,
        Statement(sa.select(table.c.id, table.c.name).where(table.c.id.in_(ids_param()))),
        Statement(sa.select(table.c.id, table.c.name).where(table.c.workflow_id == param("workflow")), "workflow"),
        [Statement(query, "workflow") for query in of_workflow],
        [Statement(query) for query in of_jobs],
    )


_FILES: Final = _linked(("file", "files"), "f", t.FILE, (t.JOB_OUTPUT_FILE, t.JOB_INPUT_FILE), "file_id")
_USER_DATA: Final = _linked(
    ("user_data", "user_data"), "u", t.USER_DATA, (t.JOB_OUTPUT_USER_DATA, t.JOB_INPUT_USER_DATA), "user_data_id"
)
LINKED: Final = dict(zip(LINKED_KINDS, (_FILES, _USER_DATA), strict=True))
"""What jobs are linked with, by kind of graph."""


@define
class _Item:
    """A file or user data, or a group of it.

    Attributes:
        rank: Its layer comes between those of the jobs that write it and of those that read it: two ranks a stage.
    """

    id: int
    label: str
    rank: int
    count: int = 0


@define
class _Items:
    """What some jobs write and read, in groups or one by one.

    Attributes:
        edges: Number of links by pair of nodes; jobs are the first nodes, then these items.
    """

    found: list[_Item]
    edges: Counter[tuple[int, int]]


def _items(
    names: Mapping[int, str],
    links: Sequence[Sequence[tuple[int, int]]],
    nodes: Callable[[int], int],
    stages: Sequence[int],
    *,
    is_grouped: bool,
) -> _Items:
    """Return what jobs are linked with.

    Args:
        names: Names by id of what they are linked with.
        links: Pairs of a job and what it writes; pairs of a job and what it reads.
        nodes: Returns the node of a job.
        stages: For each node of jobs the number of its stage.
        is_grouped: Those whose names differ in their digits only, and that have the same place, are one.
    """
    ranks: dict[int, int] = {}
    for written, pairs in zip(
        (True, False), links, strict=True
    ):  # what no job writes has the place of its first reader
        for job_id, id_ in pairs:
            ranks.setdefault(id_, 2 * stages[nodes(job_id)] + (1 if written else -1))
    places: dict[object, int] = {}
    place_of: dict[int, int] = {}
    found: list[_Item] = []
    for id_, rank in ranks.items():
        label = group_label(names[id_]) if is_grouped else names[id_]
        place = places.setdefault((label, rank) if is_grouped else id_, len(found))
        if place == len(found):
            found.append(_Item(id_, label, rank))
        found[place].count += 1
        place_of[id_] = len(stages) + place
    for item in found:
        if item.count == 1:
            item.label = names[item.id]
    edges: Counter[tuple[int, int]] = Counter([(nodes(job_id), place_of[id_]) for job_id, id_ in links[0]])
    edges.update([(place_of[id_], nodes(job_id)) for job_id, id_ in links[1]])
    return _Items(found, edges)


def graph_of_linked_groups(tx: Tx, workflow_id: int, kind: str, limit: int = DEFAULT_NODES) -> GraphView:
    """Return the groups of a workflow's jobs with the groups of what they write and read.

    Args:
        kind: One of `LINKED`.
        limit: Most nodes.

    Raises:
        NotFoundError: there is no such workflow.
    """
    linked = LINKED[kind]
    structure = workflow_structure(tx, workflow_id)
    groups = structure.graph.nodes
    stages = [node.stage for node in groups]
    position, node_of = structure.positions(), structure.graph.node_of
    links = [tx.rows(query, workflow_id) for query in linked.every_link]
    names: dict[int, str] = dict(cast("Any", tx.rows(linked.every_name, workflow_id)))
    items = _items(names, links, lambda job_id: node_of[position(job_id)], stages, is_grouped=True)
    counts = counts_by_node(tx, workflow_id, structure)
    sizes = [*(node.count for node in groups), *(item.count for item in items.found)]
    ranks = [*(2 * stage for stage in stages), *(item.rank for item in items.found)]
    drawing = drawing_of(ranks, items.edges, limit, sizes)
    shown: list[GraphNode] = []
    for drawn in drawing.nodes:
        if len(drawn.members) == 1:
            number = drawn.members[0]
            is_job = number < len(stages)
            shown.append(
                group_node(structure, counts, drawn)
                if is_job
                else _item_node(linked, items, number - len(stages), drawn)
            )
        else:
            label, count = f"{len(drawn.members):,} others", sum(sizes[number] for number in drawn.members)
            shown.append(GraphNode(f"{REST}{drawn.members[0]}", REST_KIND, label, count, drawn.layer, drawn.order))
    omitted = sum(len(drawn.members) for drawn in drawing.nodes if len(drawn.members) > 1)
    return graph_view(structure, shown, drawing, omitted, kind=kind)


def linked_graph_of_jobs(tx: Tx, workflow_id: int, kind: str, choice: JobChoice) -> GraphView:
    """Return some jobs with what they write and read.

    Args:
        kind: One of `LINKED`.
        choice: The jobs, of which there are few.

    Raises:
        NotFoundError: there is no such workflow.
    """
    linked, job_ids = LINKED[kind], choice.job_ids
    structure = workflow_structure(tx, workflow_id)
    position = structure.positions()
    stages = [structure.graph.stage_of[position(job_id)] for job_id in job_ids]
    place = {job_id: number for number, job_id in enumerate(job_ids)}
    links = [tx.rows_for(query, job_ids) for query in linked.links_of]
    known = sorted({id_ for pairs in links for _, id_ in pairs})
    names: dict[int, str] = dict(cast("Any", tx.rows_for(linked.names, known)))
    # A job may be linked with as much as the whole workflow: then it is shown in groups.
    items = _items(names, links, place.__getitem__, stages, is_grouped=len(names) > MOST_NODES)
    ranks = [*(2 * stage for stage in stages), *(item.rank for item in items.found)]
    drawing = drawing_of(ranks, items.edges, 2 * MOST_NODES)
    rows = {row[0]: row for row in tx.rows_for(JOBS, job_ids)}
    shown: list[GraphNode] = []
    for drawn in drawing.nodes:
        number = drawn.members[0]
        if number < len(job_ids):
            shown.append(job_node(rows[job_ids[number]], stages[number], drawn))
        else:
            shown.append(_item_node(linked, items, number - len(job_ids), drawn))
    view = graph_view(structure, shown, drawing, kind=kind)
    view.total, view.offset = choice.total, choice.offset
    return view


def _item_node(linked: _Linked, items: _Items, number: int, drawn: DrawnNode) -> GraphNode:
    item = items.found[number]
    kind = linked.one if item.count == 1 else linked.several
    id_ = f"{linked.prefix}{item.id}" if item.count == 1 else f"{linked.prefix}g{number}"
    return GraphNode(id_, kind, item.label, item.count, drawn.layer, drawn.order)
