"""The number of changes of a workflow's structure: its jobs, their names, and their dependencies."""

from typing import Final

import sqlalchemy as sa

from torc_framework.store.database.sql import Statement, Tx, number, param
from torc_framework.store.tables.core import WORKFLOW_STATUS

_COUNT: Final = Statement(
    sa.update(WORKFLOW_STATUS)
    .where(WORKFLOW_STATUS.c.id == param("workflow"))
    .values(structure=WORKFLOW_STATUS.c.structure + number(1)),
    "workflow",
)


def count_structure_change(tx: Tx, workflow_id: int) -> None:
    """Count a change of a job's record, of the set of jobs, or of dependencies; new workflows need not be counted."""
    tx.run(_COUNT, workflow_id)
