"""The attempts of a workflow over time, in lanes by runner or host, merged to what can be seen at a given width."""

import heapq
import time
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final

import sqlalchemy as sa
from attrs import define, frozen

from torc_framework.models.statuses import JobStatus
from torc_framework.models.workflow_views import TimelineBars, TimelineLane, TimelineView
from torc_framework.store.database.sql import Statement, Tx, number, param
from torc_framework.store.errors import RuleError
from torc_framework.store.runs.workflow_status import workflow_status
from torc_framework.store.tables import core as t
from torc_framework.store.workflow_views.attempt_times import end_seconds, start_seconds
from torc_framework.store.workflow_views.limits import DEFAULT_LANES, DEFAULT_WIDTH, MOST_WIDTH

MOST_BARS: Final = 4000
"""Most bars of an answer: attempts are merged until they are no more."""
MOST_ROWS: Final = 64
"""Most rows of a lane; the attempts of others share the last one."""
_EVENTS_A_SLICE: Final = 2000
_MOST_EVENTS: Final = 20_000
"""Most events that are read, newest first, to find when the running attempts began."""
_STARTED: Final = "job_started"
_ROUNDING_S: Final = 0.005
"""Overlap of two attempts that comes from the rounding of their times."""

_RESULTS: Final = Statement(
    sa.select(
        t.RESULT.c.job_id, t.RESULT.c.compute_node_id, t.RESULT.c.status, t.RESULT.c.completion_time,
        t.RESULT.c.exec_time_minutes,
    ).where(t.RESULT.c.workflow_id == param("workflow")),
    "workflow",
)  # fmt: skip
_RUNNING: Final = Statement(
    sa.select(t.JOB.c.id, t.JOB.c.active_compute_node_id, t.JOB.c.attempt_id).where(
        t.JOB.c.workflow_id == param("workflow"), t.JOB.c.status == number(JobStatus.RUNNING)
    ),
    "workflow",
)
_NODES: Final = Statement(
    sa.select(
        t.COMPUTE_NODE.c.id, t.COMPUTE_NODE.c.hostname, t.COMPUTE_NODE.c.start_time, t.COMPUTE_NODE.c.duration_seconds
    )
    .where(t.COMPUTE_NODE.c.workflow_id == param("workflow"))
    .order_by(t.COMPUTE_NODE.c.id),
    "workflow",
)


@frozen
class _PlacedAttempt:
    """An attempt; times are in seconds since the epoch."""

    lane: int | str
    start: float
    end: float
    status: int
    job_id: int


@define
class _TimelineBar:
    start: float
    end: float
    status: int
    job_id: int
    row: int
    count: int = 1


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
    workflow_status(tx, workflow_id)  # raises NotFoundError
    now_s = time.time()
    nodes = {id_: rest for id_, *rest in tx.rows(_NODES, workflow_id)}
    lane_of: dict[int, int | str] = {id_: (host if window.by_host else id_) for id_, (host, *_) in nodes.items()}
    attempts, unplaced = _attempts(tx, workflow_id, lane_of, now_s)
    first_s = min((each.start for each in attempts), default=None)
    last_s = max((each.end for each in attempts), default=None)
    from_s = window.from_s if window.from_s is not None else (now_s if first_s is None else first_s)
    to_s = window.to_s if window.to_s is not None else max(from_s, now_s if last_s is None else last_s)
    if to_s < from_s:
        raise RuleError("timeline: the window ends before it begins")
    shown: dict[int | str, list[_PlacedAttempt]] = {}
    for each in attempts:
        if each.start <= to_s and each.end >= from_s:
            shown.setdefault(each.lane, []).append(each)
    keys = [key for key in dict.fromkeys(lane_of.values()) if key in shown]
    keys += [key for key in shown if key not in set(keys)]  # of runners whose records were deleted
    page = keys[window.offset : window.offset + window.limit]
    in_lanes = [sorted(shown[key], key=lambda each: each.start) for key in page]
    rows, resolution_s = _merged_rows(in_lanes, (to_s - from_s) / window.width, to_s - from_s)
    lanes = [
        _lane(key, nodes, part, bars, (from_s, to_s)) for key, part, bars in zip(page, in_lanes, rows, strict=True)
    ]
    statuses = sorted({bar.status for bars in rows for bar in bars})
    return TimelineView(
        from_s,
        to_s,
        first_s,
        last_s,
        round(resolution_s, 6),
        [JobStatus(status).label for status in statuses],
        lanes,
        len(keys),
        sum(map(len, shown.values())),
        _columns(rows, statuses, from_s),
        unplaced,
    )


