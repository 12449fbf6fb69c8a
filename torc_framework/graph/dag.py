"""The dependency graph of a workflow: order, levels, components, critical path.

Jobs are positions from 0. A barrier is a node of its own between its N upstream and M downstream jobs, so that time and
memory grow with jobs + pairs + sizes of barriers, not with M x N.
"""

from bisect import bisect_left
from collections.abc import Iterable, Sequence
from functools import cached_property
from operator import itemgetter

from torc_framework.models.barriers import Barrier
from torc_framework.models.plan import Plan


class Graph:
    """Dependency graph of jobs.

    Args:
        count: Number of jobs.
        pairs: (job, job it waits for).
        barriers: Shared dependencies.
    """

    def __init__(self, count: int, pairs: Sequence[tuple[int, int]], barriers: Sequence[Barrier] = ()) -> None:
        self.count = count
        self.barriers = barriers
        nodes = count + len(barriers)
        self._after: list[list[int] | None] = [None] * nodes
        self._waits = [0] * nodes
        for job, on in pairs:
            self._edge(on, job)
        for node, barrier in enumerate(barriers, count):
            for on in barrier.upstream:
                self._edge(on, node)
            for job in barrier.downstream:
                self._edge(node, job)

    @classmethod
    def of_plan(cls, plan: Plan) -> "Graph":
        """Return the graph of a plan."""
        return cls(len(plan.jobs), plan.dependencies, plan.barriers)

    def _edge(self, before: int, after: int) -> None:
        edges = self._after[before]
        if edges is None:
            self._after[before] = [after]
        else:
            edges.append(after)
        self._waits[after] += 1

    @cached_property
    def _order(self) -> list[int]:
        """Nodes in topological order; nodes on or after a cycle are missing."""
        waits = self._waits.copy()
        ordered = [node for node, count in enumerate(waits) if not count]
        for node in ordered:
            for after in self._after[node] or ():
                waits[after] -= 1
                if not waits[after]:
                    ordered.append(after)
        return ordered

    @property
    def is_acyclic(self) -> bool:
        """Whether there is no cycle."""
        return len(self._order) == len(self._waits)

    def cycles(self, limit: int = 10) -> list[list[int]]:
        """Return cycles without common jobs, at most ``limit``; each job waits for the next one.

        Up to the limit, each set of jobs that wait for one another has at least one of the cycles.
        """
        stuck = set(range(len(self._waits))).difference(self._order)
        before: dict[int, list[int]] = {node: [] for node in stuck}
        for node in stuck:
            for after in self._after[node] or ():
                before[after].append(node)
        found: list[list[int]] = []
        while stuck and len(found) < limit:
            stuck = _after_cycles(stuck, before)
            if not stuck:
                break
            cycle = _shortest_cycle(min(stuck), stuck, before)
            stuck -= set(cycle)
            found.append([node for node in cycle if node < self.count])
        return found

    @cached_property
    def levels(self) -> list[int]:
        """For each job the length of the longest chain of jobs before it; 0 for jobs without dependencies.

        Defined for acyclic graphs only.
        """
        level = [0] * len(self._waits)
        for node in self._order:
            below = level[node] + (node < self.count)
            for after in self._after[node] or ():
                level[after] = max(level[after], below)
        return level[: self.count]

    @cached_property
    def components(self) -> list[list[int]]:
        """Connected components: sets of jobs without dependencies between them, each in order of position."""
        root = list(range(len(self._waits)))

        def find(node: int) -> int:
            while root[node] != node:
                root[node] = root[root[node]]
                node = root[node]
            return node

        for node, edges in enumerate(self._after):
            for after in edges or ():
                root[find(after)] = find(node)
        members: dict[int, list[int]] = {}
        for job in range(self.count):
            members.setdefault(find(job), []).append(job)
        return list(members.values())

    def critical_path(self, weights: Sequence[float] | None = None) -> list[int]:
        """Return the chain of jobs with the longest duration, first job first.

        Args:
            weights: Duration of each job; by default all are equal.
        """
        total = [0.0] * len(self._waits)
        came_from = [-1] * len(self._waits)
        end, longest = -1, -1.0
        for node in self._order:
            if node < self.count:
                total[node] += 1.0 if weights is None else weights[node]
            if node < self.count and total[node] > longest:
                end, longest = node, total[node]
            for after in self._after[node] or ():
                if came_from[after] < 0 or total[node] > total[after]:
                    total[after], came_from[after] = total[node], node
        path: list[int] = []
        while end >= 0:
            path += [end] if end < self.count else []
            end = came_from[end]
        return path[::-1]


