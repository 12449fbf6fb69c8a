"""A drawing of a dependency graph by groups of jobs: nodes in layers, and their order in each layer.

A group is the jobs whose names differ in their digits only. A node is the jobs of one group in one stage, as long as
that makes few nodes, and else the whole group. Time and memory grow with jobs + pairs + sizes of barriers.
"""

import re
from array import array
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from typing import Final

from attrs import Factory, define, frozen

from torc_framework.graph.dag import job_levels
from torc_framework.models.barriers import Barrier

DIGITS: Final = re.compile("[0-9]+")
DIGIT_MARK: Final = "#"
"""What stands for each run of digits in the label of a group."""
MOST_STAGED_NODES: Final = 300
"""Most nodes of a drawing in which a group has a node for each of its stages."""
_SWEEPS: Final = 8
"""Passes over the layers that order them; eight were enough in measurements of layered random graphs."""


def group_label(name: str) -> str:
    """Return the label of the group of a job's name."""
    return DIGITS.sub(DIGIT_MARK, name)


@define
class GroupNode:
    """The jobs of one group, in one stage or in all.

    Attributes:
        stage: Number of the first stage of its jobs, from 1.
        last_stage: Number of their last stage.
        first: Position of its first job.
        inner: Dependencies between its own jobs.
    """

    label: str
    stage: int
    last_stage: int
    first: int
    first_name: str
    last_name: str
    count: int = 0
    inner: int = 0


@define
class GroupedGraph:
    """Groups of jobs, and the dependencies between them.

    Attributes:
        labels: Labels of all groups, in the order of their first jobs.
        group_of: For each job the position of its label.
        stage_of: For each job the number of its stage, from 1.
        nodes: The nodes, in the order of stages and first jobs.
        node_of: For each job the position of its node.
        edges: Number of dependencies by pair of nodes: (node, node that waits for it).
        edge_count: Number of all dependencies between jobs.
    """

    labels: list[str]
    group_of: "array[int]"
    stage_of: "array[int]"
    nodes: list[GroupNode]
    node_of: "array[int]"
    edges: dict[tuple[int, int], int] = Factory(dict)
    edge_count: int = 0

    @property
    def stage_count(self) -> int:
        """The number of stages."""
        return max(self.stage_of, default=0)


def grouped_graph(
    names: Sequence[str], pairs: Sequence[tuple[int, int]], barriers: Sequence[Barrier] = ()
) -> GroupedGraph:
    """Return the groups of a workflow's jobs.

    Args:
        names: Names of the jobs, by position.
        pairs: (job, job it waits for), by position.
        barriers: Shared dependencies.
    """
    positions: dict[str, int] = {}
    group_of = array("q", [positions.setdefault(label, len(positions)) for label in _labels(names)])
    # On a cycle, which the next start of the workflow refuses, jobs are in the first stage.
    stage_of = array("q", [level + 1 for level in job_levels(len(names), pairs, barriers)])
    labels = list(positions)
    keys: list[tuple[int, int]] = list(zip(stage_of, group_of, strict=True))
    if len(set(keys)) > max(MOST_STAGED_NODES, 2 * len(labels)):
        keys = [(0, group) for group in group_of]
    nodes, node_of = _nodes(names, labels, stage_of, keys)
    grouped = GroupedGraph(labels, group_of, stage_of, nodes, node_of)
    _add_edges(grouped, pairs, barriers)
    return grouped


def _labels(names: Sequence[str]) -> list[str]:
    """Return `group_label` of each name; in one text, unless a name has several lines, because that is faster."""
    found = DIGITS.sub(DIGIT_MARK, "\n".join(names)).split("\n")
    return found if len(found) == len(names) else [group_label(name) for name in names]


def _nodes(
    names: Sequence[str], labels: Sequence[str], stage_of: Sequence[int], keys: Sequence[tuple[int, int]]
) -> "tuple[list[GroupNode], array[int]]":
    members: defaultdict[tuple[int, int], list[int]] = defaultdict(list)
    for job, key in enumerate(keys):
        members[key].append(job)
    found: dict[tuple[int, int], GroupNode] = {}
    for key, jobs in members.items():
        its_names, stages = [names[job] for job in jobs], [stage_of[job] for job in jobs]
        first, last = min(its_names), max(its_names)
        found[key] = GroupNode(labels[key[1]], min(stages), max(stages), jobs[0], first, last, len(jobs))
    ordered = sorted(found, key=lambda key: (found[key].stage, found[key].first))
    place = {key: number for number, key in enumerate(ordered)}
    return [found[key] for key in ordered], array("q", [place[key] for key in keys])


