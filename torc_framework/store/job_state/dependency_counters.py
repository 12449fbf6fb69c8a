"""Dependencies between jobs, and the counters of the blockers that each job and each dependency group has left.

The counters are columns of ``job`` and ``dependency_group``; `tables.core` defines their values.
"""

from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Final

import sqlalchemy as sa
from attrs import define

from torc_framework.models.statuses import JobStatus
from torc_framework.store.database.sql import Statement, Tx, ids_param, number, param
from torc_framework.store.job_state.interruptions import is_over
from torc_framework.store.tables.core import DEPENDENCY_GROUP, GROUP_MEMBER, GROUP_WAITER, JOB, JOB_DEPENDENCY

_DEPENDENTS = Statement(
    sa.select(JOB_DEPENDENCY.c.job_id, JOB_DEPENDENCY.c.depends_on_job_id).where(
        JOB_DEPENDENCY.c.depends_on_job_id.in_(ids_param())
    )
)
_GROUPS_OF = Statement(
    sa.select(GROUP_MEMBER.c.group_id, GROUP_MEMBER.c.job_id).where(GROUP_MEMBER.c.job_id.in_(ids_param()))
)
_WAITERS_OF = Statement(
    sa.select(GROUP_WAITER.c.job_id, GROUP_WAITER.c.group_id).where(GROUP_WAITER.c.group_id.in_(ids_param()))
)
_COUNT_GROUP = Statement(
    sa.update(DEPENDENCY_GROUP)
    .where(DEPENDENCY_GROUP.c.id == param("group"))
    .values(remaining=DEPENDENCY_GROUP.c.remaining - param("ended"), failed=DEPENDENCY_GROUP.c.failed + param("badly")),
    "ended",
    "badly",
    "group",
)
_FINISHED_GROUPS = Statement(
    sa.select(DEPENDENCY_GROUP.c.id, DEPENDENCY_GROUP.c.failed).where(
        DEPENDENCY_GROUP.c.id.in_(ids_param()), DEPENDENCY_GROUP.c.remaining == number(0)
    )
)
_COUNT_JOB = Statement(
    sa.update(JOB)
    .where(JOB.c.id == param("job"))
    .values(blockers=JOB.c.blockers - param("ended"), failed_blockers=JOB.c.failed_blockers + param("badly")),
    "ended",
    "badly",
    "job",
)


def count_endings(tx: Tx, endings: Mapping[int, bool]) -> list[int]:
    """Subtract ended jobs from the counters of their dependents; return the dependents whose counters changed."""
    ids = list(endings)
    ended: Counter[int] = Counter()
    badly: Counter[int] = Counter()
    dependents = tx.rows_for_later(_DEPENDENTS, ids)
    finished = _finished_groups(tx, endings)
    for job_id, dependency in dependents():
        ended[job_id] += 1
        badly[job_id] += endings[dependency]
    if finished:
        for job_id, group in tx.rows_for(_WAITERS_OF, list(finished)):
            ended[job_id] += 1
            badly[job_id] += finished[group]
    tx.run_each(_COUNT_JOB, [(count, badly[job_id], job_id) for job_id, count in ended.items()])
    return list(ended)


def _finished_groups(tx: Tx, endings: Mapping[int, bool]) -> dict[int, bool]:
    """Subtract ended jobs from the counters of their groups; return the groups that are over now, and whether badly."""
    ended: Counter[int] = Counter()
    badly: Counter[int] = Counter()
    for group, job_id in tx.rows_for(_GROUPS_OF, list(endings)):
        ended[group] += 1
        badly[group] += endings[job_id]
    if not ended:
        return {}
    tx.run_each(_COUNT_GROUP, [(count, badly[group], group) for group, count in ended.items()])
    return {group: failed > 0 for group, failed in tx.rows_for(_FINISHED_GROUPS, list(ended))}


# --- the counters computed from statuses ---------------------------------------------------------------

_UPSTREAM: Final = JOB.alias("upstream")
_OVER: Final = is_over(_UPSTREAM)
_OVER_BADLY: Final = sa.and_(_OVER, _UPSTREAM.c.ended_badly == number(1))


def _members(where: sa.ColumnElement[bool]) -> sa.ScalarSelect[int]:
    return (
        sa.select(sa.func.count())
        .select_from(GROUP_MEMBER.join(_UPSTREAM, _UPSTREAM.c.id == GROUP_MEMBER.c.job_id))
        .where(GROUP_MEMBER.c.group_id == DEPENDENCY_GROUP.c.id, where)
        .correlate(DEPENDENCY_GROUP)
        .scalar_subquery()
    )


