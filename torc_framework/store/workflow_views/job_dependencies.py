"""What jobs wait for, in short: how many jobs, and the first of them.

A shared dependency of many jobs on many others is read once, and so the answer takes a few queries for any fan-in.
"""

from collections.abc import Sequence
from typing import Any, Final

import sqlalchemy as sa

from torc_framework.models.workflow_views import JobDependencies
from torc_framework.store.database.sql import Tx
from torc_framework.store.tables import core as t

NAMED_DEPENDENCIES: Final = 3
"""Dependencies of a job that are named."""
MOST_NAME: Final = 200
"""Most characters of such a name."""
_D, _M, _W, _G = t.JOB_DEPENDENCY.c, t.GROUP_MEMBER.c, t.GROUP_WAITER.c, t.DEPENDENCY_GROUP.c

_IN_GROUPS_OF_JOB: Final = (
    sa.exists()
    .where(_W.job_id == _D.job_id, _M.job_id == _D.depends_on_job_id, _M.group_id == _W.group_id)
    .correlate(t.JOB_DEPENDENCY)
)


def job_dependencies(tx: Tx, ids: Sequence[int]) -> dict[int, JobDependencies]:
    """Return what jobs wait for by their ids; a job that waits for none is left out."""
    direct = _direct(tx, ids)
    groups_of: dict[int, list[int]] = {}
    for job, group in _rows(tx, sa.select(_W.job_id, _W.group_id).where(_W.job_id.in_(ids)).order_by(_W.group_id)):
        groups_of.setdefault(job, []).append(group)
    members = _members(tx, {tuple(groups) for groups in groups_of.values()})
    found = {}
    for job in direct.keys() | groups_of.keys():
        count, first = direct.get(job, (0, []))
        more, others = members[tuple(groups_of[job])] if job in groups_of else (0, [])
        found[job] = (count + more, sorted({*first, *others})[:NAMED_DEPENDENCIES])
    names = _names(tx, {id_ for _, first in found.values() for id_ in first})
    return {
        job: JobDependencies(
            count, [id_ for id_ in first if id_ in names], [names[id_] for id_ in first if id_ in names]
        )
        for job, (count, first) in found.items()
    }


def _direct(tx: Tx, ids: Sequence[int]) -> dict[int, tuple[int, list[int]]]:
    """Return for jobs the number of their own dependencies that no group of theirs has, and the first of all."""
    own = sa.select(_D.depends_on_job_id).where(_D.job_id == t.JOB.c.id)
    outside = sa.select(sa.func.count()).where(_D.job_id == t.JOB.c.id, ~_IN_GROUPS_OF_JOB)
    query = sa.select(t.JOB.c.id, outside.correlate(t.JOB).scalar_subquery(), *_first(own, _D.depends_on_job_id, t.JOB))
    return {
        job: (count, present)
        for job, count, *first in _rows(tx, query.where(t.JOB.c.id.in_(ids)))
        if (present := _present(first))
    }


def _members(tx: Tx, wanted: set[tuple[int, ...]]) -> dict[tuple[int, ...], tuple[int, list[int]]]:
    """Return for groups, or several together, the number of their members and the first of them."""
    own = sa.select(_M.job_id).where(_M.group_id == _G.id)
    count = sa.select(sa.func.count()).where(_M.group_id == _G.id).correlate(t.DEPENDENCY_GROUP).scalar_subquery()
    query = sa.select(_G.id, count, *_first(own, _M.job_id, t.DEPENDENCY_GROUP))
    query = query.where(_G.id.in_({group for groups in wanted for group in groups}))
    each = {group: (count, _present(first)) for group, count, *first in _rows(tx, query)}
    found = {}
    for groups in wanted:
        first = sorted({id_ for group in groups for id_ in each[group][1]})[:NAMED_DEPENDENCIES]
        distinct = sa.select(sa.func.count(_M.job_id.distinct())).where(_M.group_id.in_(groups))
        found[groups] = (each[groups[0]][0] if len(groups) == 1 else _rows(tx, distinct)[0][0], first)
    return found


def _first(query: sa.Select[Any], column: sa.ColumnElement[int], of: sa.FromClause) -> list[sa.ScalarSelect[int]]:
    """Return the expressions for the smallest values of a query, each found in an index by its place."""
    return [
        query.correlate(of).order_by(column).limit(1).offset(place).scalar_subquery()
        for place in range(NAMED_DEPENDENCIES)
    ]


def _names(tx: Tx, ids: set[int]) -> dict[int, str]:
    query = sa.select(t.JOB.c.id, t.JOB.c.name).where(t.JOB.c.id.in_(ids))
    return {id_: name[:MOST_NAME] for id_, name in _rows(tx, query)}


def _present(values: list[int | None]) -> list[int]:
    return [value for value in values if value is not None]


def _rows(tx: Tx, query: sa.Select[Any]) -> list[Any]:
    return list(tx.connection.execute(query))
