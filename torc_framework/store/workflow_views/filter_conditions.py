"""From the terms of a filter to conditions on the table of jobs.

Each term but those on names is one comparison with an expression of `job_fields`. Terms on group, stage and start are
answered from the structure of the workflow and from its results first, as ranges of ids.
"""

from collections.abc import Callable, Iterable, Sequence
from typing import Any, Final

import msgspec
import sqlalchemy as sa

from torc_framework.job_filters import (
    FilterError,
    FilterTerm,
    LabelBegin,
    Presence,
    TextPattern,
    TimeSpan,
    parse_filter,
)
from torc_framework.store.database.sql import Statement, Tx, param
from torc_framework.store.errors import RuleError
from torc_framework.store.records.events import utc_text
from torc_framework.store.tables import core as t
from torc_framework.store.workflow_views.attempt_times import start_seconds
from torc_framework.store.workflow_views.job_fields import JOB_FIELDS
from torc_framework.store.workflow_views.structure import WorkflowStructure, id_ranges, workflow_structure

_MOST_RANGES: Final = 50
"""Most ranges of ids that are comparisons of a condition; more are a list."""
_LIKE_ESCAPE: Final = "\\"
_RESULTS: Final = Statement(
    sa.select(t.JOB.c.id, t.RESULT.c.completion_time, t.RESULT.c.exec_time_minutes)
    .join(t.RESULT, t.RESULT.c.id == t.JOB.c.result_id)
    .where(t.JOB.c.workflow_id == param("workflow"))
    .order_by(t.JOB.c.id),
    "workflow",
)


def filter_conditions(tx: Tx, workflow_id: int, text: str) -> list[sa.ColumnElement[bool]]:
    """Return the conditions of a filter on the jobs of a workflow.

    Raises:
        NotFoundError: there is no such workflow.
        RuleError: the text is no filter.
    """
    try:
        terms = parse_filter(text)
    except FilterError as error:
        raise RuleError(str(error)) from error
    return [_condition(tx, workflow_id, term) for term in terms]


def _condition(tx: Tx, workflow_id: int, term: FilterTerm) -> sa.ColumnElement[bool]:
    if term.field in _FOUND_BEFORE:
        structure = workflow_structure(tx, workflow_id)
        found = _among(tx, structure, _FOUND_BEFORE[term.field](tx, workflow_id, structure, term))
        return sa.not_(found) if term.is_negated else found
    expression = JOB_FIELDS[term.field].expression
    one_of = sa.or_(*(_comparison(expression, term.operator, value) for value in term.values))
    # A comparison with a missing value is NULL, which is not true: its negation has to be.
    return sa.or_(one_of.is_(None), sa.not_(one_of)) if term.is_negated else one_of


def _comparison(expression: sa.ColumnElement[Any], operator: str, value: Any) -> sa.ColumnElement[bool]:
    if isinstance(value, Presence):
        return expression.is_(None) if value is Presence.NONE else expression.is_not(None)
    if isinstance(value, TextPattern):
        like = "%".join(map(_escaped, value.parts)).lower()
        return sa.func.lower(expression).like(like, escape=_LIKE_ESCAPE)
    if isinstance(value, TimeSpan):
        return _time_comparison(expression, operator, value)
    return _OPERATORS[operator](expression, int(value) if isinstance(value, bool) else value)


_OPERATORS: Final[dict[str, Callable[[Any, Any], sa.ColumnElement[bool]]]] = {
    "=": lambda a, b: a == b,
    "<": lambda a, b: a < b,
    "<=": lambda a, b: a <= b,
    ">": lambda a, b: a > b,
    ">=": lambda a, b: a >= b,
}


def _escaped(text: str) -> str:
    for letter in (_LIKE_ESCAPE, "%", "_"):
        text = text.replace(letter, _LIKE_ESCAPE + letter)
    return text


