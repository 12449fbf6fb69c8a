"""Dependencies of a plan, as pairs of jobs and barriers with few rows.

Jobs that wait for the same several jobs share a *group*: the matches of one pattern, the producers of one file, one
list. A group with enough waiting jobs becomes a barrier. The groups of one job are made disjoint, so that each
dependency occurs once. Pairs of a group are never enumerated: time and memory grow with the number of jobs and
entries, not with the number of pairs.
"""

from array import array
from collections.abc import Iterable, Sequence
from itertools import chain

from attrs import define, field

from torc_framework.models.barriers import Barrier


@define
class DependencyBuilder:
    """Collector of dependencies, which it returns as pairs and barriers."""

    _groups: list[tuple[int, ...]] = field(factory=list)
    _group_ids: dict[tuple[int, ...], int] = field(factory=dict)
    _sets: dict[int, frozenset[int]] = field(factory=dict)
    _disjoint: dict[tuple[int, ...], tuple[int, ...]] = field(factory=dict)
    _waiting: dict[int, list[int]] = field(factory=dict)
    _pairs: "array[int]" = field(factory=lambda: array("i"))
    _own: dict[int, int] = field(factory=dict)

    def add_pair(self, job: int, on: int) -> None:
        """Add a job that waits for exactly one other job."""
        self._pairs.extend((job, on))

    def add(self, job: int, upstream: Sequence[Sequence[int]]) -> None:
        """Add a job that waits for all jobs of all sequences, except itself."""
        if len(upstream) == 1 and len(upstream[0]) == 1:
            self._add_pairs(job, upstream[0])
            return
        singles: list[int] = []
        groups: list[int] = []
        for positions in upstream:
            if len(positions) == 1:
                singles.append(positions[0])
            elif positions:
                groups.append(self._group(tuple(positions)))
        if not groups:
            self._add_pairs(job, dict.fromkeys(singles))
            return
        covered: list[frozenset[int]] = []
        for group in self._parts(tuple(dict.fromkeys(groups))):
            members = self._set(group)
            covered.append(members)
            if job in members:
                self._add_own_group(job, group)
            else:
                self._waiting.setdefault(group, []).append(job)
        self._add_pairs(job, [on for on in dict.fromkeys(singles) if not any(on in members for members in covered)])

    def result(self) -> tuple["array[int]", list[Barrier]]:
        """Return the pairs and the barriers; the pairs are a job, the job it waits for, then those of the next pair."""
        pairs, barriers = self._pairs, []
        for group, jobs in self._waiting.items():
            members = self._groups[group]
            if len(members) * len(jobs) > len(members) + len(jobs):
                barriers.append(Barrier(list(members), jobs))
            else:
                pairs.extend(chain.from_iterable((job, on) for job in jobs for on in members))
        return pairs, barriers

    def _add_pairs(self, job: int, awaited: Iterable[int]) -> None:
        self._pairs.extend(chain.from_iterable((job, on) for on in awaited if on != job))

    def _group(self, positions: tuple[int, ...]) -> int:
        found = self._group_ids.get(positions)
        if found is None:
            found = self._group_ids[positions] = len(self._groups)
            self._groups.append(positions)
        return found

    def _set(self, group: int) -> frozenset[int]:
        found = self._sets.get(group)
        if found is None:
            found = self._sets[group] = frozenset(self._groups[group])
        return found

    def _parts(self, groups: tuple[int, ...]) -> tuple[int, ...]:
        """Return disjoint groups with the same jobs; the largest group is not split."""
        if len(groups) == 1:
            return groups
        if groups not in self._disjoint:
            parts: list[int] = []
            taken: list[frozenset[int]] = []
            for group in sorted(groups, key=lambda one: -len(self._groups[one])):
                positions = self._groups[group]
                left = tuple([on for on in positions if not any(on in members for members in taken)])
                if left:
                    part = group if len(left) == len(positions) else self._group(left)
                    parts.append(part)
                    taken.append(self._set(part))
            self._disjoint[groups] = tuple(parts)
        return self._disjoint[groups]

    def _add_own_group(self, job: int, group: int) -> None:
        """Add the dependencies of jobs that are in the group for which they wait: each waits for the others.

        Several such jobs are a cycle, which is an error; the dependencies of two of them show it.
        """
        self._own[group] = self._own.get(group, 0) + 1
        if self._own[group] <= 2:
            others = tuple([on for on in self._groups[group] if on != job])
            self._waiting.setdefault(self._group(others), []).append(job)
