"""The kinds of records that jobs share: resource requirements and failure handlers."""

import re
from collections.abc import Sequence
from typing import Final

import sqlalchemy as sa

from torc_framework.models import records as r
from torc_framework.store.database.sql import Tx
from torc_framework.store.errors import RuleError
from torc_framework.store.record_kinds.list_filters import equals
from torc_framework.store.records.events import record_user_action
from torc_framework.store.records.failure_rules import check_rules
from torc_framework.store.records.kind import ListFilter, RecordKind, Values, without_nulls
from torc_framework.store.records.requirements import (
    DEFAULT_REQUIREMENTS,
    default_requirements,
    parsed_requirements,
)
from torc_framework.store.tables import core as t


def _new_requirements(_tx: Tx, values: Values) -> Values:
    if values["name"] == DEFAULT_REQUIREMENTS:
        raise RuleError("Resource requirements cannot be named 'default': every workflow has its own")
    record = r.ResourceRequirementsRecord(**values)
    return {**values, **parsed_requirements(record)}


def _requirements_changes(_tx: Tx, before: Values, changes: Values) -> Values:
    given = without_nulls(changes)
    renamed = given.get("name", before["name"]) != before["name"]
    if renamed and DEFAULT_REQUIREMENTS in (before["name"], given["name"]):
        raise RuleError("Resource requirements cannot be renamed to or from 'default'")
    return {**given, **parsed_requirements(r.ResourceRequirementsRecord(**{**before, **given}))}


def _requirements_changed(tx: Tx, before: Values, after: Values) -> None:
    changes = {name: value for name, value in after.items() if value != before.get(name)}
    record_user_action(
        tx,
        after["workflow_id"],
        "update_resource_requirements",
        resource_requirements_id=after["id"],
        name=after["name"],
        changes=changes,
    )


def _replace_by_default(tx: Tx, records: Sequence[Values]) -> None:
    for record in records:
        if record["name"] == DEFAULT_REQUIREMENTS:
            raise RuleError("The default resource requirements of a workflow cannot be deleted")
        mine = sa.and_(t.JOB.c.workflow_id == record["workflow_id"], t.JOB.c.resource_requirements_id == record["id"])
        default = default_requirements(tx, record["workflow_id"])
        tx.connection.execute(sa.update(t.JOB).where(mine).values(resource_requirements_id=default))


def _has_runtime(text: str) -> sa.ColumnElement[bool]:
    """Compare the text of a runtime, or its seconds if the text is a number: Torc's Python client can only send one."""
    columns = t.RESOURCE_REQUIREMENTS.c
    seconds = int(text) if re.fullmatch(r"[0-9]{1,18}", text) else None
    return columns.runtime == text if seconds is None else columns.runtime_s == seconds


RESOURCE_REQUIREMENTS: Final = RecordKind(
    path="resource_requirements",
    title="Resource requirements",
    record=r.ResourceRequirementsRecord,
    table=t.RESOURCE_REQUIREMENTS,
    filters={
        **equals(t.RESOURCE_REQUIREMENTS, name=str, memory=str, num_cpus=int, num_gpus=int, num_nodes=int),
        "runtime": ListFilter(str, _has_runtime),
        "job_id": ListFilter(
            int,
            lambda job_id: t.RESOURCE_REQUIREMENTS.c.id.in_(
                sa.select(t.JOB.c.resource_requirements_id).where(t.JOB.c.id == job_id)
            ),
        ),
    },
    before_create=_new_requirements,
    before_update=_requirements_changes,
    after_update=_requirements_changed,
    before_delete=_replace_by_default,
    kept=t.RESOURCE_REQUIREMENTS.c.name == DEFAULT_REQUIREMENTS,
)


def _checked_handler(_tx: Tx, values: Values) -> Values:
    if "rules" in values:
        check_rules("", values["rules"])
    return values


def _remove_from_jobs(tx: Tx, records: Sequence[Values]) -> None:
    for record in records:
        mine = sa.and_(t.JOB.c.workflow_id == record["workflow_id"], t.JOB.c.failure_handler_id == record["id"])
        tx.connection.execute(sa.update(t.JOB).where(mine).values(failure_handler_id=None))


FAILURE_HANDLERS: Final = RecordKind(
    path="failure_handlers",
    title="Failure handler",
    record=r.FailureHandlerRecord,
    table=t.FAILURE_HANDLER,
    filters=equals(t.FAILURE_HANDLER, name=str),
    before_create=_checked_handler,
    before_update=lambda tx, _record, changes: _checked_handler(tx, without_nulls(changes)),
    before_delete=_remove_from_jobs,
)
