"""Order, levels, components, cycles and critical path, without enumerating the pairs of barriers."""

import itertools

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from strategies import graphs

from torc_framework.graph import Graph
from torc_framework.graph.dag import job_levels
from torc_framework.models.barriers import Barrier

Pairs = list[tuple[int, int]]


def longest_chains(count: int, pairs: Pairs) -> list[int]:
    """The levels, by the definition."""
    level = [0] * count
    for _ in range(count):
        for job, on in pairs:
            level[job] = max(level[job], level[on] + 1)
    return level


@given(graphs())
def test_levels_are_the_longest_chains(graph: tuple[int, Pairs]) -> None:
    count, pairs = graph
    made = Graph(count, pairs)
    assert made.is_acyclic
    assert made.cycles() == []
    assert made.levels == longest_chains(count, pairs)
    assert job_levels(count, sorted(pairs)) == job_levels(count, pairs) == made.levels


@settings(deadline=None)
@given(graphs(), st.data())
def test_a_barrier_means_all_its_pairs(graph: tuple[int, Pairs], data: st.DataObject) -> None:
    """Levels, components and critical path are those of the graph that has every pair."""
    count, pairs = graph
    middle = data.draw(st.integers(0, count))
    upstream = data.draw(st.lists(st.integers(0, max(middle - 1, 0)), unique=True, max_size=5)) if middle else []
    downstream = data.draw(st.lists(st.integers(middle, count - 1), unique=True, max_size=5)) if middle < count else []
    barriers = [Barrier(upstream, downstream)] if upstream and downstream else []
    every = pairs + [pair for b in barriers for pair in itertools.product(b.downstream, b.upstream)]
    with_barrier, without = Graph(count, pairs, barriers), Graph(count, every)
    assert with_barrier.levels == without.levels
    assert with_barrier.components == without.components
    assert len(with_barrier.critical_path()) == len(without.critical_path()) == max(without.levels) + 1


@given(graphs(), st.data())
def test_the_critical_path_is_a_chain_and_none_is_longer(graph: tuple[int, Pairs], data: st.DataObject) -> None:
    count, pairs = graph
    weights = data.draw(st.lists(st.integers(1, 100), min_size=count, max_size=count))
    path = Graph(count, pairs).critical_path(weights)
    assert all((later, earlier) in pairs for earlier, later in itertools.pairwise(path))
    total = list(weights)
    for job in range(count):  # a job waits only for earlier ones
        total[job] += max((total[on] for one, on in pairs if one == job), default=0)
    assert sum(weights[job] for job in path) == max(total)


@given(graphs(), st.lists(st.tuples(st.sets(st.integers(0, 12)), st.sets(st.integers(0, 12))), max_size=4))
def test_levels_in_one_pass_are_those_of_the_graph(
    graph: tuple[int, Pairs], shared: list[tuple[set[int], set[int]]]
) -> None:
    """Also with barriers in any order, some without jobs on one side; with a cycle all levels are 0."""
    count, pairs = graph
    barriers = [
        Barrier([job for job in upstream if job < count], [job for job in downstream if job < count])
        for upstream, downstream in shared
    ]
    made = Graph(count, sorted(pairs), barriers)
    assert job_levels(count, sorted(pairs), barriers) == made.levels


@given(st.integers(1, 8), st.data())
def test_every_cycle_is_one(count: int, data: st.DataObject) -> None:
    """Each job of a reported cycle waits for the next; cycles are reported exactly when there are any."""
    job = st.integers(0, count - 1)
    pairs = data.draw(st.lists(st.tuples(job, job), unique=True, max_size=20))
    graph = Graph(count, pairs)
    cycles = graph.cycles()
    assert bool(cycles) == (not graph.is_acyclic)
    for cycle in cycles:
        assert len(set(cycle)) == len(cycle)
        assert all(step in pairs for step in zip(cycle, [*cycle[1:], cycle[0]], strict=True))
    jobs = [one for cycle in cycles for one in cycle]
    assert len(set(jobs)) == len(jobs)


def test_a_cycle_through_barriers_names_only_jobs() -> None:
    graph = Graph(4, [(0, 3)], [Barrier([0, 1], [2, 3])])
    assert graph.cycles() == [[0, 3]]


def test_the_number_of_cycles_can_be_limited() -> None:
    pairs = [pair for n in range(0, 40, 2) for pair in ((n, n + 1), (n + 1, n))]
    assert len(Graph(40, pairs).cycles(limit=7)) == 7


def test_components_keep_the_order_of_jobs() -> None:
    assert Graph(5, [(4, 0), (3, 1)]).components == [[0, 4], [1, 3], [2]]


def test_an_empty_graph() -> None:
    graph = Graph(0, [])
    assert (graph.levels, graph.components, graph.critical_path(), graph.cycles()) == ([], [], [], [])
    assert graph.is_acyclic


@pytest.mark.parametrize("width", [20_000])
def test_wide_barriers_and_long_chains_are_no_trouble(width: int) -> None:
    """400 million pairs as 40,000 entries; a chain of 20,000 without recursion."""
    wide = Graph(2 * width, [], [Barrier(list(range(width)), list(range(width, 2 * width)))])
    assert set(wide.levels) == {0, 1}
    assert len(wide.components) == 1
    chain = Graph(width, [(n, n - 1) for n in range(1, width)])
    assert chain.levels[-1] == width - 1
    assert len(chain.critical_path()) == width
    assert len(Graph(width, [(n, (n - 1) % width) for n in range(width)]).cycles()[0]) == width
