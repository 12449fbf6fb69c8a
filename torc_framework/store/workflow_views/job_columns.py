"""Parts of a filtered and sorted list of jobs, as columns.

The ids of a list are found and sorted once and kept, eight bytes each. A part of it, at any place, then reads its own
jobs only, by their ids.
"""

import time
from array import array
from collections import Counter
from collections.abc import Callable, Sequence
from typing import Any, Final

import sqlalchemy as sa
from attrs import frozen

from torc_framework.errors import suggestion
from torc_framework.models.statuses import JobStatus
from torc_framework.models.workflow_views import JobTable
from torc_framework.store.database.sql import Statement, Tx, param
from torc_framework.store.errors import RuleError
from torc_framework.store.records.events import utc_text
from torc_framework.store.tables import core as t
from torc_framework.store.workflow_views.attempt_times import start_seconds
from torc_framework.store.workflow_views.filter_conditions import filter_conditions
from torc_framework.store.workflow_views.job_dependencies import job_dependencies
from torc_framework.store.workflow_views.job_fields import (
    COLUMN_NAMES,
    COMPUTED_FIELDS,
    DEPENDENCIES,
    FIELD_NAMES,
    JOB_FIELDS,
)
from torc_framework.store.workflow_views.kept_values import KeptValues
from torc_framework.store.workflow_views.limits import DEFAULT_FIELDS, DEFAULT_JOBS, MOST_JOBS
from torc_framework.store.workflow_views.structure import workflow_structure
from torc_framework.store.workflow_views.tags import view_tag, workflow_marks

MOST_TEXT: Final = 1000
"""Most characters of a text that a column shows."""
ORDER_LIFETIME_S: Final = 2.0
"""Seconds for which the order of a list is kept while the workflow changes."""
ORDER_TAG_LIFETIME_S: Final = 10
"""Seconds for which it is kept while nothing changes: what a filter finds may depend on the time."""
_MOST_IDS: Final = 8_000_000
"""Ids of all kept orders of a database."""
_REVERSE: Final = "-"


@frozen
class KeptOrder:
    """The ids of a list in its order.

    Attributes:
        tag: Tag of the workflow when it was read.
        made_s: When it was read, in seconds of the monotonic clock.
        counts: Its jobs by status label, then.
    """

    tag: str
    made_s: float
    ids: "array[int]"
    counts: dict[str, int]


_kept: Final = KeptValues[KeptOrder](_MOST_IDS, lambda kept: len(kept.ids))


@frozen
class JobList:
    """Which jobs of a workflow, in which order.

    Attributes:
        filter: Text of the filter language; empty for all.
        sort: Name of a field; with ``-`` before it in reverse order.
    """

    workflow_id: int
    filter: str = ""
    sort: str = "id"


def job_columns(
    tx: Tx,
    wanted: JobList,
    fields: Sequence[str] = DEFAULT_FIELDS,
    *,
    offset: int = 0,
    limit: int = DEFAULT_JOBS,
    after_id: int | None = None,
    counts: bool = False,
) -> JobTable:
    """Return a part of a list of jobs.

    Args:
        wanted: The list.
        fields: Names of the fields.
        offset: Jobs to skip.
        limit: Most jobs.
        after_id: Begin after the job of this id instead.
        counts: Count all jobs of the list by status, too.

    Raises:
        NotFoundError: there is no such workflow.
        RuleError: the filter or a name is wrong, or the list does not have the job of ``after_id``.
    """
    for field in fields:
        _check_field(field, COLUMN_NAMES)
    order = kept_order(tx, wanted)
    ids = order.ids
    if after_id is not None:
        try:
            offset = ids.index(after_id) + 1
        except ValueError:
            raise RuleError(f"after: job {after_id} is not in the list; read it from its beginning") from None
    part = ids[offset : offset + limit]
    columns = _columns(tx, wanted.workflow_id, part, fields)
    return JobTable(columns, len(ids), offset, order.counts if counts else {})


def _check_field(name: str, names: Sequence[str]) -> None:
    if name not in names:
        what = "cannot be sorted by" if name in COLUMN_NAMES else "have no field"
        raise RuleError(f"jobs {what} {name!r}{suggestion(name, names, len(names))}")


def order_tag(tx: Tx, wanted: JobList, lifetime_s: int) -> str:
    """Return the tag of a list: that of the workflow, and of its kept order if that is older.

    Args:
        lifetime_s: Seconds after which it changes at the latest.
    """
    marks = workflow_marks(tx, wanted.workflow_id)
    tag, kept = view_tag(marks, lifetime_s), kept_order(tx, wanted)
    return tag if kept.tag == view_tag(marks, ORDER_TAG_LIFETIME_S) else f"{tag}.{kept.tag}"


