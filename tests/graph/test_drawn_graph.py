"""Tests of the drawing of a graph by groups: nodes, edges, layers, and what does not fit in."""

import random
from collections import Counter

from hypothesis import given
from hypothesis import strategies as st

from torc_framework.graph.drawn_graph import (
    MOST_STAGED_NODES,
    drawing_of,
    group_label,
    grouped_graph,
)
from torc_framework.models.barriers import Barrier


def test_labels() -> None:
    assert group_label("train_lr0.01_12") == "train_lr#.#_#"


def test_groups_stages_and_edges() -> None:
    names = ["prepare", "train_1", "train_2", "eval_1", "eval_2", "report"]
    graph = grouped_graph(names, [(1, 0), (2, 0), (3, 1), (4, 2)], [Barrier([3, 4], [5])])
    assert [(node.label, node.stage, node.count) for node in graph.nodes] == [
        ("prepare", 1, 1),
        ("train_#", 2, 2),
        ("eval_#", 3, 2),
        ("report", 4, 1),
    ]
    assert graph.edges == {(0, 1): 2, (1, 2): 2, (2, 3): 2}
    assert graph.edge_count == 6
    assert graph.stage_count == 4
    assert (graph.nodes[1].first_name, graph.nodes[1].last_name) == ("train_1", "train_2")


def test_a_group_has_a_node_for_each_of_its_stages() -> None:
    graph = grouped_graph(["a_1", "b_1", "a_2", "b_2"], [(1, 0), (2, 1), (3, 2)])
    assert [(node.label, node.stage) for node in graph.nodes] == [("a_#", 1), ("b_#", 2), ("a_#", 3), ("b_#", 4)]


def test_a_long_chain_is_one_node() -> None:
    count = MOST_STAGED_NODES + 1
    graph = grouped_graph([f"step_{n}" for n in range(count)], [(n + 1, n) for n in range(count - 1)])
    assert [(node.count, node.inner) for node in graph.nodes] == [(count, count - 1)]
    assert [(node.stage, node.last_stage) for node in graph.nodes] == [(1, count)]
    assert graph.edges == {}
    assert graph.stage_count == count


def test_a_cycle_is_drawn() -> None:
    graph = grouped_graph(["a", "b", "c"], [(0, 1), (1, 0), (2, 1)])
    assert graph.edges == {(1, 0): 1, (0, 1): 1, (1, 2): 1}


def test_nodes_that_do_not_fit_in_are_one_of_their_layer() -> None:
    drawing = drawing_of([0, 1, 1, 1, 2], {(0, 1): 1, (0, 2): 2, (0, 3): 3, (1, 4): 1, (3, 4): 1}, 4, [1, 5, 1, 1, 1])
    assert [(list(node.members), node.layer) for node in drawing.nodes] == [([0], 0), ([1], 1), ([2, 3], 1), ([4], 2)]
    assert drawing.edges == {(0, 1): 1, (0, 2): 5, (1, 3): 1, (2, 3): 1}


def test_neighbours_are_near_each_other() -> None:
    drawing = drawing_of([0, 0, 0, 1, 1, 1], {(0, 5): 1, (1, 4): 1, (2, 3): 1}, 10)
    order = {node.members[0]: node.order for node in drawing.nodes}
    assert [order[5], order[4], order[3]] == [order[0], order[1], order[2]]


GRAPHS = st.integers(1, 30).flatmap(
    lambda count: st.tuples(
        st.lists(st.integers(0, 5), min_size=count, max_size=count),
        st.dictionaries(
            st.tuples(st.integers(0, count - 1), st.integers(0, count - 1)).filter(lambda edge: edge[0] != edge[1]),
            st.integers(1, 5),
            max_size=60,
        ),
        st.integers(1, 40),
    )
)


@given(GRAPHS)
def test_a_drawing_has_every_node_and_every_edge_once(graph: tuple[list[int], dict[tuple[int, int], int], int]) -> None:
    ranks, edges, limit = graph
    drawing = drawing_of(ranks, edges, limit)
    assert len(drawing.nodes) <= max(limit, 1)
    assert sorted(member for node in drawing.nodes for member in node.members) == list(range(len(ranks)))
    assert drawing == drawing_of(ranks, edges, limit)
    places = Counter((node.layer, node.order) for node in drawing.nodes)
    assert set(places.values()) == {1}
    if limit >= len(ranks):
        assert sum(drawing.edges.values()) == sum(edges.values())


def test_ten_thousand_nodes_are_drawn() -> None:
    some = random.Random(1)
    ranks = [number // 200 for number in range(10_000)]
    edges = {(some.randrange(200) + 200 * (n // 200 - 1), n): 1 for n in range(200, 10_000)}
    assert len(drawing_of(ranks, edges, 10_000).nodes) == 10_000


def test_names_of_several_lines_have_their_own_labels() -> None:
    assert grouped_graph(["a_1\nb", "c_2", "a_3\nb"], []).labels == ["a_#\nb", "c_#"]
