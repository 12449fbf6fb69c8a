"""Checks that a plan is consistent: names, positions, shells, and the order of its jobs.

Plans from specs have passed more thorough checks already; these protect the store from other clients. Of the jobs that
have passed, only numbers stay in memory.
"""

from array import array
from bisect import bisect_left
from collections.abc import Iterable, Iterator, Sequence
from itertools import chain, islice, repeat
from operator import add, gt, lt, mul
from typing import Final

from torc_framework.models.executor_options import ExecutorOptions
from torc_framework.models.plan_parts import JobColumns, PlanHead, PlanSlice
from torc_framework.store.errors import RuleError
from torc_framework.store.job_state.dependency_cycles import nodes_in_or_behind_cycles
from torc_framework.store.records.failure_rules import check_rules
from torc_framework.store.records.requirements import (
    DEFAULT_REQUIREMENTS,
    check_executor_options,
    check_shell,
    check_sort_method,
)

_LISTS: Final = {
    "input_files": "files",
    "output_files": "files",
    "input_user_data": "user_data",
    "output_user_data": "user_data",
}
_SINGLES: Final = {
    "resource_requirements": "resource_requirements",
    "failure_handler": "failure_handlers",
    "scheduler": "slurm_schedulers",
}
_COLUMNS: Final = JobColumns.__struct_fields__
_GROUP: Final = 1 << 17
"""Numbers of a group of `_DistinctNumbers`; it takes eight MiB while it is counted."""
_SORTED_AT_ONCE: Final = 10_000
"""Fewest numbers that are worth the search for the bounds of all groups."""
_NAMES_SHOWN: Final = 10