def kept_order(tx: Tx, wanted: JobList) -> KeptOrder:
    """Return the ids of a list of jobs in its order.

    Raises:
        NotFoundError: there is no such workflow.
        RuleError: the filter or the name of the field is wrong.
    """
    _check_field(wanted.sort.removeprefix(_REVERSE), FIELD_NAMES)
    marks = workflow_marks(tx, wanted.workflow_id)
    key, tag = (wanted, marks.created), view_tag(marks, ORDER_TAG_LIFETIME_S)
    kept = _kept.get(tx, key)
    if kept is None or not (kept.tag == tag or 0 <= time.monotonic() - kept.made_s < ORDER_LIFETIME_S):
        ids, counts = _read_order(tx, wanted)
        kept = KeptOrder(tag, time.monotonic(), ids, {JobStatus(n).label: count for n, count in sorted(counts.items())})
        _kept.keep(tx, key, kept)
    return kept


_EVERY: Final = Statement(
    sa.select(t.JOB.c.id, t.JOB.c.status).where(t.JOB.c.workflow_id == param("workflow")).order_by(t.JOB.c.id),
    "workflow",
)


def _read_order(tx: Tx, wanted: JobList) -> tuple["array[int]", Counter[int]]:
    """Return the ids of a list of jobs in its order, and the number of its jobs by status."""
    field, is_reverse = wanted.sort.removeprefix(_REVERSE), wanted.sort.startswith(_REVERSE)
    if field == wanted.sort == "id" and not wanted.filter.strip():
        every = tx.rows(_EVERY, wanted.workflow_id)
        return array("q", [row[0] for row in every]), Counter([row[1] for row in every])
    conditions = [t.JOB.c.workflow_id == wanted.workflow_id, *filter_conditions(tx, wanted.workflow_id, wanted.filter)]
    query = sa.select(t.JOB.c.id, JOB_FIELDS["status"].expression).where(*conditions)
    key = t.JOB.c.id if field in COMPUTED_FIELDS or field == "id" else JOB_FIELDS[field].expression
    by = key.desc() if is_reverse else key.asc()
    order = [by] if key is t.JOB.c.id else [by.nulls_last(), t.JOB.c.id]
    rows = tx.connection.execute(query.order_by(*order)).all()
    ids = [row[0] for row in rows]
    if field in COMPUTED_FIELDS:
        ids.sort()
        keys = _computed(tx, wanted.workflow_id, field, ids)
        missing = [id_ for id_ in ids if keys(id_) is None]
        ids = [*sorted((id_ for id_ in ids if keys(id_) is not None), key=keys, reverse=is_reverse), *missing]
    return array("q", ids), Counter([row[1] for row in rows])


def _computed(tx: Tx, workflow_id: int, field: str, ids: Sequence[int]) -> Callable[[int], Any]:
    """Return the function from the id of a job to the value of a field that the database cannot compute."""
    structure = workflow_structure(tx, workflow_id)
    graph, position = structure.graph, structure.positions()
    if field == "group":
        return lambda id_: graph.labels[graph.group_of[position(id_)]]
    if field == "stage":
        return lambda id_: graph.stage_of[position(id_)]
    ended, seconds = JOB_FIELDS["ended"].expression, JOB_FIELDS["seconds"].expression
    query = sa.select(t.JOB.c.id, ended, seconds).where(t.JOB.c.workflow_id == workflow_id)
    if len(ids) <= MOST_JOBS:
        query = query.where(t.JOB.c.id.in_(ids))
    starts = {
        id_: start_seconds(end, None if duration_s is None else duration_s / 60)
        for id_, end, duration_s in tx.connection.execute(query)
    }
    return starts.get


def _columns(tx: Tx, workflow_id: int, ids: Sequence[int], fields: Sequence[str]) -> dict[str, list[Any]]:
    """Return the values of fields of jobs, in the order of the ids; a job that is gone has none but its id."""
    stored = [name for name in dict.fromkeys(fields) if name in JOB_FIELDS and name != "id"]
    by_name: dict[str, list[Any]] = {"id": list(ids)}
    query = sa.select(t.JOB.c.id, *(JOB_FIELDS[name].expression for name in stored)).where(
        t.JOB.c.workflow_id == workflow_id, t.JOB.c.id.in_(ids)
    )
    rows = {row[0]: row[1:] for row in tx.connection.execute(query)} if ids else {}
    gone = (None,) * len(stored)
    for place, name in enumerate(stored):
        show = JOB_FIELDS[name].shown
        values = [rows.get(id_, gone)[place] for id_ in ids]
        by_name[name] = [None if value is None else _short(show(value)) for value in values]
    for name in set(fields).intersection(COMPUTED_FIELDS):
        keys = _computed(tx, workflow_id, name, ids)
        found = [keys(id_) if id_ in rows else None for id_ in ids]
        by_name[name] = [None if v is None else utc_text(v) for v in found] if name == "started" else found
    if DEPENDENCIES in fields:
        waits_for = job_dependencies(tx, ids)
        by_name[DEPENDENCIES] = [waits_for.get(id_) for id_ in ids]
    return {name: by_name[name] for name in fields}


def _short(value: Any) -> Any:
    """Return a text without what is more than `MOST_TEXT` characters of it."""
    return f"{value[:MOST_TEXT]}…" if isinstance(value, str) and len(value) > MOST_TEXT else value
