"""The jobs of a workflow that do not run, in classes, and the dependencies of those that wait for other jobs.

No query reads all jobs at once: each reads a slice, in the order of the ids.
"""

from collections import Counter
from collections.abc import Iterable, Sequence
from operator import itemgetter
from typing import Any, Final

import sqlalchemy as sa
from attrs import frozen

from torc_framework.models.statuses import JobStatus
from torc_framework.models.waiting_jobs import CountedJobs, GroupMembers, JobClass, WaitingJobs
from torc_framework.store.database.sql import Row, Statement, Tx, first, ids_param, number, numbers, param
from torc_framework.store.records.events import utc_text
from torc_framework.store.tables import core as t

NAMED_JOBS: Final = 5
"""Jobs of a class that are named."""
SLICE_JOBS: Final = 5000
"""Jobs that one query groups; it sorts them in memory."""
PAGE_JOBS: Final = 10_000
"""Jobs, or members of groups, of one page."""
_WAITING: Final = (JobStatus.BLOCKED, JobStatus.CANCELED)
_LEFT_OUT: Final = frozenset((*_WAITING, JobStatus.COMPLETED))
_J: Final = t.JOB.c
_first_column: Final = itemgetter(0)
_EMPTY: Final = sa.literal_column("''", sa.String)


def _flag(condition: sa.ColumnElement[bool]) -> sa.ColumnElement[int]:
    return sa.case((condition, number(1)), else_=number(0))


def _class_columns(now: Any) -> tuple[sa.ColumnElement[Any], ...]:
    """Return the values of a `JobClass`, in its order; ``now`` is the present time."""
    return (
        _J.status,
        _J.is_interrupted,
        _J.resource_requirements_id,
        _J.scheduler_id,
        _J.executor,
        _flag(sa.func.coalesce(_J.container, _EMPTY) != _EMPTY).label("has_container"),
        _flag(_J.not_before > now).label("is_delayed"),
        _J.waiting_reason,
        _J.attempt_id,
        _J.active_compute_node_id,
    )


def _job_class(values: Sequence[Any]) -> JobClass:
    status, is_interrupted, requirements, scheduler, executor, has_container, is_delayed, *rest = values
    flags = bool(has_container), bool(is_delayed)
    return JobClass(JobStatus(status).label, bool(is_interrupted), requirements, scheduler, executor, *flags, *rest)


# --- classes ------------------------------------------------------------------------------------------

_COLUMNS: Final = _class_columns(param("now"))


@frozen
class _JobStream:
    """The jobs of one status, in the order of the index of statuses: that of their requirements, then of their ids."""

    classes: Statement
    jobs: Statement

    @classmethod
    def of(cls, *chosen: sa.ColumnElement[bool]) -> "_JobStream":
        """Return the jobs that satisfy conditions, of which one says which jobs follow those that have been read."""
        of_slice = first(
            sa.select(_J.id, _J.name, *_COLUMNS)
            .where(_J.workflow_id == param("workflow"), _J.status == param("status"), *chosen)
            .order_by(_J.resource_requirements_id, _J.id),
            param("count"),
        )
        columns = of_slice.subquery("slice").c
        of_class = [column for column in columns if column.name not in ("id", "name")]
        query = sa.select(sa.func.max(columns.id), sa.func.count(), *of_class).group_by(*of_class)
        order = ("now", "workflow", "status", "after_requirements", "after", "count")
        return cls(Statement(query, *order), Statement(of_slice, *order))


_PLACE: Final = sa.tuple_(_J.resource_requirements_id, _J.id) > sa.tuple_(param("after_requirements"), param("after"))
_NO_PLACE: Final = sa.and_(_J.id > param("after"), param("after_requirements") == number(0))
_STREAMS: Final = (_JobStream.of(_J.resource_requirements_id.is_(None), _NO_PLACE), _JobStream.of(_PLACE))
"""The jobs without resource requirements, and those that have some."""
_REQUIREMENTS: Final = 2 + list(JobClass.__struct_fields__).index("resource_requirements_id")
"""Its position in the rows of classes."""


