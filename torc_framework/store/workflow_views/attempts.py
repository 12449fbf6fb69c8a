"""The ended attempts of a workflow in memory: read once, and then only those that were stored since.

Results are stored and not changed; what does change or delete them counts as a change of the structure, and makes all
of them be read again.
"""

import threading
from array import array
from bisect import bisect_left, bisect_right, insort
from collections import defaultdict
from collections.abc import Hashable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from math import inf
from operator import itemgetter, sub
from typing import Any, Final

import sqlalchemy as sa
from attrs import Factory, define, field

from torc_framework.models.run_estimate import RunTimes
from torc_framework.models.statuses import JobStatus
from torc_framework.store.database.sql import Row, Statement, Tx, param
from torc_framework.store.tables import core as t
from torc_framework.store.workflow_views.attempt_times import LONGEST_MINUTES, seconds_of_ends
from torc_framework.store.workflow_views.kept_values import KeptValues
from torc_framework.store.workflow_views.structure import WorkflowStructure

_MOST_ATTEMPTS: Final = 2_000_000
"""Attempts of all workflows that are kept for a database; one takes about 50 bytes."""
_R: Final = t.RESULT.c
_SIZE: Final = Statement(
    sa.select(sa.func.count(), sa.func.max(_R.id)).where(_R.workflow_id == param("workflow")), "workflow"
)
_NEW: Final = Statement(
    sa.select(
        _R.id, _R.job_id, _R.compute_node_id, _R.run_id, _R.status, _R.completion_time, _R.exec_time_minutes
    ).where(_R.workflow_id == param("workflow"), _R.id > param("after")),
    *("workflow", "after"),
)
_COMPLETED: Final = int(JobStatus.COMPLETED)


_FEW: Final = 64
"""Values that are put into their places one by one; more are sorted together with all others."""


def _with_more(values: "array[float]", more: Sequence[float]) -> "array[float]":
    """Return sorted values with further ones."""
    if len(more) >= _FEW:
        return array("d", sorted([*values, *more]))
    for value in more:
        insort(values, value)
    return values


Columns = Sequence[Sequence[Any]]
"""Columns of equal length."""


def _parts(keys: Iterable[Hashable], columns: Columns) -> Iterator[tuple[Any, Columns]]:
    """Yield the rows of each key as columns."""
    places = defaultdict[Hashable, list[int]](list)
    for place, key in enumerate(keys):
        places[key].append(place)
    if len(places) == 1:
        yield next(iter(places)), columns
        return
    for key, of_key in places.items():
        yield key, [[column[place] for place in of_key] for column in columns]


def _floats() -> "array[float]":
    return array("d")


def _integers() -> "array[int]":
    return array("q")


@define
class AttemptsOfRunner:
    """The attempts of one runner whose times are known, in the order of their begins; times in seconds.

    Attributes:
        sorted_ends: The ends in their own order.
    """

    starts: "array[float]" = Factory(_floats)
    ends: "array[float]" = Factory(_floats)
    statuses: "array[int]" = Factory(_integers)
    job_ids: "array[int]" = Factory(_integers)
    sorted_ends: "array[float]" = Factory(_floats)

    def add(self, attempts: Columns) -> None:
        """Add attempts: the columns of their begins, ends, statuses and jobs."""
        if len(attempts[0]) >= _FEW:
            before: Columns = (self.starts, self.ends, self.statuses, self.job_ids)
            every: list[list[Any]] = [[*known, *more] for known, more in zip(before, attempts, strict=True)]
            order = sorted(range(len(every[0])), key=every[0].__getitem__)
            starts, ends, statuses, job_ids = (map(column.__getitem__, order) for column in every)
            self.starts, self.ends = array("d", starts), array("d", ends)
            self.statuses, self.job_ids = array("q", statuses), array("q", job_ids)
        else:
            for start, end, status, job_id in zip(*attempts, strict=True):
                place = bisect_right(self.starts, start)
                self.starts.insert(place, start)
                self.ends.insert(place, end)
                self.statuses.insert(place, status)
                self.job_ids.insert(place, job_id)
        self.sorted_ends = _with_more(self.sorted_ends, attempts[1])

    def count_between(self, from_s: float, to_s: float) -> int:
        """Return how many attempts touch a span of time."""
        return bisect_right(self.starts, to_s) - bisect_left(self.sorted_ends, from_s)


