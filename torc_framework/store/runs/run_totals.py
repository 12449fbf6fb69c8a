"""Sums over the present results of a workflow, run by run."""

from collections.abc import Iterable, Sequence
from datetime import datetime
from itertools import repeat
from operator import mul, sub
from typing import Final

import sqlalchemy as sa

from torc_framework.models.progress import RunTotals
from torc_framework.store.database.sql import Statement, Tx, first, number, param
from torc_framework.store.tables import core as t

RESULTS_AT_ONCE: Final = 10_000
"""Results that one query sums up, or reads."""
_R: Final = t.RESULT.c
_IN_WORKFLOW: Final = _R.workflow_id == param("workflow")
_RUN: Final = Statement(
    sa.select(sa.func.min(_R.run_id)).where(_IN_WORKFLOW, _R.run_id > param("after")), "workflow", "after"
)
_SLICE: Final = first(
    sa.select(_R.id, _R.exec_time_minutes, _R.completion_time)
    .where(_IN_WORKFLOW, _R.run_id == param("run"), _R.id > param("after"))
    .where(sa.exists().where(t.JOB.c.id == _R.job_id, t.JOB.c.result_id == _R.id))
    .order_by(_R.id),
    param("count"),
)
_SPAN: Final = ("workflow", "run", "after", "count")
_RESULTS: Final = Statement(_SLICE, *_SPAN)
_OF_SLICE: Final = _SLICE.subquery("slice").c
_ENDED: Final = _OF_SLICE.completion_time
_HAS_FORM: Final = sa.and_(
    _ENDED.like(sa.literal_column("'____-__-__T__:__:__.___Z'", sa.String)),
    # On SQLite LIKE takes a small letter for the same, and it would come after all capital ones.
    sa.func.substr(_ENDED, *map(sa.literal_column, ("11", "1"))) == sa.literal_column("'T'", sa.String),
)
"""Whether a text has the form in which torc writes times: in it, times have the order of their texts."""
_SUMS: Final = Statement(
    sa.select(
        sa.func.max(_OF_SLICE.id),
        sa.func.count(),
        sa.func.sum(_OF_SLICE.exec_time_minutes * sa.literal_column("60", sa.Integer)),
        sa.func.max(_OF_SLICE.exec_time_minutes),
        sa.func.min(_ENDED),
        sa.func.max(_ENDED),
        sa.func.min(sa.case((_HAS_FORM, number(1)), else_=number(0))),
    ),
    *_SPAN,
)


def run_totals(tx: Tx, workflow_id: int) -> list[RunTotals]:
    """Return the totals of each run in which the present result of a job was made, in the order of the runs."""
    found: list[RunTotals] = []
    run_id = -1
    while (run_id := tx.value(_RUN, workflow_id, run_id)) is not None:
        totals = RunTotals(run_id)
        after: int | None = 0
        while after is not None:
            after = _add_slice(tx, workflow_id, totals, after)
        if totals.results:
            found.append(totals)
    return found


def _add_slice(tx: Tx, workflow_id: int, run: RunTotals, after: int) -> int | None:
    """Add some results to the totals of their run; return the id of the last, None if there was none.

    The database sums them up. Only if one of them may be the first that began, they are read one by one.
    """
    span = workflow_id, run.run_id, after, RESULTS_AT_ONCE
    last, count, seconds, longest, *ends, have_form = tx.row(_SUMS, *span) or (None,) * 7
    if last is None:
        return None
    if have_form and run.started_s is not None and run.ended_s is not None and all(map(_is_time, ends)):
        first_end_s, last_end_s = _timestamps(ends)
        if first_end_s - longest * 60 >= run.started_s:
            run.results += count
            run.exec_time_s += seconds
            run.ended_s = max(run.ended_s, last_end_s)
            return int(last)
    _, minutes, ended = zip(*tx.rows(_RESULTS, *span), strict=True)
    _add(run, minutes, ended)
    return int(last)


def _add(run: RunTotals, minutes: Sequence[float], ended: Sequence[str]) -> None:
    """Add results to the totals of their run.

    Args:
        run: The totals.
        minutes: The run time of each result.
        ended: The time of the end of each result; texts that are no times are ignored, since a client may store any.
    """
    seconds = [*map(mul, minutes, repeat(60))]
    run.results += len(seconds)
    run.exec_time_s += sum(seconds)
    try:
        ends_s = _timestamps(ended)
    except (ValueError, OverflowError):
        good = [each for each in zip(seconds, ended, strict=True) if _is_time(each[1])]
        seconds, ends_s = [each[0] for each in good], _timestamps(each[1] for each in good)
    if ends_s:
        begun_s, ended_s = min(map(sub, ends_s, seconds)), max(ends_s)
        run.started_s = begun_s if run.started_s is None else min(run.started_s, begun_s)
        run.ended_s = ended_s if run.ended_s is None else max(run.ended_s, ended_s)


def _timestamps(texts: Iterable[str]) -> list[float]:
    return [*map(datetime.timestamp, map(datetime.fromisoformat, texts))]


def _is_time(text: str) -> bool:
    try:
        datetime.fromisoformat(text).timestamp()
    except (ValueError, OverflowError):
        return False
    return True
