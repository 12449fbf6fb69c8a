"""The table of recoveries: one row for each failed job that a recovery made run again."""

from typing import Any

import sqlalchemy as sa
from sqlmodel import Field

from torc_framework.store.table_classes.base import Base


class RecoveryRow(Base, table=True):
    """`RecoveryEntry`; the row is kept when its job is deleted."""

    __table_args__ = (sa.Index(None, "workflow_id", "job_id"),)
    id: int | None = Field(default=None, primary_key=True)
    workflow_id: int = Field(foreign_key="workflow.id", ondelete="CASCADE")
    job_id: int
    job_name: str
    recovered_at: str
    run_id: int
    attempt_id: int
    new_run_id: int
    decided_by: str
    reason: str
    causes: Any = Field(sa_type=sa.JSON(none_as_null=False), nullable=False)
    confidence: float
    evidence: Any = Field(sa_type=sa.JSON(none_as_null=False), nullable=False)
    old_requirements_id: int
    new_requirements_id: int
    old_memory: str
    new_memory: str
    old_runtime: str
    new_runtime: str
    old_num_cpus: int
    new_num_cpus: int