def _time_comparison(expression: sa.ColumnElement[Any], operator: str, span: TimeSpan) -> sa.ColumnElement[bool]:
    """Compare a time, which is a text in UTC and ISO 8601, with a span of time."""
    start, end = utc_text(span.start_s), utc_text(span.end_s)
    if operator == "=":
        return sa.and_(expression >= start, expression < end)
    # Later than a day is after its end; a moment has no length.
    bound = end if operator in (">", "<=") and span.end_s > span.start_s else start
    if operator in (">", ">="):
        return expression >= bound if bound == end != start else _OPERATORS[operator](expression, bound)
    return expression < bound if bound == end != start else _OPERATORS[operator](expression, bound)


def _satisfies(span: TimeSpan, operator: str, seconds: float) -> bool:
    """Return whether a time compares so with a span of time, as `_time_comparison` does."""
    has_length = span.end_s > span.start_s
    return {
        "=": span.start_s <= seconds < span.end_s,
        "<": seconds < span.start_s,
        ">=": seconds >= span.start_s,
        ">": seconds >= span.end_s if has_length else seconds > span.start_s,
        "<=": seconds < span.end_s if has_length else seconds <= span.start_s,
    }[operator]


# --- fields that the database cannot compute ----------------------------------------------------------


def _of_group(_tx: Tx, _workflow_id: int, structure: WorkflowStructure, term: FilterTerm) -> Iterable[int]:
    graph = structure.graph
    wanted = {
        number
        for number, label in enumerate(graph.labels)
        if any(
            value is Presence.ANY or (isinstance(value, TextPattern | LabelBegin) and value.matches(label))
            for value in term.values
        )
    }
    return [id_ for id_, group in zip(structure.ids, graph.group_of, strict=True) if group in wanted]


def _of_stage(_tx: Tx, _workflow_id: int, structure: WorkflowStructure, term: FilterTerm) -> Iterable[int]:
    compare: Any = _OPERATORS[term.operator]
    wanted = {
        stage
        for stage in set(structure.graph.stage_of)
        if any(
            value is Presence.ANY or (not isinstance(value, Presence) and compare(stage, value))
            for value in term.values
        )
    }
    return [id_ for id_, stage in zip(structure.ids, structure.graph.stage_of, strict=True) if stage in wanted]


def _of_start(tx: Tx, workflow_id: int, structure: WorkflowStructure, term: FilterTerm) -> Iterable[int]:
    starts = {
        id_: start
        for id_, ended, minutes in tx.rows(_RESULTS, workflow_id)
        if (start := start_seconds(ended, minutes)) is not None
    }
    spans = [value for value in term.values if isinstance(value, TimeSpan)]
    found = [id_ for id_, start in starts.items() if any(_satisfies(span, term.operator, start) for span in spans)]
    if Presence.ANY in term.values:
        found = list(starts)
    if Presence.NONE in term.values:
        without = [id_ for id_ in structure.ids if id_ not in starts]
        found = sorted({*found, *without})
    return found


_FOUND_BEFORE: Final[dict[str, Callable[[Tx, int, WorkflowStructure, FilterTerm], Iterable[int]]]] = {
    "group": _of_group,
    "stage": _of_stage,
    "started": _of_start,
}


def _among(tx: Tx, structure: WorkflowStructure, ids: Iterable[int]) -> sa.ColumnElement[bool]:
    """Return the condition that a job is one of these; other workflows' jobs may satisfy it, too."""
    ranges = id_ranges(ids, structure.ids)
    column = t.JOB.c.id
    if len(ranges) <= _MOST_RANGES:
        return sa.or_(sa.false(), *(column.between(first, last) for first, last in ranges))
    return column.in_(_listed(tx, ranges))


def _listed(tx: Tx, ranges: Sequence[tuple[int, int]]) -> sa.Select[Any]:
    """Return the query for ids that are sent as one JSON text, because a statement takes few values."""
    ids = [id_ for first, last in ranges for id_ in range(first, last + 1)]
    sent = msgspec.json.encode(ids).decode()
    if tx.connection.dialect.name == "sqlite":
        return sa.select(sa.func.json_each(sent).table_valued("value").c.value)
    elements = sa.func.json_array_elements_text(sa.cast(sa.literal(sent, sa.String), sa.JSON)).table_valued("value")
    return sa.select(sa.cast(elements.c.value, sa.BigInteger))
