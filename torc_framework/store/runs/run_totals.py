"""Sums over the present results of a workflow, run by run."""

from datetime import datetime
from typing import Final

import sqlalchemy as sa

from torc_framework.models.progress import RunTotals
from torc_framework.store.database.sql import Statement, Tx, first, param
from torc_framework.store.tables import core as t

RESULTS_AT_ONCE: Final = 10_000
"""Results that are in memory at a time."""
_R: Final = t.RESULT.c
_RESULTS: Final = Statement(
    first(
        sa.select(_R.id, _R.run_id, _R.exec_time_minutes, _R.completion_time)
        .where(_R.workflow_id == param("workflow"), _R.id > param("after"))
        .where(sa.exists().where(t.JOB.c.id == _R.job_id, t.JOB.c.result_id == _R.id))
        .order_by(_R.id),
        sa.literal_column(str(RESULTS_AT_ONCE), sa.Integer),
    ),
    "workflow",
    "after",
)


def run_totals(tx: Tx, workflow_id: int) -> list[RunTotals]:
    """Return the totals of each run in which the present result of a job was made, in the order of the runs."""
    totals: dict[int, RunTotals] = {}
    after = 0
    while rows := tx.rows(_RESULTS, workflow_id, after):
        for _, run_id, minutes, ended in rows:
            run = totals.get(run_id)
            if run is None:
                run = totals[run_id] = RunTotals(run_id)
            run.results += 1
            run.exec_time_s += minutes * 60
            try:
                end_s = datetime.fromisoformat(ended).timestamp()
            except (ValueError, OverflowError):  # a client stored any text
                continue
            start_s = end_s - minutes * 60
            if run.started_s is None or start_s < run.started_s:
                run.started_s = start_s
            if run.ended_s is None or end_s > run.ended_s:
                run.ended_s = end_s
        after = rows[-1][0]
    return [totals[run_id] for run_id in sorted(totals)]