def job_classes(tx: Tx, workflow_id: int) -> list[CountedJobs]:
    """Return the jobs that neither wait for others nor have completed, in classes in the order of their first jobs."""
    now = utc_text()
    found: dict[Row, CountedJobs] = {}
    for status in JobStatus:
        for stream in () if status in _LEFT_OUT else _STREAMS:
            after = (0, 0)
            while rows := tx.rows(stream.classes, *(span := (now, workflow_id, int(status), *after, SLICE_JOBS))):
                if _add_classes(rows, found):  # one query for all classes: there may be as many as jobs
                    _add_names(tx.rows(stream.jobs, *span), found)
                after = max((row[_REQUIREMENTS] or 0, row[0]) for row in rows)
    return sorted(found.values(), key=lambda each: each.first_ids[0])


def _add_classes(rows: Iterable[Row], found: dict[Row, CountedJobs]) -> bool:
    """Add the numbers of the jobs of a slice; return whether names of some of them may be missing."""
    names_are_missing = False
    for _, count, *values in rows:
        counted = found.get(tuple(values))
        if counted is None:
            counted = found[tuple(values)] = CountedJobs(_job_class(values), 0, [], [])
        counted.count += count
        names_are_missing |= len(counted.first_ids) < NAMED_JOBS
    return names_are_missing


def _add_names(rows: Iterable[Row], found: dict[Row, CountedJobs]) -> None:
    """Name the first jobs of each class."""
    for job_id, name, *values in rows:
        counted = found[tuple(values)]
        if len(counted.first_ids) < NAMED_JOBS:
            counted.first_ids.append(job_id)
            counted.first_names.append(name)


# --- dependencies -------------------------------------------------------------------------------------

_WAITS: Final = t.JOB.alias("waits")
_SPAN: Final = (
    _WAITS.c.workflow_id == param("workflow"),
    _WAITS.c.id > param("after"),
    _WAITS.c.id <= param("last"),
)
_IDS: Final = first(
    sa.select(_J.id).where(_J.workflow_id == param("workflow"), _J.id > param("after")).order_by(_J.id), param("count")
).subquery("ids")
_LAST: Final = Statement(sa.select(sa.func.max(_IDS.c.id)), "workflow", "after", "count")
_DIRECT, _GROUPED = (
    {
        statuses: Statement(
            sa.select(_WAITS.c.id, *columns)
            .select_from(joined)
            .where(*_SPAN, _WAITS.c.status.in_(numbers(statuses)))
            .order_by(_WAITS.c.id),
            *("workflow", "after", "last"),
        )
        for statuses in (_WAITING, (JobStatus.CANCELED,))
    }
    for joined, columns in (
        (
            _WAITS.outerjoin(t.JOB_DEPENDENCY, t.JOB_DEPENDENCY.c.job_id == _WAITS.c.id).outerjoin(
                t.JOB,
                sa.and_(_J.id == t.JOB_DEPENDENCY.c.depends_on_job_id, _J.status != number(JobStatus.COMPLETED)),
            ),
            (_J.id, _J.status, _WAITS.c.status),
        ),
        (
            _WAITS.join(t.GROUP_WAITER, t.GROUP_WAITER.c.job_id == _WAITS.c.id),
            (-t.GROUP_WAITER.c.group_id, sa.null()),
        ),
    )
)
_ANY_GROUP: Final = Statement(
    sa.select(sa.func.min(t.DEPENDENCY_GROUP.c.id)).where(t.DEPENDENCY_GROUP.c.workflow_id == param("workflow")),
    "workflow",
)
_AWAITED: Final = Statement(sa.select(_J.id, *_COLUMNS).where(_J.id.in_(ids_param())), "now")


