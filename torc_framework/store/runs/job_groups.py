"""The jobs of a workflow in groups by name: jobs whose names differ in their digits only are one group."""

from typing import Any, Final

import sqlalchemy as sa
from attrs import Factory, define

from torc_framework.models.progress import JobGroups, LikeNamedJobs
from torc_framework.models.statuses import JobStatus
from torc_framework.store.database.sql import Statement, Tx, param
from torc_framework.store.job_state.interruptions import is_over
from torc_framework.store.tables import core as t

MAX_GROUPS: Final = 100
"""Most groups that are returned."""
_MAX_WAITS_FOR: Final = 3


def _without_digits(name: Any) -> Any:
    """Return the expression for a name without its digits, with literals that may be repeated in GROUP BY."""
    for digit in "0123456789":
        name = sa.func.replace(name, sa.literal_column(f"'{digit}'"), sa.literal_column("''"))
    return name


_NAMED: Final = (
    sa.select(t.JOB.c.id, t.JOB.c.name, t.JOB.c.status, _without_digits(t.JOB.c.name).label("stem"))
    .where(t.JOB.c.workflow_id == param("workflow"))
    .subquery()
)
_GROUPS: Final = Statement(
    sa.select(
        _NAMED.c.stem,
        _NAMED.c.status,
        sa.func.count(),
        sa.func.min(_NAMED.c.name),
        sa.func.max(_NAMED.c.name),
        sa.func.min(_NAMED.c.id),
    ).group_by(_NAMED.c.stem, _NAMED.c.status),
    "workflow",
)
_DIRECT: Final = sa.select(t.JOB_DEPENDENCY.c.depends_on_job_id).where(t.JOB_DEPENDENCY.c.job_id == param("job"))
_GROUPED: Final = (
    sa.select(t.GROUP_MEMBER.c.job_id)
    .join(t.GROUP_WAITER, t.GROUP_WAITER.c.group_id == t.GROUP_MEMBER.c.group_id)
    .where(t.GROUP_WAITER.c.job_id == param("job"))
)
_STEM: Final = _without_digits(t.JOB.c.name)
_WAITS_FOR: Final = Statement(
    sa.select(sa.func.min(t.JOB.c.name))
    .where(sa.or_(t.JOB.c.id.in_(_DIRECT), t.JOB.c.id.in_(_GROUPED)), ~is_over(t.JOB))
    .group_by(_STEM)
    .order_by(sa.func.min(t.JOB.c.id)),
    "job",
)


@define
class _Group:
    names: list[str] = Factory(list)
    first_id: int = 0
    blocked_id: int | None = None
    counts: dict[str, int] = Factory(dict)


def job_groups(tx: Tx, workflow_id: int) -> JobGroups:
    """Return the jobs of a workflow in groups by name."""
    groups: dict[str, _Group] = {}
    for stem, status, count, least, greatest, first_id in tx.rows(_GROUPS, workflow_id):
        group = groups.setdefault(stem, _Group(first_id=first_id))
        group.names += [least, greatest]
        group.first_id = min(group.first_id, first_id)
        group.counts[JobStatus(status).label] = count
        if status == JobStatus.BLOCKED:
            group.blocked_id = first_id
    ordered = sorted(groups.values(), key=lambda each: each.first_id)
    shown = [
        LikeNamedJobs(
            min(group.names), max(group.names), sum(group.counts.values()), group.counts, _waits_for(tx, group)
        )
        for group in ordered[:MAX_GROUPS]
    ]
    return JobGroups(shown, len(ordered))


def _waits_for(tx: Tx, group: _Group) -> list[str]:
    if group.blocked_id is None:
        return []
    return [row[0] for row in tx.rows(_WAITS_FOR, group.blocked_id)][:_MAX_WAITS_FOR]