def _attempts(
    tx: Tx, workflow_id: int, lane_of: Mapping[int, int | str], now_s: float
) -> tuple[list[_PlacedAttempt], int]:
    """Return the attempts that have ended or run, and the number of running ones whose begin is not known."""
    found = []
    for job_id, node, status, completion_time, minutes in tx.rows(_RESULTS, workflow_id):
        end, start = end_seconds(completion_time), start_seconds(completion_time, minutes)
        if end is not None and start is not None:
            found.append(_PlacedAttempt(lane_of.get(node, node), start, end, status, job_id))
    running = {id_: (node, attempt) for id_, node, attempt in tx.rows(_RUNNING, workflow_id)}
    starts = _starts(tx, workflow_id, running) if running else {}
    for job_id, start in starts.items():
        node = running[job_id][0] or 0
        found.append(_PlacedAttempt(lane_of.get(node, node), start, max(start, now_s), int(JobStatus.RUNNING), job_id))
    return found, len(running) - len(starts)


def _starts(tx: Tx, workflow_id: int, running: Mapping[int, tuple[int | None, int]]) -> dict[int, float]:
    """Return when the attempts of running jobs began, from the newest events."""
    found: dict[int, float] = {}
    before = 2**63 - 1
    for _ in range(_MOST_EVENTS // _EVENTS_A_SLICE):
        query = (
            sa.select(t.EVENT.c.id, t.EVENT.c.timestamp, t.EVENT.c.data)
            .where(t.EVENT.c.workflow_id == workflow_id, t.EVENT.c.id < before)
            .order_by(t.EVENT.c.id.desc())
            .limit(_EVENTS_A_SLICE)
        )
        rows = tx.connection.execute(query).all()
        for _, timestamp, data in rows:
            if isinstance(data, dict) and data.get("event_type") == _STARTED:
                job_id = data.get("job_id")
                if isinstance(job_id, int) and running.get(job_id, (0, -1))[1] == data.get("attempt_id"):
                    found.setdefault(job_id, (timestamp or 0) / 1000)
        if len(found) == len(running) or len(rows) < _EVENTS_A_SLICE:
            break
        before = rows[-1].id
    return found


def _merged_rows(
    lanes: Sequence[Sequence[_PlacedAttempt]], pixel_s: float, window_s: float
) -> tuple[list[list[_TimelineBar]], float]:
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


def _packed(attempts: Sequence[_PlacedAttempt], most_rows: int) -> list[_TimelineBar]:
    """Return attempts, which are in the order of their begins, in rows in which they do not overlap.

    What does not fit into the rows shares the last one.
    """
    busy: list[tuple[float, int]] = []
    free: list[int] = []
    bars = []
    used = 0
    for each in attempts:
        while busy and busy[0][0] <= each.start + _ROUNDING_S:
            heapq.heappush(free, heapq.heappop(busy)[1])
        if free:
            row = heapq.heappop(free)
        else:
            row, used = used, used + 1
        heapq.heappush(busy, (each.end, row))
        bars.append(_TimelineBar(each.start, each.end, each.status, each.job_id, min(row, most_rows - 1)))
    return bars


def _merged(bars: Iterable[_TimelineBar], resolution_s: float) -> list[_TimelineBar]:
    """Return bars of which neighbours of one row and status that are short are one, if little is between them."""
    last: dict[tuple[int, int], _TimelineBar] = {}
    found = []
    for bar in bars:
        key = bar.row, bar.status
        before = last.get(key)
        is_short = bar.end - bar.start < resolution_s or bar.count > 1
        if (
            before is not None
            and is_short
            and (before.count > 1 or before.end - before.start < resolution_s)
            and bar.start - before.end < resolution_s
        ):
            before.end = max(before.end, bar.end)
            before.count += bar.count
        else:
            last[key] = bar
            found.append(bar)
    return found


def _lane(
    key: int | str,
    nodes: Mapping[int, Sequence[Any]],
    attempts: Sequence[_PlacedAttempt],
    bars: Sequence[_TimelineBar],
    window: tuple[float, float],
) -> TimelineLane:
    from_s, to_s = window
    busy_s = sum(max(0.0, min(each.end, to_s) - max(each.start, from_s)) for each in attempts)
    rows = max((bar.row for bar in bars), default=0) + 1
    lane = TimelineLane(0, str(key), rows, len(attempts), round(busy_s, 3))
    if isinstance(key, int):
        lane.id = key
        if key in nodes:
            lane.label, start_time, duration_s = nodes[key]
            lane.started_s = end_seconds(start_time)
            if lane.started_s is not None and duration_s is not None:
                lane.ended_s = lane.started_s + duration_s
    return lane


def _columns(rows: Sequence[Sequence[_TimelineBar]], statuses: Sequence[int], from_s: float) -> TimelineBars:
    place = {status: number for number, status in enumerate(statuses)}
    bars = [(lane, bar) for lane, each in enumerate(rows) for bar in sorted(each, key=lambda bar: (bar.row, bar.start))]
    return TimelineBars(
        lane=[lane for lane, _ in bars],
        row=[bar.row for _, bar in bars],
        start=[round(bar.start - from_s, 3) for _, bar in bars],
        end=[round(bar.end - from_s, 3) for _, bar in bars],
        status=[place[bar.status] for _, bar in bars],
        count=[bar.count for _, bar in bars],
        job_id=[bar.job_id for _, bar in bars],
    )
