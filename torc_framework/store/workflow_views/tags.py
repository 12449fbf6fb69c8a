"""Tags of views: a view of a workflow is the same as long as its tag is."""

import time
from typing import Final

import sqlalchemy as sa

from torc_framework.store.database.sql import Statement, Tx, number, param
from torc_framework.store.errors import NotFoundError
from torc_framework.store.tables import core as t

_NEWEST: Final = (
    sa.select(sa.func.max(t.EVENT.c.id)).where(t.EVENT.c.workflow_id == t.WORKFLOW_STATUS.c.id).scalar_subquery()
)
_TAG: Final = Statement(
    sa.select(t.WORKFLOW_STATUS.c.structure, t.WORKFLOW_STATUS.c.run_id, sa.func.coalesce(_NEWEST, number(0))).where(
        t.WORKFLOW_STATUS.c.id == param("workflow")
    ),
    "workflow",
)


def view_tag(tx: Tx, workflow_id: int, lifetime_s: int | None = None) -> str:
    """Return a text that changes with every event of a workflow, and with every change of its jobs.

    Args:
        lifetime_s: Seconds after which it changes at the latest, for what passes without an event.

    Raises:
        NotFoundError: there is no such workflow.
    """
    row = tx.row(_TAG, workflow_id)
    if row is None:
        raise NotFoundError("Workflow", workflow_id)
    structure, run_id, event_id = row
    tag = f"{event_id}.{structure}.{run_id}"
    return tag if lifetime_s is None else f"{tag}.{int(time.time() // lifetime_s)}"
