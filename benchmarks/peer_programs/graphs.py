"""The graphs that the peers run, and the command line of their programs: GRAPH COUNT SLOTS COMMAND."""

import sys
from typing import NamedTuple


class Work(NamedTuple):
    """What a peer is to run.

    Attributes:
        parents: For each job the jobs that it waits for; none comes after it.
        slots: Jobs at a time.
        command: What each job runs, in a shell.
    """

    parents: list[list[int]]
    slots: int
    command: str


def parents_of(graph: str, count: int) -> list[list[int]]:
    """Return the parents of each job of a graph of ``benchmarks/specs.py``.

    Args:
        count: Jobs; of ``barrier`` the jobs of one of the two wide levels.
    """
    if graph == "independent":
        return [[] for _ in range(count)]
    if graph == "chain":
        return [[number - 1] if number else [] for number in range(count)]
    first, second = list(range(count)), list(range(count + 1, 2 * count + 1))
    return [*([] for _ in first), first, *([count] for _ in second), second]


def work() -> Work:
    """Return what the command line asks for."""
    graph, count, slots, command = sys.argv[1:]
    return Work(parents_of(graph, int(count)), int(slots), command)
