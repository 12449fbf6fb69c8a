"""The kinds of records of results and events."""

import json
from collections.abc import Sequence
from typing import Final

import sqlalchemy as sa

from torc_framework.models import records as r
from torc_framework.models.statuses import JobStatus
from torc_framework.store.database.sql import Statement, Tx, param
from torc_framework.store.errors import RuleError
from torc_framework.store.job_state.structure_changes import count_structure_change
from torc_framework.store.record_kinds.jobs import JOBS
from torc_framework.store.record_kinds.list_filters import equals
from torc_framework.store.records.crud import get
from torc_framework.store.records.events import now_ms
from torc_framework.store.records.kind import ListFilter, RecordKind, Values, without_nulls
from torc_framework.store.tables import core as t


def status_number(label: str) -> JobStatus:
    """Return the status that has a label.

    Raises:
        RuleError: no status has it.
    """
    try:
        return JobStatus.from_label(label)
    except ValueError as error:
        raise RuleError(str(error)) from error


def _new_result(tx: Tx, values: Values) -> Values:
    job = get(tx, JOBS, values["job_id"])
    if job["workflow_id"] != values["workflow_id"]:
        raise RuleError(f"Job {job['id']} is not in workflow {values['workflow_id']}")
    status_number(values["status"])
    return values


def _result_changes(tx: Tx, record: Values, changes: Values) -> Values:
    count_structure_change(tx, record["workflow_id"])  # what is kept of the results is read again
    if changes.get("status") is not None:
        status_number(changes["status"])
    return without_nulls(changes)


_NO_RESULT = Statement(
    sa.update(t.JOB)
    .where(t.JOB.c.id == param("job"), t.JOB.c.result_id == param("result"))
    .values(result_id=sa.null()),
    "job",
    "result",
)


def _forget_results(tx: Tx, records: Sequence[Values]) -> None:
    tx.run_each(_NO_RESULT, [(record["job_id"], record["id"]) for record in records])
    for workflow_id in {record["workflow_id"] for record in records}:
        count_structure_change(tx, workflow_id)


_CURRENT: Final = sa.exists().where(t.JOB.c.id == t.RESULT.c.job_id, t.JOB.c.result_id == t.RESULT.c.id)
"""The result is the current one of its job."""

RESULTS: Final = RecordKind(
    path="results",
    title="Result",
    record=r.ResultRecord,
    table=t.RESULT,
    filters={
        "job_id": ListFilter(int, lambda job_id: t.RESULT.c.job_id == job_id, finds_few=True),
        "job_ids": ListFilter(int, t.RESULT.c.job_id.in_, finds_few=True, repeated=True),
        **equals(t.RESULT, run_id=int, return_code=int, compute_node_id=int),
        "status": ListFilter(JobStatus, lambda label: t.RESULT.c.status == status_number(label)),
        "all_runs": ListFilter(bool, lambda yes: sa.true() if yes else _CURRENT, default=False),
    },
    before_create=_new_result,
    before_update=_result_changes,
    before_delete=_forget_results,
)


def _new_event(_tx: Tx, values: Values) -> Values:
    if "data" not in values:
        raise RuleError("data is missing: an event must have it")
    return {**values, "timestamp": now_ms()}


_CATEGORY: Final = t.EVENT.c.data["category"].as_string()
_EVENT_TYPE: Final = t.EVENT.c.data["event_type"].as_string()

_DATA_TEXT: Final = sa.func.lower(sa.cast(t.EVENT.c.data, sa.Text))


def _has_text(text: str) -> sa.ColumnElement[bool]:
    """Return the condition that an event's data contain a text; A to Z match in any letter case."""
    return _DATA_TEXT.contains(json.dumps(text)[1:-1].lower(), autoescape=True)


EVENTS: Final = RecordKind(
    path="events",
    title="Event",
    record=r.EventRecord,
    table=t.EVENT,
    filters={
        "category": ListFilter(str, lambda value: sa.or_(value == _CATEGORY, value == _EVENT_TYPE)),
        "text": ListFilter(str, _has_text),
        "after_timestamp": ListFilter(int, lambda value: t.EVENT.c.timestamp > value),
    },
    before_create=_new_event,
    after_create=lambda tx, event: tx.workflows_with_events.add(event["workflow_id"]),
)
