"""Whether dependencies have a cycle, in eight bytes for each dependency and twelve for each job."""

from array import array
from collections.abc import Iterator, Sequence
from itertools import accumulate

from torc_framework.models.barriers import Barrier


def is_acyclic(count: int, pairs: Sequence[int], barriers: Sequence[Barrier]) -> bool:
    """Return whether no job waits for itself, directly or through others.

    Args:
        count: Number of jobs.
        pairs: A job, the job for which it waits, then the next pair.
        barriers: Shared dependencies.
    """
    nodes = count + len(barriers)
    waits = array("i", bytes(4 * nodes))
    starts = array("i", bytes(4 * (nodes + 1)))
    for node, on in _edges(count, pairs, barriers):
        waits[node] += 1
        starts[on + 1] += 1
    starts = array("i", accumulate(starts))
    dependents = array("i", bytes(4 * starts[-1]))
    places = array("i", starts)
    for node, on in _edges(count, pairs, barriers):
        dependents[places[on]] = node
        places[on] += 1
    free = array("i", (node for node in range(nodes) if not waits[node]))
    for node in free:  # it grows meanwhile
        for dependent in dependents[starts[node] : starts[node + 1]]:
            waits[dependent] -= 1
            if not waits[dependent]:
                free.append(dependent)
    return len(free) == nodes


def _edges(count: int, pairs: Sequence[int], barriers: Sequence[Barrier]) -> Iterator[tuple[int, int]]:
    """Yield each node with one for which it waits; a barrier is a node after the jobs."""
    numbers = iter(pairs)
    yield from zip(numbers, numbers, strict=True)
    for node, barrier in enumerate(barriers, count):
        yield from ((node, on) for on in barrier.upstream)
        yield from ((job, node) for job in barrier.downstream)
