"""Times of attempts: of ended ones from what results store, the end as a text that a client sent, and the run time."""

from collections.abc import Sequence
from datetime import datetime
from typing import Final

import sqlalchemy as sa

from torc_framework.models.statuses import JobStatus
from torc_framework.store.database.sql import Statement, number, param
from torc_framework.store.tables.core import JOB

LONGEST_MINUTES: Final = 1e8
"""Longest run time that counts; a client may have stored any number."""

RUNNING_ATTEMPTS: Final = Statement(
    sa.select(JOB.c.id, JOB.c.active_compute_node_id, JOB.c.started_s).where(
        JOB.c.workflow_id == param("workflow"), JOB.c.status == number(JobStatus.RUNNING)
    ),
    "workflow",
)
"""The query for the running jobs of a workflow: id, runner, and start in seconds since the epoch, None if unknown."""


def end_seconds(completion_time: str | None) -> float | None:
    """Return the end of an attempt in seconds since the epoch; None if the text is no time."""
    if completion_time is None:
        return None
    try:
        return datetime.fromisoformat(completion_time).timestamp()
    except (ValueError, OverflowError, OSError):  # a client stored any text
        return None


def seconds_of_ends(completion_times: Sequence[str]) -> list[float] | list[float | None]:
    """Return `end_seconds` of each text; it is fast if all are times."""
    try:
        return [*map(datetime.timestamp, map(datetime.fromisoformat, completion_times))]
    except (ValueError, OverflowError, OSError):
        return [*map(end_seconds, completion_times)]


def start_seconds(completion_time: str | None, exec_time_minutes: float | None) -> float | None:
    """Return the begin of an attempt in seconds since the epoch; None if it is not known."""
    end = end_seconds(completion_time)
    if end is None or exec_time_minutes is None or not 0 <= exec_time_minutes <= LONGEST_MINUTES:
        return None
    return end - exec_time_minutes * 60
