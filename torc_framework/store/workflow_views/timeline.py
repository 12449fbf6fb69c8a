"""The attempts of a workflow over time, in lanes by runner or host, merged to what can be seen at a given width."""

import heapq
import time
from bisect import bisect_right
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Final

import sqlalchemy as sa
from attrs import frozen

from torc_framework.models.statuses import JobStatus
from torc_framework.models.workflow_views import TimelineBars, TimelineLane, TimelineView
from torc_framework.store.database.sql import Statement, Tx, param
from torc_framework.store.errors import RuleError
from torc_framework.store.tables import core as t
from torc_framework.store.workflow_views.attempt_times import RUNNING_ATTEMPTS, end_seconds
from torc_framework.store.workflow_views.attempts import EndedAttempts, ended_attempts
from torc_framework.store.workflow_views.limits import DEFAULT_LANES, DEFAULT_WIDTH, MOST_WIDTH
from torc_framework.store.workflow_views.structure import workflow_structure

MOST_BARS: Final = 4000
"""Most bars of an answer: attempts are merged until they are no more."""
MOST_ROWS: Final = 64
"""Most rows of a lane; the attempts of others share the last one."""
_ROUNDING_S: Final = 0.005
"""Overlap of two attempts that comes from the rounding of their times."""

_NODES: Final = Statement(
    sa.select(
        t.COMPUTE_NODE.c.id, t.COMPUTE_NODE.c.hostname, t.COMPUTE_NODE.c.start_time, t.COMPUTE_NODE.c.duration_seconds
    )
    .where(t.COMPUTE_NODE.c.workflow_id == param("workflow"))
    .order_by(t.COMPUTE_NODE.c.id),
    "workflow",
)


PlacedAttempt = tuple[float, float, int, int]
"""Begin, end, status and job of an attempt; times in seconds since the epoch."""
Bar = tuple[float, float, int, int, int, int]
"""Begin, end, status, first job, row, and number of attempts of a bar."""


@frozen
class TimelineWindow:
    """What of the time is shown, and where.

    Attributes:
        from_s: Begin, seconds since the epoch; None is the first attempt's.
        to_s: End; None is the last attempt's.
        width: Width of the drawing in pixels.
        by_host: A lane for each host instead of each runner.
        offset: Lanes to skip.
        limit: Most lanes.
    """

    from_s: float | None = None
    to_s: float | None = None
    width: int = DEFAULT_WIDTH
    by_host: bool = False
    offset: int = 0
    limit: int = DEFAULT_LANES


def timeline_view(tx: Tx, workflow_id: int, window: TimelineWindow) -> TimelineView:
    """Return the attempts of a workflow in a window of time.

    Raises:
        NotFoundError: there is no such workflow.
        RuleError: the window ends before it begins.
    """
    structure = workflow_structure(tx, workflow_id)
    now_s = time.time()
    nodes = {id_: rest for id_, *rest in tx.rows(_NODES, workflow_id)}
    running, unplaced = _running(tx, workflow_id, now_s)
    with ended_attempts(tx, workflow_id, structure) as ended:
        first_s, last_s = _extent(ended, running)
        from_s = window.from_s if window.from_s is not None else (now_s if first_s is None else first_s)
        to_s = window.to_s if window.to_s is not None else max(from_s, now_s if last_s is None else last_s)
        if to_s < from_s:
            raise RuleError("timeline: the window ends before it begins")
        counts = _counts(ended, running, (from_s, to_s))
        lanes = _lanes_of(nodes, counts, by_host=window.by_host)
        page = list(lanes.items())[window.offset : window.offset + window.limit]
        in_lanes = [_attempts(ended, running, runners, (from_s, to_s)) for _, runners in page]
    rows, resolution_s = _merged_rows(in_lanes, (to_s - from_s) / window.width, to_s - from_s)
    statuses = sorted({bar[2] for bars in rows for bar in bars})
    return TimelineView(
        from_s,
        to_s,
        first_s,
        last_s,
        round(resolution_s, 6),
        [JobStatus(status).label for status in statuses],
        [
            _lane(key, nodes, part, bars, (from_s, to_s))
            for (key, _), part, bars in zip(page, in_lanes, rows, strict=True)
        ],
        len(lanes),
        sum(counts.values()),
        _columns(rows, statuses, from_s),
        unplaced,
    )


def _extent(ended: EndedAttempts, running: Mapping[int, Sequence[PlacedAttempt]]) -> tuple[float | None, float | None]:
    """Return the begin of the first attempt and the end of the last one."""
    starts = [runner.starts[0] for runner in ended.runners.values()]
    starts += [start for attempts in running.values() for start, *_ in attempts]
    ends = [runner.sorted_ends[-1] for runner in ended.runners.values()]
    ends += [end for attempts in running.values() for _, end, *_ in attempts]
    return min(starts, default=None), max(ends, default=None)


def _counts(
    ended: EndedAttempts, running: Mapping[int, Sequence[PlacedAttempt]], window: tuple[float, float]
) -> dict[int, int]:
    """Return the number of attempts in a window by runner; runners without any are left out."""
    from_s, to_s = window
    counts = Counter({id_: runner.count_between(from_s, to_s) for id_, runner in ended.runners.items()})
    for id_, attempts in running.items():
        counts[id_] += sum(start <= to_s and end >= from_s for start, end, *_ in attempts)
    return +counts


