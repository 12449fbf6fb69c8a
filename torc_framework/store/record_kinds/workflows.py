"""The kind of record of workflows."""

from collections.abc import Sequence
from typing import Final

import sqlalchemy as sa

from torc_framework.models import records as r
from torc_framework.store.database.sql import Tx
from torc_framework.store.record_kinds.list_filters import equals
from torc_framework.store.records.kind import ListFilter, RecordKind, Values, without_nulls
from torc_framework.store.records.requirements import (
    check_shell,
    check_sort_method,
)
from torc_framework.store.tables import core as t

_ARCHIVED: Final = sa.select(t.WORKFLOW_STATUS.c.id).where(t.WORKFLOW_STATUS.c.is_archived)


def _workflow_changes(_tx: Tx, _workflow: Values, changes: Values) -> Values:
    check_sort_method(changes.get("jobs_sort_method"))
    check_shell(changes.get("shell"))
    return without_nulls(changes)


def _notify_listeners(tx: Tx, workflows: Sequence[Values]) -> None:
    ids = {workflow["id"] for workflow in workflows}
    tx.workflows_to_wake |= ids
    tx.workflows_with_events |= ids


WORKFLOWS: Final = RecordKind(
    path="workflows",
    title="Workflow",
    record=r.WorkflowRecord,
    table=t.WORKFLOW,
    filters={
        **equals(t.WORKFLOW, name=str, user=str),
        "description": ListFilter(str, lambda text: t.WORKFLOW.c.description.icontains(text, autoescape=True)),
        "is_archived": ListFilter(
            bool, lambda yes: t.WORKFLOW.c.id.in_(_ARCHIVED) if yes else t.WORKFLOW.c.id.not_in(_ARCHIVED)
        ),
    },
    before_update=_workflow_changes,
    before_delete=_notify_listeners,
)
