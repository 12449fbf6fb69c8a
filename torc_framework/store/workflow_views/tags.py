"""Tags of views: a view of a workflow is the same as long as its tag is."""

import time
from typing import Final

import sqlalchemy as sa
from attrs import frozen

from torc_framework.store.database.sql import Statement, Tx, number, param
from torc_framework.store.errors import NotFoundError
from torc_framework.store.tables import core as t

_NEWEST: Final = (
    sa.select(sa.func.max(t.EVENT.c.id)).where(t.EVENT.c.workflow_id == t.WORKFLOW_STATUS.c.id).scalar_subquery()
)
_MARKS: Final = Statement(
    sa.select(
        sa.func.coalesce(t.WORKFLOW.c.timestamp, sa.literal_column("''")),
        t.WORKFLOW_STATUS.c.structure,
        t.WORKFLOW_STATUS.c.run_id,
        sa.func.coalesce(_NEWEST, number(0)),
    )
    .join(t.WORKFLOW, t.WORKFLOW.c.id == t.WORKFLOW_STATUS.c.id)
    .where(t.WORKFLOW_STATUS.c.id == param("workflow")),
    "workflow",
)


@frozen
class WorkflowMarks:
    """What tells states of a workflow apart.

    Attributes:
        created: When it was created, as text; the id of a workflow may be that of another in a restored database.
        structure: Number of changes of its structure.
        run_id: Its run.
        event_id: Id of its newest event; 0 without any.
    """

    created: str
    structure: int
    run_id: int
    event_id: int

    @property
    def version(self) -> tuple[str, int]:
        """Differs as soon as its structure does."""
        return self.created, self.structure


def workflow_marks(tx: Tx, workflow_id: int) -> WorkflowMarks:
    """Return what tells the present state of a workflow from others.

    Raises:
        NotFoundError: there is no such workflow.
    """
    row = tx.row(_MARKS, workflow_id)
    if row is None:
        raise NotFoundError("Workflow", workflow_id)
    return WorkflowMarks(*row)


def view_tag(marks: WorkflowMarks, lifetime_s: int) -> str:
    """Return a text of digits and dots that changes with every event of a workflow, and with every change of its jobs.

    Args:
        marks: Those of the workflow.
        lifetime_s: Seconds after which it changes at the latest, for what passes without an event.
    """
    created = "".join(filter(str.isdigit, marks.created))
    return f"{created}.{marks.event_id}.{marks.structure}.{marks.run_id}.{int(time.time() // lifetime_s)}"