def _dependencies(where: sa.ColumnElement[bool]) -> sa.ScalarSelect[int]:
    return (
        sa.select(sa.func.count())
        .select_from(JOB_DEPENDENCY.join(_UPSTREAM, _UPSTREAM.c.id == JOB_DEPENDENCY.c.depends_on_job_id))
        .where(JOB_DEPENDENCY.c.job_id == JOB.c.id, where)
        .correlate(JOB)
        .scalar_subquery()
    )


def _groups(where: sa.ColumnElement[bool]) -> sa.ScalarSelect[int]:
    return (
        sa.select(sa.func.count())
        .select_from(GROUP_WAITER.join(DEPENDENCY_GROUP, DEPENDENCY_GROUP.c.id == GROUP_WAITER.c.group_id))
        .where(GROUP_WAITER.c.job_id == JOB.c.id, where)
        .correlate(JOB)
        .scalar_subquery()
    )


_OPEN: Final = DEPENDENCY_GROUP.c.remaining > number(0)
_GROUP_COUNTS: Final = {"remaining": _members(sa.not_(_OVER)), "failed": _members(_OVER_BADLY)}
_JOB_COUNTS: Final = {
    "blockers": _dependencies(sa.not_(_OVER)) + _groups(_OPEN),
    "failed_blockers": _dependencies(_OVER_BADLY)
    + _groups(sa.and_(sa.not_(_OPEN), DEPENDENCY_GROUP.c.failed > number(0))),
}
_RECOUNT_ALL_GROUPS = Statement(
    sa.update(DEPENDENCY_GROUP).where(DEPENDENCY_GROUP.c.workflow_id == param("workflow")).values(_GROUP_COUNTS),
    "workflow",
)
_RECOUNT_ALL_JOBS = Statement(
    sa.update(JOB).where(JOB.c.workflow_id == param("workflow")).values(_JOB_COUNTS), "workflow"
)
_RECOUNT_GROUPS = Statement(
    sa.update(DEPENDENCY_GROUP).where(DEPENDENCY_GROUP.c.id.in_(ids_param())).values(_GROUP_COUNTS)
)
_RECOUNT_JOBS = Statement(sa.update(JOB).where(JOB.c.id.in_(ids_param())).values(_JOB_COUNTS))


def recount(tx: Tx, workflow_id: int) -> None:
    """Compute all counters of a workflow again, after jobs have left an unblocking status or dependencies have
    changed.
    """
    tx.run(_RECOUNT_ALL_GROUPS, workflow_id)
    tx.run(_RECOUNT_ALL_JOBS, workflow_id)


def recount_jobs(tx: Tx, job_ids: Sequence[int]) -> None:
    """Compute the counters of these jobs again; the counters of their groups must be right."""
    tx.run_for(_RECOUNT_JOBS, job_ids)


@define
class Dependents:
    """The groups and jobs that wait for certain jobs; read before those are deleted, for use after."""

    groups: list[int]
    job_ids: list[int]


def dependents_of(tx: Tx, job_ids: Sequence[int]) -> Dependents:
    """Return the groups of these jobs, and the jobs that wait for them."""
    groups = sorted({group for group, _ in tx.rows_for(_GROUPS_OF, job_ids)})
    waiting = {waiter for waiter, _ in (*tx.rows_for(_DEPENDENTS, job_ids), *tx.rows_for(_WAITERS_OF, groups))}
    return Dependents(groups, sorted(waiting - set(job_ids)))


def recount_dependents(tx: Tx, waiting: Dependents) -> None:
    """Compute the counters of these groups and jobs again."""
    tx.run_for(_RECOUNT_GROUPS, waiting.groups)
    recount_jobs(tx, waiting.job_ids)


# --- everything downstream -------------------------------------------------------------------------

_STATUSES = Statement(sa.select(JOB.c.id, JOB.c.status).where(JOB.c.id.in_(ids_param())))


def downstream(tx: Tx, job_ids: Iterable[int], through: Collection[JobStatus] = frozenset(JobStatus)) -> list[int]:
    """Return every job that waits, directly or not, for one of ``job_ids``, nearest first.

    Args:
        through: Return only jobs in these statuses, and follow only their dependents.
    """
    frontier: Sequence[int] = list(job_ids)
    seen, seen_groups = set(frontier), set[int]()
    found: list[int] = []
    while frontier:
        new = {job_id for job_id, _ in tx.rows_for(_DEPENDENTS, frontier)}
        groups = {group for group, _ in tx.rows_for(_GROUPS_OF, frontier)} - seen_groups
        seen_groups |= groups
        new.update(job_id for job_id, _ in tx.rows_for(_WAITERS_OF, list(groups)))
        new -= seen
        seen |= new
        frontier = sorted(job_id for job_id, status in tx.rows_for(_STATUSES, list(new)) if status in through)
        found += frontier
    return found
