"""The jobs of a workflow in groups by name: jobs whose names differ in their digits only are one group."""

import re
from collections import Counter, defaultdict
from collections.abc import Sequence
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
_SEPARATOR: Final = "\x1e"
"""The record separator of ASCII, between names in one text. A slice with a name that contains it is read job by job."""


def _joined(texts: sa.ColumnElement[str]) -> sa.ColumnElement[str]:
    """Return all texts of a column as one."""
    separator: Any = sa.literal_column(f"'{_SEPARATOR}'")
    return sa.func.aggregate_strings(texts, separator)


_OF_SLICE: Final = first(
    sa.select(t.JOB.c.id, t.JOB.c.status, t.JOB.c.name)
    .where(t.JOB.c.workflow_id == param("workflow"), t.JOB.c.id > param("after"))
    .order_by(t.JOB.c.id),
    param("count"),
)
_SPAN: Final = ("workflow", "after", "count")
_JOBS: Final = Statement(_OF_SLICE, *_SPAN)
_SLICE: Final = _OF_SLICE.subquery("slice")
# The database returns one row for a slice, with all statuses and names as texts. To group the jobs itself, it would
# sort them, and to return a row for each would take longer, too.
_JOINED: Final = Statement(
    sa.select(
        sa.func.max(_SLICE.c.id),
        sa.func.count(),
        _joined(sa.cast(_SLICE.c.status, sa.String)),
        _joined(_SLICE.c.name),
    ),
    *_SPAN,
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

    def add_names(self, least: str, greatest: str) -> None:
        """Add the first and the last name of some jobs."""
        self.first_name, self.last_name = min(self.first_name, least), max(self.last_name, greatest)

    def add(self, status: int, count: int) -> None:
        """Add jobs of a status."""
        label = JobStatus(status).label
        self.counts[label] = self.counts.get(label, 0) + count


def job_groups(tx: Tx, workflow_id: int) -> JobGroups:
    """Return the jobs of a workflow in groups by name."""
    groups: dict[str, _Group] = {}
    after = 0
    while (last := _add_joined(tx, workflow_id, after, groups)) is not None:
        after = last
    ordered = sorted(groups.values(), key=lambda each: each.first_id)
    shown = [
        LikeNamedJobs(
            group.first_name, group.last_name, sum(group.counts.values()), group.counts, _waits_for(tx, group)
        )
        for group in ordered[:MAX_GROUPS]
    ]
    return JobGroups(shown, len(ordered))


def _add_joined(tx: Tx, workflow_id: int, after: int, groups: dict[str, _Group]) -> int | None:
    """Add the jobs of a slice to groups; return the id of the last one, None if there is none."""
    last, count, statuses, names = tx.row(_JOINED, workflow_id, after, SLICE_JOBS) or (None, 0, "", "")
    if last is None:
        return None
    statuses, names = statuses.split(_SEPARATOR), names.split(_SEPARATOR)
    if len(names) == count and _add_known(statuses, names, groups):
        return int(last)
    for job_id, status, name in tx.rows(_JOBS, workflow_id, after, SLICE_JOBS):
        key = _DIGITS.sub("", name)
        group = groups.get(key)
        if group is None:
            group = groups[key] = _Group(job_id, name, name)
        group.add_names(name, name)
        group.add(status, 1)
        if status == JobStatus.BLOCKED and group.blocked_id is None:
            group.blocked_id = job_id
    return int(last)


def _add_known(statuses: Sequence[str], names: Sequence[str], groups: dict[str, _Group]) -> bool:
    """Add jobs to groups; return False, and add none, if a job is the first one of its group, or the first blocked."""
    keys = "\0".join(names).encode().translate(None, b"0123456789").decode().split("\0")
    counts = Counter(zip(keys, statuses, strict=True))
    for key, status in counts:
        group = groups.get(key)
        if group is None or (int(status) == JobStatus.BLOCKED and group.blocked_id is None):
            return False
    names_of: dict[str, Sequence[str]] = {keys[0]: names}
    if any(key != keys[0] for key, _ in counts):
        of_keys = defaultdict(list)
        for key, name in zip(keys, names, strict=True):
            of_keys[key].append(name)
        names_of = {**of_keys}
    for key, its_names in names_of.items():
        groups[key].add_names(min(its_names), max(its_names))
    for (key, status), count in counts.items():
        groups[key].add(int(status), count)
    return True


def _waits_for(tx: Tx, group: _Group) -> list[str]:
    """Return a name of each group of jobs for which the first blocked job of a group waits."""
    if group.blocked_id is None:
        return []
    names = sorted(row[0] for query in _WAITS_FOR for row in tx.rows(query, group.blocked_id))
    return [*{_DIGITS.sub("", name): name for name in reversed(names)}.values()][::-1][:_MAX_WAITS_FOR]
