"""The jobs of a workflow in groups by name: jobs whose names differ in their digits only are one group."""

import re
from typing import Any, Final

import sqlalchemy as sa
from attrs import Factory, define

from torc_framework.models.progress import JobGroups, LikeNamedJobs
from torc_framework.models.statuses import JobStatus
from torc_framework.store.database.sql import Statement, Tx, first, param
from torc_framework.store.job_state.interruptions import is_over
from torc_framework.store.tables import core as t

MAX_GROUPS: Final = 100
"""Most groups that are returned."""
SLICE_JOBS: Final = 5000
"""Jobs that one query groups."""
_MAX_WAITS_FOR: Final = 3
_DEPENDENCIES_READ: Final = 1000
"""Most unfinished dependencies of a job that are read."""
_DIGITS: Final = re.compile("[0-9]+")


# The database drops the digits at the end of names, which makes few rows of most workflows; the others go here. It
# groups the jobs of one slice at a time, because it sorts what it groups in memory.
_SLICE: Final = first(
    sa.select(
        t.JOB.c.id,
        t.JOB.c.status,
        t.JOB.c.name,
        sa.func.rtrim(t.JOB.c.name, sa.literal_column("'0123456789'")).label("stem"),
    )
    .where(t.JOB.c.workflow_id == param("workflow"), t.JOB.c.id > param("after"))
    .order_by(t.JOB.c.id),
    param("count"),
).subquery("slice")
_GROUPS: Final = Statement(
    sa.select(
        _SLICE.c.status,
        sa.func.count(),
        sa.func.min(_SLICE.c.name),
        sa.func.max(_SLICE.c.name),
        sa.func.min(_SLICE.c.id),
        sa.func.max(_SLICE.c.id),
    ).group_by(_SLICE.c.stem, _SLICE.c.status),
    "workflow",
    "after",
    "count",
)


def _unfinished(ids: sa.Select[Any]) -> sa.Select[Any]:
    """Return the query for the names of those of these jobs that are not over."""
    (column,) = ids.selected_columns
    return ids.with_only_columns(t.JOB.c.name).join(t.JOB, t.JOB.c.id == column).where(~is_over(t.JOB))


_DIRECT: Final = sa.select(t.JOB_DEPENDENCY.c.depends_on_job_id).where(t.JOB_DEPENDENCY.c.job_id == param("job"))
_GROUPED: Final = (
    sa.select(t.GROUP_MEMBER.c.job_id)
    .select_from(t.GROUP_MEMBER.join(t.GROUP_WAITER, t.GROUP_WAITER.c.group_id == t.GROUP_MEMBER.c.group_id))
    .where(t.GROUP_WAITER.c.job_id == param("job"))
)
_READ: Final = sa.literal_column(str(_DEPENDENCIES_READ), sa.Integer)
_WAITS_FOR: Final = tuple(Statement(first(_unfinished(ids), _READ), "job") for ids in (_DIRECT, _GROUPED))


@define
class _Group:
    first_id: int
    first_name: str
    last_name: str
    blocked_id: int | None = None
    counts: dict[str, int] = Factory(dict)


def job_groups(tx: Tx, workflow_id: int) -> JobGroups:
    """Return the jobs of a workflow in groups by name."""
    groups: dict[str, _Group] = {}
    after = 0
    while rows := tx.rows(_GROUPS, workflow_id, after, SLICE_JOBS):
        for status, count, least, greatest, first_id, last_id in rows:
            key = _DIGITS.sub("", least)
            group = groups.get(key)
            if group is None:
                group = groups[key] = _Group(first_id, least, greatest)
            group.first_name, group.last_name = min(group.first_name, least), max(group.last_name, greatest)
            group.first_id = min(group.first_id, first_id)
            label = JobStatus(status).label
            group.counts[label] = group.counts.get(label, 0) + count
            if status == JobStatus.BLOCKED:
                group.blocked_id = min(first_id, group.blocked_id or first_id)
            after = max(after, last_id)
    ordered = sorted(groups.values(), key=lambda each: each.first_id)
    shown = [
        LikeNamedJobs(
            group.first_name, group.last_name, sum(group.counts.values()), group.counts, _waits_for(tx, group)
        )
        for group in ordered[:MAX_GROUPS]
    ]
    return JobGroups(shown, len(ordered))


def _waits_for(tx: Tx, group: _Group) -> list[str]:
    """Return a name of each group of jobs for which the first blocked job of a group waits."""
    if group.blocked_id is None:
        return []
    names = sorted(row[0] for query in _WAITS_FOR for row in tx.rows(query, group.blocked_id))
    return [*{_DIGITS.sub("", name): name for name in reversed(names)}.values()][::-1][:_MAX_WAITS_FOR]