def waiting_jobs(tx: Tx, workflow_id: int, after_id: int, *, only_canceled: bool = False) -> WaitingJobs:
    """Return a page of the jobs that are blocked or canceled, after the job of an id, with what they depend on."""
    statuses = (JobStatus.CANCELED,) if only_canceled else _WAITING
    rows: list[Row] = []
    after = after_id
    while not rows:
        last = tx.value(_LAST, workflow_id, after, PAGE_JOBS)
        if last is None:
            return WaitingJobs([], [], [], [], [], [], has_more=False)
        rows = tx.rows(_DIRECT[statuses], workflow_id, after, last)
        first_of_page, after = after, last
    jobs = [*dict.fromkeys([row[0] for row in rows])]
    is_canceled = int(JobStatus.CANCELED)
    canceled = [*dict.fromkeys([row[0] for row in rows if row[3] == is_canceled])]
    pairs = [row for row in rows if row[1] is not None]
    awaited = {row[1] for row in pairs if row[2] not in _LEFT_OUT}
    groups: list[Row] = []
    if tx.value(_ANY_GROUP, workflow_id) is not None:
        groups = tx.rows(_GROUPED[statuses], workflow_id, first_of_page, last)
    if groups:
        pairs = sorted([*pairs, *groups], key=_first_column)
    counts = Counter([row[0] for row in pairs])
    upstream = [row[1] for row in pairs]
    more = tx.value(_LAST, workflow_id, last, 1) is not None
    return WaitingJobs(jobs, canceled, [counts[job] for job in jobs], upstream, *_classes(tx, awaited), more)


_MEMBER: Final = t.GROUP_MEMBER.c
_GROUP: Final = t.DEPENDENCY_GROUP.c
_MEMBERS: Final = {
    is_rest: Statement(
        first(
            sa.select(_GROUP.id, _MEMBER.job_id, _J.status)
            .select_from(
                t.DEPENDENCY_GROUP.join(t.GROUP_MEMBER, _MEMBER.group_id == _GROUP.id).join(
                    t.JOB, _J.id == _MEMBER.job_id
                )
            )
            .where(_GROUP.workflow_id == param("workflow"), *where, _J.status != number(JobStatus.COMPLETED))
            .order_by(_GROUP.id, _MEMBER.job_id),
            param("count"),
        ),
        *("workflow", "group", *(["job"] if is_rest else []), "count"),
    )
    for is_rest, where in {
        True: (_GROUP.id == param("group"), _MEMBER.job_id > param("job")),
        False: (_GROUP.id > param("group"),),
    }.items()
}
"""The queries for the other members of one group, and for the members of the groups after it."""


def group_members(tx: Tx, workflow_id: int, after_group_id: int, after_job_id: int) -> GroupMembers:
    """Return a page of the members of dependency groups that have not completed, after one of them."""
    rows = tx.rows(_MEMBERS[True], workflow_id, after_group_id, after_job_id, PAGE_JOBS + 1)
    rows += tx.rows(_MEMBERS[False], workflow_id, after_group_id, PAGE_JOBS + 1 - len(rows))
    shown = rows[:PAGE_JOBS]
    awaited = {job for _, job, status in shown if status not in _LEFT_OUT}
    members = [number for row in shown for number in row[:2]]
    return GroupMembers(members, *_classes(tx, awaited), len(rows) > PAGE_JOBS)


def _classes(tx: Tx, job_ids: Iterable[int]) -> tuple[list[JobClass], list[int]]:
    """Return the classes of these jobs, and the id of each job followed by the position of its class."""
    classes: dict[Row, int] = {}
    awaited: dict[int, int] = {}
    for job_id, *values in tx.rows_for(_AWAITED, sorted(job_ids), utc_text()):
        awaited[job_id] = classes.setdefault(tuple(values), len(classes))
    return [_job_class(values) for values in classes], [number for pair in awaited.items() for number in pair]
