"""Finds jobs that cannot be put in order because their dependencies have a cycle."""

from collections.abc import Iterable


def nodes_in_or_behind_cycles(count: int, edges: Iterable[tuple[int, int]]) -> list[int]:
    """Return the nodes of cycles, and those that wait for them.

    Args:
        count: Nodes are 0 to ``count - 1``.
        edges: Pairs (node, node that it waits for).
    """
    waits = [0] * count
    dependents: list[list[int]] = [[] for _ in range(count)]
    for node, on in edges:
        waits[node] += 1
        dependents[on].append(node)
    free = [node for node in range(count) if not waits[node]]
    for node in free:
        for dependent in dependents[node]:
            waits[dependent] -= 1
            if not waits[dependent]:
                free.append(dependent)
    return [node for node in range(count) if waits[node]]
