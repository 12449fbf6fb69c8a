"""Queries over several tables of a workflow: dependencies, relations of files and user data, missing inputs."""

from collections.abc import Callable, Iterable
from typing import Any, Final

import sqlalchemy as sa
from attrs import frozen

from torc_framework.models.statuses import JobStatus
from torc_framework.store.database.sql import Tx
from torc_framework.store.tables import core as t

JOBS_AT_ONCE: Final = 10_000
"""Jobs whose pairs are counted at once."""


@frozen
class RelationPage:
    """Which part of a list of relations is wanted.

    Attributes:
        offset: Items to skip from the begin, without ``after``.
        limit: Most items.
        after: The ids of the item after which the page begins, in the order of the list; 0 stands for none. For pairs
            of jobs, the number of pairs with these ids that come before the page, as several groups may have one.
    """

    offset: int
    limit: int
    after: tuple[int, ...] | None = None


FindPage = Callable[[Tx, int, RelationPage], tuple[list[dict[str, Any]], int]]
"""Function of a transaction, a workflow and a page.

It returns the items and the number of all items; after an item, the number of those on the page and one more if others
follow.
"""


def job_ids(tx: Tx, workflow_id: int) -> list[int]:
    """Return the ids of all jobs, in order."""
    query = sa.select(t.JOB.c.id).where(t.JOB.c.workflow_id == workflow_id).order_by(t.JOB.c.id)
    return list(tx.connection.execute(query).scalars())


def required_existing_files(tx: Tx, workflow_id: int) -> list[int]:
    """Return the files that have to exist: inputs that no job writes, and outputs of completed jobs."""
    query = _needed(t.FILE, t.JOB_INPUT_FILE, t.JOB_OUTPUT_FILE, "file_id", workflow_id)
    return list(tx.connection.execute(query).scalars())


def missing_user_data(tx: Tx, workflow_id: int) -> list[int]:
    """Return the user data that has to have a value (by the rule of `required_existing_files`) and has none."""
    query = _needed(t.USER_DATA, t.JOB_INPUT_USER_DATA, t.JOB_OUTPUT_USER_DATA, "user_data_id", workflow_id)
    return list(tx.connection.execute(query.where(t.USER_DATA.c.data.is_(None))).scalars())


def _needed(table: sa.Table, inputs: sa.Table, outputs: sa.Table, key: str, workflow_id: int) -> sa.Select[Any]:
    read = sa.exists().where(inputs.c[key] == table.c.id)
    written = sa.exists().where(outputs.c[key] == table.c.id)
    written_already = sa.exists().where(
        outputs.c[key] == table.c.id, outputs.c.job_id == t.JOB.c.id, t.JOB.c.status == JobStatus.COMPLETED
    )
    return (
        sa.select(table.c.id)
        .where(table.c.workflow_id == workflow_id, sa.or_(sa.and_(read, ~written), written_already))
        .order_by(table.c.id)
    )


def latest_event_timestamp(tx: Tx, workflow_id: int) -> int | None:
    """Return the time of the last event, milliseconds since the epoch."""
    query = sa.select(sa.func.max(t.EVENT.c.timestamp)).where(t.EVENT.c.workflow_id == workflow_id)
    found: int | None = tx.connection.execute(query).scalar()
    return found


_WAITS: Final = t.JOB.alias("waits")
_FOR: Final = t.JOB.alias("waited_for")
_PAIRS: Final = sa.union_all(
    sa.select(t.JOB_DEPENDENCY.c.job_id, t.JOB_DEPENDENCY.c.depends_on_job_id),
    sa.select(t.GROUP_WAITER.c.job_id, t.GROUP_MEMBER.c.job_id).where(
        t.GROUP_MEMBER.c.group_id == t.GROUP_WAITER.c.group_id
    ),
).subquery("pair")


def dependency_graph(tx: Tx, workflow_id: int) -> dict[str, Any]:
    """Return all dependencies as they are stored: direct pairs (job, job that it waits for), and groups."""
    direct = sa.select(t.JOB_DEPENDENCY.c.job_id, t.JOB_DEPENDENCY.c.depends_on_job_id).where(
        t.JOB_DEPENDENCY.c.job_id.in_(sa.select(t.JOB.c.id).where(t.JOB.c.workflow_id == workflow_id))
    )
    groups: dict[int, dict[str, list[int]]] = {}
    for side, table in (("upstream", t.GROUP_MEMBER), ("downstream", t.GROUP_WAITER)):
        query = (
            sa.select(table.c.group_id, table.c.job_id)
            .join(t.DEPENDENCY_GROUP, t.DEPENDENCY_GROUP.c.id == table.c.group_id)
            .where(t.DEPENDENCY_GROUP.c.workflow_id == workflow_id)
        )
        for group_id, job_id in tx.connection.execute(query):
            groups.setdefault(group_id, {"upstream": [], "downstream": []})[side].append(job_id)
    pairs = [list(row) for row in tx.connection.execute(direct)]
    return {"dependencies": pairs, "groups": list(groups.values())}


