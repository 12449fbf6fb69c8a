"""Sums over the present results of a workflow, run by run."""

from collections.abc import Iterable, Sequence
from datetime import datetime
from itertools import repeat
from operator import mul, sub
from typing import Final

import sqlalchemy as sa

from torc_framework.models.progress import RunTotals
from torc_framework.store.database.sql import Statement, Tx, first, param
from torc_framework.store.tables import core as t

RESULTS_AT_ONCE: Final = 10_000
"""Results that are in memory at a time."""
_R: Final = t.RESULT.c
_IN_WORKFLOW: Final = _R.workflow_id == param("workflow")
_RUN: Final = Statement(
    sa.select(sa.func.min(_R.run_id)).where(_IN_WORKFLOW, _R.run_id > param("after")), "workflow", "after"
)
_RESULTS: Final = Statement(
    first(
        sa.select(_R.id, _R.exec_time_minutes, _R.completion_time)
        .where(_IN_WORKFLOW, _R.run_id == param("run"), _R.id > param("after"))
        .where(sa.exists().where(t.JOB.c.id == _R.job_id, t.JOB.c.result_id == _R.id))
        .order_by(_R.id),
        sa.literal_column(str(RESULTS_AT_ONCE), sa.Integer),
    ),
    *("workflow", "run", "after"),
)


def run_totals(tx: Tx, workflow_id: int) -> list[RunTotals]:
    """Return the totals of each run in which the present result of a job was made, in the order of the runs."""
    found: list[RunTotals] = []
    run_id = -1
    while (run_id := tx.value(_RUN, workflow_id, run_id)) is not None:
        totals, after = RunTotals(run_id), 0
        while rows := tx.rows(_RESULTS, workflow_id, run_id, after):
            ids, minutes, ended = zip(*rows, strict=True)
            _add(totals, minutes, ended)
            after = ids[-1]
        if totals.results:
            found.append(totals)
    return found


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