@define
class EndedAttempts:
    """All ended attempts of a workflow.

    Attributes:
        count: Their number.
        last_id: Id of the last result that was read.
        run_times: Of completed attempts, by node of the structure's graph.
        ends: Of each run the ends of its attempts, in their order: of those that completed, and of the others.
        run_begins: Of each run the begin of its first attempt.
        runners: The attempts by id of the compute node.
    """

    version: tuple[str, int]
    count: int = 0
    last_id: int = 0
    run_times: dict[int, RunTimes] = Factory(dict)
    ends: dict[int, tuple["array[float]", "array[float]"]] = Factory(dict)
    run_begins: dict[int, float] = Factory(dict)
    runners: dict[int, AttemptsOfRunner] = Factory(dict)
    lock: threading.Lock = field(factory=threading.Lock, repr=False, eq=False)

    def add(self, rows: list[Row], structure: WorkflowStructure) -> None:
        """Add results, given as rows of `_NEW`."""
        if not rows:
            return
        # Not `zip(*rows)`, which makes an iterator for each row.
        columns: list[Any] = [[*map(itemgetter(place), rows)] for place in range(len(rows[0]))]
        ids, job_ids, runners, runs, statuses, times, minutes = columns
        seconds = [min(max(0.0, each), LONGEST_MINUTES) * 60 for each in minutes]
        is_completed = [*map(_COMPLETED.__eq__, statuses)]
        nodes = map(structure.graph.node_of.__getitem__, map(structure.positions(), job_ids))
        for (node, completed), (several,) in _parts(zip(nodes, is_completed, strict=True), [seconds]):
            if completed:
                self.run_times.setdefault(node, RunTimes()).add(several)
        ends: list[Any] = seconds_of_ends(times)
        if None in ends:
            timed = [place for place, end in enumerate(ends) if end is not None]
            every = (job_ids, runners, runs, statuses, seconds, is_completed, ends)
            job_ids, runners, runs, statuses, seconds, is_completed, ends = (
                [column[place] for place in timed] for column in every
            )
        starts = [*map(sub, ends, seconds)]
        for runner, attempts in _parts(runners, [starts, ends, statuses, job_ids]):
            self.runners.setdefault(runner, AttemptsOfRunner()).add(attempts)
        for (run_id, completed), (its_starts, its_ends) in _parts(zip(runs, is_completed, strict=True), [starts, ends]):
            self.run_begins[run_id] = min([self.run_begins.get(run_id, inf), min(its_starts)])
            before, others = self.ends.get(run_id, (array("d"), array("d")))
            changed = _with_more(before if completed else others, its_ends)
            self.ends[run_id] = (changed, others) if completed else (before, changed)
        self.count += len(rows)
        self.last_id = max(self.last_id, *ids)

    def busy_seconds(self, from_s: float, to_s: float) -> float:
        """Return the sum of the seconds of attempts that ended in a span of time, as far as these are in it."""
        total = 0.0
        for runner in self.runners.values():
            first = bisect_right(runner.sorted_ends, from_s)
            left = len(runner.sorted_ends) - first
            # Of the attempts by begin, the last ones are those that end last, but for the few that overlap them.
            for place in range(len(runner.starts) - 1, -1, -1):
                if not left:
                    break
                if runner.ends[place] > from_s:
                    left -= 1
                    total += max(0.0, min(runner.ends[place], to_s) - max(runner.starts[place], from_s))
        return total


_kept: Final = KeptValues[EndedAttempts](_MOST_ATTEMPTS, lambda kept: kept.count)


@contextmanager
def ended_attempts(tx: Tx, workflow_id: int, structure: WorkflowStructure) -> Iterator[EndedAttempts]:
    """Provide the ended attempts of a workflow; they do not change during the block."""
    with _kept.making:
        kept = _kept.get(tx, workflow_id)
        if kept is None or kept.version != structure.version:
            kept = EndedAttempts(structure.version)
            _kept.keep(tx, workflow_id, kept)
    with kept.lock:
        count, newest = tx.row(_SIZE, workflow_id) or (0, None)
        if (newest or 0) > kept.last_id:
            rows = tx.rows(_NEW, workflow_id, kept.last_id)
            if kept.count + len(rows) == count:
                kept.add(rows, structure)
            else:  # an attempt was reported again
                fresh = EndedAttempts(structure.version)
                fresh.add(tx.rows(_NEW, workflow_id, 0), structure)
                kept.count, kept.last_id = fresh.count, fresh.last_id
                kept.run_times, kept.ends, kept.run_begins = fresh.run_times, fresh.ends, fresh.run_begins
                kept.runners = fresh.runners
            _kept.keep(tx, workflow_id, kept)
        yield kept