def job_dependencies(tx: Tx, workflow_id: int, part: RelationPage) -> tuple[list[dict[str, Any]], int]:
    """Return one page of the pairs of jobs of which one waits for the other, and a number as `FindPage` says.

    The pairs include those of groups, which are computed for the jobs of the page only.
    """
    if part.after is not None:
        found = _pairs_after(tx, workflow_id, part.after, part.limit + 1)
        return found[: part.limit], len(found)
    total = _count_pairs(tx, workflow_id)
    first, last, before = tx.connection.execute(_jobs_of_page(workflow_id, part.offset, part.limit)).one()
    if first is None:
        return [], total
    return _pairs(tx, workflow_id, [_PAIRS.c.job_id.between(first, last)], part.limit, part.offset - int(before)), total


def _pairs_after(tx: Tx, workflow_id: int, after: tuple[int, ...], limit: int) -> list[dict[str, Any]]:
    """Return the pairs that follow one, ``limit`` at most; no query counts the pairs of more than some jobs."""
    job_id, on_id, seen = after
    same = _PAIRS.c.job_id == job_id, _PAIRS.c.depends_on_job_id >= on_id
    found = _pairs(tx, workflow_id, same, limit, seen)
    while len(found) < limit:
        following = (
            sa.select(t.JOB.c.id)
            .where(t.JOB.c.workflow_id == workflow_id, t.JOB.c.id > job_id)
            .order_by(t.JOB.c.id)
            .limit(JOBS_AT_ONCE)
            .subquery()
        )
        last_of_span = tx.connection.execute(sa.select(sa.func.max(following.c.id))).scalar()
        if last_of_span is None:
            break
        jobs = _jobs_of_page(workflow_id, 0, limit - len(found), (job_id + 1, last_of_span))
        _, last, _ = tx.connection.execute(jobs).one()
        if last is not None:
            found += _pairs(tx, workflow_id, [_PAIRS.c.job_id.between(job_id + 1, last)], limit - len(found))
        job_id = last_of_span
    return found


def _pairs(
    tx: Tx, workflow_id: int, chosen: Iterable[sa.ColumnElement[bool]], limit: int, offset: int = 0
) -> list[dict[str, Any]]:
    query = (
        sa.select(_PAIRS, _WAITS.c.name.label("job_name"), _FOR.c.name.label("depends_on_job_name"))
        .join(_WAITS, _WAITS.c.id == _PAIRS.c.job_id)
        .join(_FOR, _FOR.c.id == _PAIRS.c.depends_on_job_id)
        .where(_WAITS.c.workflow_id == workflow_id, *chosen)
        .order_by(_PAIRS.c.job_id, _PAIRS.c.depends_on_job_id)
        .limit(limit)
        .offset(offset)
    )
    return [{**row, "workflow_id": workflow_id} for row in tx.connection.execute(query).mappings()]


def _jobs_of_page(workflow_id: int, offset: int, limit: int, span: tuple[int, int] = (0, 2**63 - 1)) -> sa.Select[Any]:
    """Return the query for the first and the last job with pairs on a page, and the number of pairs before theirs.

    Args:
        workflow_id: The workflow.
        offset: Pairs to skip.
        limit: Most pairs.
        span: The first and the last id of the jobs whose pairs are counted.
    """
    sizes = (
        sa.select(t.GROUP_MEMBER.c.group_id, sa.func.count().label("pairs"))
        .join(t.DEPENDENCY_GROUP, t.DEPENDENCY_GROUP.c.id == t.GROUP_MEMBER.c.group_id)
        .where(t.DEPENDENCY_GROUP.c.workflow_id == workflow_id)
        .group_by(t.GROUP_MEMBER.c.group_id)
        .subquery()
    )
    counted = sa.union_all(
        sa.select(t.JOB_DEPENDENCY.c.job_id, sa.literal(1).label("pairs"))
        .join(t.JOB, t.JOB.c.id == t.JOB_DEPENDENCY.c.job_id)
        .where(t.JOB.c.workflow_id == workflow_id, t.JOB_DEPENDENCY.c.job_id.between(*span)),
        sa.select(t.GROUP_WAITER.c.job_id, sizes.c.pairs)
        .join(sizes, sizes.c.group_id == t.GROUP_WAITER.c.group_id)
        .where(t.GROUP_WAITER.c.job_id.between(*span)),
    ).subquery()
    own = sa.select(counted.c.job_id, sa.func.sum(counted.c.pairs).label("pairs")).group_by(counted.c.job_id).subquery()
    upto = sa.func.sum(own.c.pairs).over(order_by=own.c.job_id)
    jobs = sa.select(own.c.job_id, (upto - own.c.pairs).label("before"), upto.label("upto")).subquery()
    return sa.select(sa.func.min(jobs.c.job_id), sa.func.max(jobs.c.job_id), sa.func.min(jobs.c.before)).where(
        jobs.c.upto > offset, jobs.c.before < offset + limit
    )