def _lanes_of(
    nodes: Mapping[int, Sequence[Any]], counts: Mapping[int, int], *, by_host: bool
) -> dict[int | str, list[int]]:
    """Return the runners of each lane; those whose records were deleted come last."""
    lanes: dict[int | str, list[int]] = {}
    for id_ in sorted(counts, key=lambda id_: (id_ not in nodes, id_)):
        key = nodes[id_][0] if by_host and id_ in nodes else id_
        lanes.setdefault(key, []).append(id_)
    return lanes


def _attempts(
    ended: EndedAttempts,
    running: Mapping[int, Sequence[PlacedAttempt]],
    runners: Sequence[int],
    window: tuple[float, float],
) -> list[PlacedAttempt]:
    """Return the attempts of some runners in a window, in the order of their begins."""
    from_s, to_s = window
    found: list[PlacedAttempt] = []
    for id_ in runners:
        runner = ended.runners.get(id_)
        if runner is not None:
            last = bisect_right(runner.starts, to_s)
            every = zip(runner.starts[:last], runner.ends, runner.statuses, runner.job_ids, strict=False)
            found += [attempt for attempt in every if attempt[1] >= from_s]
        found += [attempt for attempt in running.get(id_, ()) if attempt[0] <= to_s and attempt[1] >= from_s]
    found.sort()
    return found


def _running(tx: Tx, workflow_id: int, now_s: float) -> tuple[dict[int, list[PlacedAttempt]], int]:
    """Return the running attempts by runner, and the number of those whose begin is not known."""
    rows: Sequence[Any] = tx.rows(RUNNING_ATTEMPTS, workflow_id)
    found: dict[int, list[PlacedAttempt]] = {}
    for job_id, node_id, started_s in rows:
        if started_s is not None:
            attempt = started_s, max(started_s, now_s), int(JobStatus.RUNNING), job_id
            found.setdefault(node_id or 0, []).append(attempt)
    return found, sum(started_s is None for *_, started_s in rows)


def _merged_rows(
    lanes: Sequence[Sequence[PlacedAttempt]], pixel_s: float, window_s: float
) -> tuple[list[list[Bar]], float]:
    """Return the bars of each lane, and the length below which attempts were merged."""
    resolution_s, most_rows = pixel_s, MOST_ROWS
    rows = [_merged(_packed(lane, most_rows), resolution_s) for lane in lanes]
    while sum(map(len, rows)) > MOST_BARS:
        if resolution_s <= window_s:
            resolution_s = max(2 * resolution_s, window_s / MOST_WIDTH)
            rows = [_merged(bars, resolution_s) for bars in rows]
        elif most_rows > 1:
            most_rows //= 2
            rows = [_merged(_packed(lane, most_rows), resolution_s) for lane in lanes]
        else:
            break  # a bar for each lane and status
    return rows, resolution_s


def _packed(attempts: Sequence[PlacedAttempt], most_rows: int) -> Iterator[Bar]:
    """Yield attempts, which are in the order of their begins, in rows in which they do not overlap.

    What does not fit into the rows shares the last one.
    """
    busy: list[tuple[float, int]] = []
    free: list[int] = []
    used = 0
    for start, end, status, job_id in attempts:
        while busy and busy[0][0] <= start + _ROUNDING_S:
            heapq.heappush(free, heapq.heappop(busy)[1])
        if free:
            row = heapq.heappop(free)
        else:
            row, used = used, used + 1
        heapq.heappush(busy, (end, row))
        yield start, end, status, job_id, min(row, most_rows - 1), 1


def _merged(bars: Iterable[Bar], resolution_s: float) -> list[Bar]:
    """Return bars of which neighbours of one row and status that are short are one, if little is between them."""
    last: dict[tuple[int, int], int] = {}
    found: list[Bar] = []
    for bar in bars:
        start, end, status, _, row, count = bar
        place = last.get((row, status))
        if place is not None and (count > 1 or end - start < resolution_s):
            begin, until, _, job_id, _, many = found[place]
            if start - until < resolution_s and (many > 1 or until - begin < resolution_s):
                found[place] = begin, max(until, end), status, job_id, row, many + count
                continue
        last[row, status] = len(found)
        found.append(bar)
    return found


def _lane(
    key: int | str,
    nodes: Mapping[int, Sequence[Any]],
    attempts: Sequence[PlacedAttempt],
    bars: Sequence[Bar],
    window: tuple[float, float],
) -> TimelineLane:
    from_s, to_s = window
    busy_s = sum([max(0.0, min(end, to_s) - max(start, from_s)) for start, end, *_ in attempts])
    rows = max((bar[4] for bar in bars), default=0) + 1
    lane = TimelineLane(0, str(key), rows, len(attempts), round(busy_s, 3))
    if isinstance(key, int):
        lane.id = key
        if key in nodes:
            lane.label, start_time, duration_s = nodes[key]
            lane.started_s = end_seconds(start_time)
            if lane.started_s is not None and duration_s is not None:
                lane.ended_s = lane.started_s + duration_s
    return lane


def _columns(rows: Sequence[Sequence[Bar]], statuses: Sequence[int], from_s: float) -> TimelineBars:
    position = {status: number for number, status in enumerate(statuses)}
    found = TimelineBars([], [], [], [], [], [], [])
    for lane, bars in enumerate(rows):
        for start, end, status, job_id, row, count in sorted(bars, key=lambda bar: (bar[4], bar[0])):
            found.lane.append(lane)
            found.row.append(row)
            found.start.append(round(start - from_s, 3))
            found.end.append(round(end - from_s, 3))
            found.status.append(position[status])
            found.count.append(count)
            found.job_id.append(job_id)
    return found