def job_levels(count: int, pairs: Sequence[tuple[int, int]], barriers: Sequence[Barrier] = ()) -> list[int]:
    """Return the levels of a graph, faster than `Graph.levels` where each job waits for jobs before it only.

    Args:
        count: Number of jobs.
        pairs: (job, job it waits for); faster if the jobs are ascending.
        barriers: Shared dependencies.
    """
    levels = _levels_in_order(count, pairs, barriers)
    return Graph(count, pairs, barriers).levels if levels is None else levels


def _levels_in_order(count: int, pairs: Sequence[tuple[int, int]], barriers: Sequence[Barrier]) -> list[int] | None:
    """Return the levels, in one pass over the jobs; None if it is not the case that each waits for earlier ones."""
    last = 0
    for job, on in pairs:
        if on >= job or job < last:
            return None
        last = job
    shared = sorted(
        ((min(each.downstream), each) for each in barriers if each.upstream and each.downstream), key=itemgetter(0)
    )
    if any(max(barrier.upstream) >= first for first, barrier in shared):
        return None
    levels, done = [0] * count, 0
    for first, barrier in shared:  # at its turn the levels of its upstream jobs, which are before ``first``, are known
        end = bisect_left(pairs, (first, -1), done)
        _raise_levels(levels, pairs[done:end])
        below = max([levels[job] for job in barrier.upstream]) + 1
        for job in barrier.downstream:
            levels[job] = max(levels[job], below)
        done = end
    _raise_levels(levels, pairs[done:])
    return levels


def _raise_levels(levels: list[int], pairs: Iterable[tuple[int, int]]) -> None:
    for job, on in pairs:
        below = levels[on] + 1
        if levels[job] < below:  # noqa: PLR1730 - max() would take twice as long, and there are a million of them
            levels[job] = below


def _after_cycles(nodes: set[int], before: dict[int, list[int]]) -> set[int]:
    """Return the nodes that are on a cycle or after one, by removing nodes without predecessors repeatedly."""
    nodes = set(nodes)
    after: dict[int, list[int]] = {node: [] for node in nodes}
    waits = {}
    for node in nodes:
        inside = [on for on in before[node] if on in nodes]
        waits[node] = len(inside)
        for on in inside:
            after[on].append(node)
    loose = [node for node, count in waits.items() if not count]
    for node in loose:
        nodes.discard(node)
        for next_node in after[node]:
            waits[next_node] -= 1
            if not waits[next_node]:
                loose.append(next_node)
    return nodes


def _shortest_cycle(start: int, nodes: set[int], before: dict[int, list[int]]) -> list[int]:
    """Return a cycle among ``nodes``, each of which has a predecessor among them.

    A walk backwards from ``start`` reaches a node a second time. The shortest cycle through that node is returned,
    because it makes the shortest message.
    """
    seen: set[int] = set()
    node = start
    while node not in seen:
        seen.add(node)
        node = min(on for on in before[node] if on in nodes)
    return _shortest_cycle_through(node, nodes, before)


def _shortest_cycle_through(node: int, nodes: set[int], before: dict[int, list[int]]) -> list[int]:
    """Return the shortest cycle through ``node``, breadth first."""
    came_from: dict[int, int] = {}
    queue = [node]
    for current in queue:
        for on in before[current]:
            if on == node:
                path = [current]
                while path[-1] != node:
                    path.append(came_from[path[-1]])
                return path[::-1]
            if on in nodes and on not in came_from:
                came_from[on] = current
                queue.append(on)
    raise AssertionError("the node is on a cycle")