class _DistinctNumbers:
    """Numbers of 64 bits, and whether one of them occurs twice; each takes eight bytes.

    Args:
        low: The smallest number.
        high: What all numbers are below; they should be spread evenly in between.
        count: About how many there will be.
    """

    def __init__(self, low: int, high: int, count: int) -> None:
        groups = 1 + count // _GROUP
        self._bounds = [low + (high - low) * n // groups for n in range(1, groups)]
        self._groups = [array("q") for _ in range(groups)]
        self._new = array("q")

    def add(self, numbers: Iterable[int]) -> None:
        """Add numbers."""
        self._new.extend(numbers)
        if len(self._new) >= _SORTED_AT_ONCE:
            self._sort_in()

    def repeated(self) -> int:
        """Return how many numbers were added before."""
        self._sort_in()
        return sum(len(group) - len(set(group)) for group in self._groups)

    def _sort_in(self) -> None:
        """Move the new numbers to their groups."""
        ordered = array("q", sorted(self._new)) if self._bounds else self._new
        self._new = array("q")
        ends = [*(bisect_left(ordered, bound) for bound in self._bounds), len(ordered)]
        for group, start, end in zip(self._groups, [0, *ends], ends, strict=False):
            group.extend(ordered[start:end])


class PlanChecks:
    """The checks of one plan: of its head by `check_head`, of its slices while `checked` yields them.

    What is left to the database is to count repeated names if `may_repeat_names`: here, names are compared by hash.
    """

    def __init__(self, head: PlanHead) -> None:
        self._head = head
        self._pairs = array("i")
        """The dependencies, until their order is checked."""
        self._dependency_count = 0
        self._names = _DistinctNumbers(-(2**63), 2**63, head.job_count)
        self._shells: set[str | None] = {None}
        self._job_count = 0
        self._stuck: dict[int, str] | None = None
        """Jobs of a cycle or behind one, by position, with their names as far as known; None before the check."""

    def check_head(self) -> None:
        """Raise `RuleError` unless names are unique and all positions exist in what is not in slices."""
        head = self._head
        if not head.workflow.name:
            raise RuleError("the workflow has no name")
        check_sort_method(head.workflow.jobs_sort_method)
        check_shell(head.workflow.shell)
        for kind, records in (
            ("file", head.files),
            ("user data", head.user_data),
            ("resource requirements", head.resource_requirements),
            ("failure handler", head.failure_handlers),
        ):
            check_names(kind, (record.name for record in records), len(records))
        if any(record.name == DEFAULT_REQUIREMENTS for record in head.resource_requirements):
            raise RuleError("resource requirements must not be named 'default': every workflow has its own")
        for handler in head.failure_handlers:
            check_rules(f"failure handler {handler.name!r}: ", handler.rules)
        jobs, schedulers = head.job_count, len(head.slurm_schedulers)
        _check_positions("actions", chain.from_iterable(action.jobs or () for action in head.actions), jobs)
        _check_positions("actions", (a.scheduler for a in head.actions if a.scheduler is not None), schedulers)
        _check_positions("barriers", chain.from_iterable([*b.upstream, *b.downstream] for b in head.barriers), jobs)
        for barrier in head.barriers:
            if not barrier.upstream or not barrier.downstream:
                raise RuleError("barriers: one has no jobs on one side")
            if any(len(set(side)) != len(side) for side in (barrier.upstream, barrier.downstream)):
                raise RuleError("barriers: one lists a job twice")

    def checked(self, slices: Iterable[PlanSlice]) -> Iterator[PlanSlice]:
        """Yield the slices, each after its check.

        Raises:
            RuleError: a slice is inconsistent; or after the last one, the plan is not complete or the dependencies have
                a cycle.
        """
        for part in slices:
            if part.dependencies:
                self._check_dependencies(part.dependencies)
            if part.jobs is not None:
                if self._stuck is None:
                    self._check_order()
                self._check_jobs(part.jobs)
            yield part
        self._check_whole()

    def may_repeat_names(self) -> bool:
        """Return whether names of jobs may occur more than once; a difference of all names is certain."""
        return self._names.repeated() > 0

    def _check_dependencies(self, positions: Sequence[int]) -> None:
        if self._stuck is not None:
            raise RuleError("dependencies: they must come before the jobs")
        if len(positions) % 2:
            raise RuleError("dependencies: a slice ends in the middle of a pair")
        _check_positions("dependencies", positions, self._head.job_count)
        self._pairs.extend(positions)
        self._dependency_count += len(positions) // 2

    def _check_jobs(self, jobs: JobColumns) -> None:
        size = len(jobs.name)
        columns = {name: column for name in _COLUMNS if (column := getattr(jobs, name)) is not None}
        for name, column in columns.items():
            if len(column) != size:
                raise RuleError(f"jobs: a slice has {size} names and {len(column)} values of {name}")
        if self._job_count + size > self._head.job_count:
            raise RuleError(f"the plan has more jobs than the {self._head.job_count} that its head announces")
        if not all(jobs.name):
            raise RuleError("a job has no name")
        self._names.add(map(hash, jobs.name))
        shells = {*(jobs.shell or ())}
        for shell in shells - self._shells:
            check_shell(shell)
        self._shells |= shells
        check_options(jobs.name, jobs.executor_options or ())
        for name in _SINGLES.keys() & columns.keys():
            _check_positions(name, {*columns[name]} - {None}, len(getattr(self._head, _SINGLES[name])))
        for name in _LISTS.keys() & columns.keys():
            lists = [*filter(None, columns[name])]
            _check_positions(name, chain.from_iterable(lists), len(getattr(self._head, _LISTS[name])))
            if any(len(set(several)) != len(several) for several in lists if len(several) > 1):
                raise RuleError(f"{name}: a job lists one twice")
        if self._stuck:
            for position in self._stuck.keys() & range(self._job_count, self._job_count + size):
                self._stuck[position] = jobs.name[position - self._job_count]
        self._job_count += size

    def _check_order(self) -> None:
        """Find repeated dependencies, which are refused at once, and cycles, which are refused when names are known."""
        head, self._stuck = self._head, {}
        waiting, awaited = self._pairs[0::2], self._pairs[1::2]
        self._pairs = array("i")
        if _has_repeated_pair(waiting, awaited, head.job_count):
            raise RuleError("dependencies: a pair occurs twice")
        if all(map(gt, waiting, awaited)) and all(
            max(barrier.upstream) < min(barrier.downstream) for barrier in head.barriers
        ):
            return  # every job waits only for jobs before it in the list
        barrier_edges = [
            edge
            for node, barrier in enumerate(head.barriers, head.job_count)
            for edge in (*((node, job) for job in barrier.upstream), *((job, node) for job in barrier.downstream))
        ]
        edges = chain(zip(waiting, awaited, strict=True), barrier_edges)
        stuck = nodes_in_or_behind_cycles(head.job_count + len(head.barriers), edges)
        self._stuck = dict.fromkeys(islice((node for node in stuck if node < head.job_count), _NAMES_SHOWN), "")

    def _check_whole(self) -> None:
        head = self._head
        for kind, found, wanted in (
            ("dependencies", self._dependency_count, head.dependency_count),
            ("jobs", self._job_count, head.job_count),
        ):
            if found != wanted:
                raise RuleError(f"the plan has {found} {kind}, and its head announces {wanted}")
        if self._stuck:
            names = ", ".join(self._stuck.values())
            raise RuleError(f"the dependencies have a cycle; among its jobs or waiting for it: {names}")


def check_options(names: Sequence[str], options: Iterable[ExecutorOptions | None]) -> None:
    """Raise `RuleError` unless the options of executors that jobs have are of the form and size that is allowed.

    Args:
        names: The names of the jobs.
        options: For each job its options.
    """
    checked: set[int] = set()
    for name, given in zip(names, options, strict=False):
        if given is not None and id(given) not in checked:
            check_executor_options(given, f"job {name!r}: ")
            checked.add(id(given))


def check_names(kind: str, names: Iterable[str], count: int) -> None:
    """Raise `RuleError` if a name is empty or occurs more than once."""
    seen = set(names)
    if "" in seen:
        raise RuleError(f"a {kind} has no name")
    if len(seen) != count:
        raise RuleError(f"{count - len(seen)} {kind} name(s) occur more than once")


def _check_positions(name: str, positions: Iterable[int], count: int) -> None:
    """Raise `RuleError` unless all positions are among ``count``."""
    several = [*positions]
    if several and not (min(several) >= 0 and max(several) < count):
        wrong = min(several) if min(several) < 0 else max(several)
        raise RuleError(f"{name}: position {wrong} is not among the {count} there are")


def _has_repeated_pair(waiting: Sequence[int], awaited: Sequence[int], job_count: int) -> bool:
    """Return whether a pair of positions occurs twice."""
    if all(map(lt, waiting, islice(waiting, 1, None))):
        return False  # each job waits for one
    codes = array("q", map(add, map(mul, waiting, repeat(job_count)), awaited))
    if all(map(lt, codes, islice(codes, 1, None))):
        return False  # they are in order, as plans from specs have them
    distinct = _DistinctNumbers(0, job_count**2, len(codes))
    distinct.add(codes)
    return distinct.repeated() > 0
