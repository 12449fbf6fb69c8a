"""The failed jobs of a workflow, grouped by the way in which they ended."""

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Final

import sqlalchemy as sa
from attrs import Factory, define

from torc_framework.errors import suggestion
from torc_framework.graph.drawn_graph import DIGITS, group_label
from torc_framework.job_filters import filter_text, quoted_value
from torc_framework.models.statuses import FAILURES, JobStatus
from torc_framework.models.workflow_views import FailuresView, LikeFailures
from torc_framework.store.database.sql import Row, Statement, Tx, number, numbers, param
from torc_framework.store.errors import RuleError
from torc_framework.store.runs.workflow_status import workflow_status
from torc_framework.store.tables import core as t
from torc_framework.store.workflow_views.limits import DEFAULT_GROUPS, DEFAULT_KEYS

NAMED_JOBS: Final = 5
NAMED_KEYS: Final = 5
"""Hosts and groups of jobs that are named."""
MOST_SIGNATURE: Final = 200
"""Most characters of a signature; a longer reason is cut."""
UNKNOWN_CLASS: Final = "unknown"
_WILDCARD: Final = "*"
_J, _R, _N = t.JOB.c, t.RESULT.c, t.COMPUTE_NODE.c

_FAILED: Final = Statement(
    sa.select(
        _J.id,
        _J.name,
        _J.status,
        _R.exit_class,
        sa.func.coalesce(_R.exit_code, _R.return_code),
        _R.signal,
        _R.reason,
        _R.completion_time,
        _N.hostname,
    )
    .select_from(
        t.JOB.outerjoin(t.RESULT, _R.id == _J.result_id).outerjoin(t.COMPUTE_NODE, _N.id == _R.compute_node_id)
    )
    .where(_J.workflow_id == param("workflow"), _J.status.in_(numbers(FAILURES)), _J.is_interrupted == number(0))
    .order_by(_J.id),
    "workflow",
)
_RETRIED: Final = Statement(
    sa.select(sa.func.count(sa.distinct(_R.job_id)))
    .select_from(t.RESULT.join(t.JOB, _J.id == _R.job_id))
    .where(
        _R.workflow_id == param("workflow"),
        _R.status.in_(numbers(FAILURES)),
        sa.or_(_J.status.not_in(numbers(FAILURES)), _J.is_interrupted != number(0)),
    ),
    "workflow",
)
_CANCELED: Final = Statement(
    sa.select(sa.func.count()).where(_J.workflow_id == param("workflow"), _J.status == number(JobStatus.CANCELED)),
    "workflow",
)


def signature(reason: str | None) -> str | None:
    """Return the reason of an ending with ``*`` for each run of digits, and for what is too long."""
    if reason is None:
        return None
    pattern = DIGITS.sub(_WILDCARD, reason)
    return pattern if len(pattern) <= MOST_SIGNATURE else f"{pattern[:MOST_SIGNATURE]}{_WILDCARD}"


@define
class _FailedTogether:
    """Failed jobs that agree in what separates groups.

    Attributes:
        example: The values of the first of them.
    """

    example: Row
    statuses: Counter[str] = Factory(Counter)
    groups: Counter[str] = Factory(Counter)
    hosts: Counter[str] = Factory(Counter)
    ends: list[str] = Factory(list)
    job_ids: list[int] = Factory(list)
    job_names: list[str] = Factory(list)


_KEYS: Final[Mapping[str, Callable[[Row], Any]]] = {
    "status": lambda row: JobStatus(row[2]).label,
    "class": lambda row: row[3],
    "exit": lambda row: row[4],
    "signal": lambda row: row[5],
    "reason": lambda row: signature(row[6]),
    "node": lambda row: row[8],
    "group": lambda row: group_label(row[1]),
}
"""What may separate groups, by the name of the field of a filter, from the rows of `_FAILED`."""


def failures_view(
    tx: Tx, workflow_id: int, by: Sequence[str] = DEFAULT_KEYS, limit: int = DEFAULT_GROUPS
) -> FailuresView:
    """Return the failed jobs of a workflow in groups.

    Args:
        by: Names of what separates groups, which are fields of the filter language.
        limit: Most groups.

    Raises:
        NotFoundError: there is no such workflow.
        RuleError: groups cannot be separated by one of the names.
    """
    workflow_status(tx, workflow_id)  # raises NotFoundError
    for name in by:
        if name not in _KEYS:
            raise RuleError(f"by: failures have no {name!r}{suggestion(name, list(_KEYS))}")
    keys = [(name, _KEYS[name]) for name in dict.fromkeys(by)]
    found: dict[tuple[Any, ...], _FailedTogether] = {}
    rows = tx.rows(_FAILED, workflow_id)
    for row in rows:
        key = tuple([value(row) for _, value in keys])
        group = found.get(key)
        if group is None:
            group = found[key] = _FailedTogether(row)
        group.statuses[JobStatus(row[2]).label] += 1
        group.groups[group_label(row[1])] += 1
        if row[7] is not None:
            group.ends.append(row[7])
        if row[8] is not None:
            group.hosts[row[8]] += 1
        if len(group.job_ids) < NAMED_JOBS:
            group.job_ids.append(row[0])
            group.job_names.append(row[1])
    ordered = sorted(found.items(), key=lambda item: (-item[1].statuses.total(), item[1].job_ids[0]))
    shown = [_shown(group, _filter([name for name, _ in keys], key)) for key, group in ordered[:limit]]
    return FailuresView(
        shown,
        len(found),
        len(rows),
        int(tx.value(_RETRIED, workflow_id) or 0),
        int(tx.value(_CANCELED, workflow_id) or 0),
    )


def _shown(group: _FailedTogether, filter_: str) -> LikeFailures:
    _, _, _, exit_class, exit_, signal, reason, *_ = group.example
    return LikeFailures(
        group.statuses.total(),
        dict(group.statuses),
        exit_class or UNKNOWN_CLASS,
        exit_,
        signal,
        signature(reason),
        dict(group.groups.most_common(NAMED_KEYS)),
        len(group.groups),
        dict(group.hosts.most_common(NAMED_KEYS)),
        len(group.hosts),
        min(group.ends, default=None),
        max(group.ends, default=None),
        group.job_ids,
        group.job_names,
        filter_,
    )


def _filter(names: Iterable[str], key: Sequence[Any]) -> str:
    """Return the filter that finds the jobs of a group."""
    terms: list[tuple[str, object]] = [("interrupted", "no")]
    if "status" not in names:
        terms.insert(0, ("status", ",".join(status.label for status in FAILURES)))
    for name, value in zip(names, key, strict=True):
        is_text = isinstance(value, str)
        terms.append(
            (name, quoted_value(value, keeps_wildcards=name == "reason", always=name == "group") if is_text else value)
        )
    return filter_text(terms)
