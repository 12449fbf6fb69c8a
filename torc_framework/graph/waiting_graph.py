"""The jobs that wait for others, with their dependencies, in arrays: a million jobs take about 30 MiB."""

from array import array
from bisect import bisect_left
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import accumulate
from typing import Final

from torc_framework.models.waiting_jobs import GroupMembers, JobClass, WaitingJobs

NOTHING: Final = 2**63 - 1
"""The value of a job that depends on no job with a value; all others are less."""
_UNKNOWN: Final = -1
_UNDER_WAY: Final = -2


class WaitingGraph:
    """Jobs that are blocked or canceled, and the values of the jobs that they depend on.

    Args:
        pages: The jobs that wait.
        members: The members of dependency groups.
        value: Returns the value of a job that does not wait itself, from its id and its class: a number from 0, or None
            for a job that does not count.
    """

    def __init__(
        self,
        pages: Iterable[WaitingJobs],
        members: Iterable[GroupMembers],
        value: Callable[[int, JobClass], int | None],
    ) -> None:
        self.jobs: array[int] = array("q")
        """Their ids, ascending."""
        self.is_canceled = bytearray()
        """For each of them, 1 if it is canceled."""
        self.values: dict[int, int] = {}
        """The values of the jobs that do not wait, by id."""
        self._ends: array[int] = array("q", [0])
        self._upstream: array[int] = array("q")
        self._groups: dict[int, array[int]] = {}
        for page in pages:
            canceled = set(page.canceled)
            self.jobs.extend(page.jobs)
            self.is_canceled += bytes(map(canceled.__contains__, page.jobs))
            self._ends.extend([*accumulate(page.counts, initial=self._ends[-1])][1:])
            self._upstream.extend(page.upstream)
            self._add_values(page, value)
        for part in members:
            for group, job in zip(part.members[::2], part.members[1::2], strict=True):
                self._groups.setdefault(-group, array("q")).append(job)
            self._add_values(part, value)

    def _add_values(self, page: WaitingJobs | GroupMembers, value: Callable[[int, JobClass], int | None]) -> None:
        for job, place in zip(page.awaited[::2], page.awaited[1::2], strict=True):
            if (found := value(job, page.classes[place])) is not None:
                self.values[job] = found

    def place(self, job_id: int) -> int | None:
        """Return the position of a job in `jobs`; None if it does not wait."""
        jobs = self.jobs
        if not jobs:
            return None
        place = job_id - jobs[0]  # the ids of most workflows follow each other
        if not (0 <= place < len(jobs) and jobs[place] == job_id):
            place = bisect_left(jobs, job_id)
        return place if place < len(jobs) and jobs[place] == job_id else None

    def _before(self, node: int) -> Sequence[int]:
        """Return what a job at a position, or a group with its negative id, depends on."""
        if node < 0:
            return self._groups.get(node, ())
        return self._upstream[self._ends[node] : self._ends[node + 1]]

    def dependencies(self, job_id: int) -> Iterator[int]:
        """Yield the ids of the jobs that a job depends on, itself or by groups, each once; completed ones may lack."""
        seen: set[int] = set()
        place = self.place(job_id)
        for node in () if place is None else self._before(place):
            for job in self._before(node) if node < 0 else (node,):
                if job not in seen:
                    seen.add(job)
                    yield job

    def ancestors(self, job_id: int) -> Iterator[int]:
        """Yield the ids of the jobs with values that a job depends on, directly or through canceled jobs, each once."""
        seen, waiting = {job_id}, [job_id]
        groups: set[int] = set()
        while waiting:
            for node in self._before_job(waiting.pop()):
                if node < 0 and node in groups:
                    continue
                groups.add(node)
                for job in self._before(node) if node < 0 else (node,):
                    if job in seen:
                        continue
                    seen.add(job)
                    if job in self.values:
                        yield job
                    elif (place := self.place(job)) is not None and self.is_canceled[place]:
                        waiting.append(job)

    def _before_job(self, job_id: int) -> Sequence[int]:
        place = self.place(job_id)
        return () if place is None else self._before(place)

    def least_values(self, *, odd_last_of_canceled: bool = False) -> "array[int]":
        """Return for each of `jobs` the least value of the jobs that it depends on, directly or through others.

        Args:
            odd_last_of_canceled: Of the values of what a canceled job depends on itself, the odd ones count only if
                there are no others.
        """
        return _LeastValues(self, odd_last_of_canceled=odd_last_of_canceled).found


class _LeastValues:
    """Finds the least values, those of what a job depends on before its own; visits each job and each group once."""

    def __init__(self, graph: WaitingGraph, *, odd_last_of_canceled: bool) -> None:
        self._graph = graph
        self._odd_last = odd_last_of_canceled
        self.found: array[int] = array("q", [_UNKNOWN]) * len(graph.jobs)
        self._of_groups: dict[int, int] = {}
        self._take_over()
        for place, known in enumerate(self.found):
            if known == _UNKNOWN:
                self._visit(place)

    def _take_over(self) -> None:
        """Give the jobs that depend on one job with a value, or on one job before them in the order of ids, its value.

        Most jobs of many workflows are of this kind.
        """
        graph, found = self._graph, self.found
        jobs, ends, upstream, values = graph.jobs, graph._ends, graph._upstream, graph.values
        end = distance = 0
        for place in range(len(jobs)):
            start, end = end, ends[place + 1]
            if end - start != 1:
                continue
            other = upstream[start]
            value = values.get(other)
            if value is None:
                before = place - distance  # jobs side by side mostly depend on jobs side by side
                if before < 0 or jobs[before] != other:
                    before = bisect_left(jobs, other, 0, place)
                    if before == place or jobs[before] != other:
                        continue
                    distance = place - before
                value = found[before]
            found[place] = value

    def _visit(self, start: int) -> None:
        stack = [start]
        while stack:
            node = stack[-1]
            state = self._state(node)
            if state >= 0:
                stack.pop()
                continue
            if unknown := self._combine(node):
                self._set(node, _UNDER_WAY)
                stack += unknown
            else:
                stack.pop()

    def _state(self, node: int) -> int:
        return self._of_groups.get(node, _UNKNOWN) if node < 0 else self.found[node]

    def _set(self, node: int, value: int) -> None:
        if node < 0:
            self._of_groups[node] = value
        else:
            self.found[node] = value

    def _combine(self, node: int) -> list[int]:
        """Set the value of a node from what it depends on; return what has no value yet instead, if there is such.

        What is under way depends on the node itself: the pages of the graph were read one after the other, and a change
        between two of them can make a circle.
        """
        least = least_even = NOTHING
        unknown: list[int] = []
        values, place_of = self._graph.values, self._graph.place
        for other in self._graph._before(node):
            value = values.get(other)
            if value is None:
                place = other if other < 0 else place_of(other)
                if place is None:
                    continue
                value = self._state(place)
                if value == _UNKNOWN:
                    unknown.append(place)
                if value < 0:
                    continue
            least = min(least, value)
            if not value & 1:
                least_even = min(least_even, value)
        if unknown:
            return unknown
        prefers_even = self._odd_last and node >= 0 and self._graph.is_canceled[node] and least_even != NOTHING
        self._set(node, least_even if prefers_even else least)
        return []