def _count_pairs(tx: Tx, workflow_id: int) -> int:
    """Return the number of pairs without computing them: a group of N members and M waiters has N x M."""
    execute = tx.connection.execute
    direct = sa.select(sa.func.count()).where(
        t.JOB_DEPENDENCY.c.job_id == t.JOB.c.id, t.JOB.c.workflow_id == workflow_id
    )
    members, waiters = (
        sa.select(sa.func.count()).where(table.c.group_id == t.DEPENDENCY_GROUP.c.id).scalar_subquery()
        for table in (t.GROUP_MEMBER, t.GROUP_WAITER)
    )
    grouped = sa.select(sa.func.coalesce(sa.func.sum(members * waiters), 0)).where(
        t.DEPENDENCY_GROUP.c.workflow_id == workflow_id
    )
    return int(execute(direct).scalar_one()) + int(execute(grouped).scalar_one())


def job_file_relationships(tx: Tx, workflow_id: int, part: RelationPage) -> tuple[list[dict[str, Any]], int]:
    """Return one page of rows (file, job that writes it, job that reads it), and a number as `FindPage` says.

    A file that several jobs read has several rows; a file that no job uses has none.
    """
    names = {"file_id": t.FILE.c.id, "file_name": t.FILE.c.name, "file_path": t.FILE.c.path}
    return _relationships(tx, names, (t.JOB_OUTPUT_FILE, t.JOB_INPUT_FILE), workflow_id, part)


def job_user_data_relationships(tx: Tx, workflow_id: int, part: RelationPage) -> tuple[list[dict[str, Any]], int]:
    """Return the same as `job_file_relationships` for user data."""
    names = {"user_data_id": t.USER_DATA.c.id, "user_data_name": t.USER_DATA.c.name}
    tables = t.JOB_OUTPUT_USER_DATA, t.JOB_INPUT_USER_DATA
    return _relationships(tx, names, tables, workflow_id, part)


def _relationships(
    tx: Tx,
    names: dict[str, sa.Column[Any]],
    relations: tuple[sa.Table, sa.Table],
    workflow_id: int,
    part: RelationPage,
) -> tuple[list[dict[str, Any]], int]:
    key, record = next(iter(names.items()))
    written, read = relations
    producer, consumer = t.JOB.alias("producer"), t.JOB.alias("consumer")
    joined = (
        record.table.outerjoin(written, written.c[key] == record)
        .outerjoin(read, read.c[key] == record)
        .outerjoin(producer, producer.c.id == written.c.job_id)
        .outerjoin(consumer, consumer.c.id == read.c.job_id)
    )
    used = sa.or_(written.c.job_id.is_not(None), read.c.job_id.is_not(None))
    mine = sa.and_(record.table.c.workflow_id == workflow_id, used)
    columns = [
        *(column.label(name) for name, column in names.items()),
        record.table.c.workflow_id,
        written.c.job_id.label("producer_job_id"),
        producer.c.name.label("producer_job_name"),
        read.c.job_id.label("consumer_job_id"),
        consumer.c.name.label("consumer_job_name"),
    ]
    order = record, sa.func.coalesce(written.c.job_id, 0), sa.func.coalesce(read.c.job_id, 0)
    query = sa.select(*columns).select_from(joined).where(mine).order_by(*order)
    if part.after is not None:
        query = query.where(record >= part.after[0], sa.tuple_(*order) > sa.tuple_(*part.after)).limit(part.limit + 1)
        found = [dict(row) for row in tx.connection.execute(query).mappings()]
        return found[: part.limit], len(found)
    count = sa.select(sa.func.count()).select_from(joined).where(mine)
    rows = [dict(row) for row in tx.connection.execute(query.limit(part.limit).offset(part.offset)).mappings()]
    return rows, int(tx.connection.execute(count).scalar_one())