def _add_edges(grouped: GroupedGraph, pairs: Iterable[tuple[int, int]], barriers: Iterable[Barrier]) -> None:
    node_of = grouped.node_of
    edges: Counter[tuple[int, int]] = Counter([(node_of[on], node_of[job]) for job, on in pairs])
    for barrier in barriers:
        upstream = Counter([node_of[job] for job in barrier.upstream])
        downstream = Counter([node_of[job] for job in barrier.downstream])
        for before, many in upstream.items():
            for after, times in downstream.items():
                edges[before, after] += many * times
    grouped.edge_count = edges.total()
    for (before, after), count in edges.items():
        if before == after:
            grouped.nodes[before].inner += count
        else:
            grouped.edges[before, after] = count


@frozen
class DrawnNode:
    """One node of a drawing.

    Attributes:
        members: Positions of the nodes of the graph for which it stands; several if they did not fit in.
        layer: Position of its layer, from 0.
        order: Position in the layer, from 0.
    """

    members: Sequence[int]
    layer: int
    order: int


@frozen
class Drawing:
    """Nodes layer by layer, in their order, and the edges between them, by position in ``nodes``."""

    nodes: list[DrawnNode]
    edges: dict[tuple[int, int], int]
    layer_count: int


def drawing_of(
    ranks: Sequence[int], edges: Mapping[tuple[int, int], int], limit: int, weights: Sequence[int] | None = None
) -> Drawing:
    """Return a drawing of a graph with layers.

    Args:
        ranks: For each node a number; nodes of the same number share a layer, and layers are in the order of numbers.
        edges: A number for each pair of nodes, which is summed up where several pairs become one.
        limit: Most nodes, one at least for each layer; those of a layer that do not fit in become one.
        weights: Which nodes are kept, those of the largest numbers first; by default the first nodes.
    """
    layer_of_rank = {rank: number for number, rank in enumerate(sorted(set(ranks)))}
    layers = [layer_of_rank[rank] for rank in ranks]
    merged = _merged(layers, limit, weights)
    place = {node: number for number, nodes in enumerate(merged) for node in nodes}
    summed: Counter[tuple[int, int]] = Counter()
    for (before, after), count in edges.items():
        if place[before] != place[after]:
            summed[place[before], place[after]] += count
    ordered = _ordered([layers[nodes[0]] for nodes in merged], summed)
    new_place = {number: new for new, (number, _, _) in enumerate(ordered)}
    return Drawing(
        [DrawnNode(merged[number], layer, order) for number, layer, order in ordered],
        {(new_place[before], new_place[after]): count for (before, after), count in summed.items()},
        len(layer_of_rank),
    )


def _merged(layers: Sequence[int], limit: int, weights: Sequence[int] | None) -> list[list[int]]:
    """Return the nodes of the graph for which each node of the drawing stands."""
    if len(layers) <= limit:
        return [[node] for node in range(len(layers))]
    layer_count = max(layers) + 1
    if layer_count >= limit:  # several layers become one node
        room, rest_of = 0, [layer * limit // layer_count for layer in range(layer_count)]
    else:
        room, rest_of = limit - layer_count, list(range(layer_count))
    by_weight = sorted(range(len(layers)), key=lambda node: (-(weights[node] if weights else 0), node))
    kept = set(by_weight[:room])
    rest: dict[int, list[int]] = {}
    for node in range(len(layers)):
        if node not in kept:
            rest.setdefault(rest_of[layers[node]], []).append(node)
    return [*([node] for node in sorted(kept)), *rest.values()]


def _ordered(layers: Sequence[int], edges: Iterable[tuple[int, int]]) -> list[tuple[int, int, int]]:
    """Return the nodes as (node, layer, order in it), layer by layer.

    Barycentre sweeps (Sugiyama, Tagawa and Toda 1981): each layer in turn is sorted by the mean place of the neighbours
    of its nodes, downwards and upwards by turns.
    """
    in_layer: dict[int, list[int]] = {}
    for node, layer in enumerate(layers):
        in_layer.setdefault(layer, []).append(node)
    before: list[list[int]] = [[] for _ in layers]
    after: list[list[int]] = [[] for _ in layers]
    for source, target in edges:
        before[target].append(source)
        after[source].append(target)
    place = [0.0] * len(layers)
    for nodes in in_layer.values():
        _set_places(nodes, place)
    for sweep in range(_SWEEPS):
        neighbours = after if sweep % 2 else before
        for layer in sorted(in_layer, reverse=bool(sweep % 2)):
            nodes = in_layer[layer]
            if len(nodes) > 1:
                nodes.sort(key=lambda node: _mean_place(neighbours[node], place, place[node]))
                _set_places(nodes, place)
    return [(node, layer, order) for layer in sorted(in_layer) for order, node in enumerate(in_layer[layer])]


def _set_places(nodes: Sequence[int], place: list[float]) -> None:
    """Spread the nodes of a layer over the same width as those of every other."""
    for order, node in enumerate(nodes):
        place[node] = (order + 0.5) / len(nodes)


def _mean_place(neighbours: Sequence[int], place: Sequence[float], own: float) -> float:
    return sum([place[node] for node in neighbours]) / len(neighbours) if neighbours else own
