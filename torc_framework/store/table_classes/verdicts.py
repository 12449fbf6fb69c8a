"""The table of verdicts on jobs in ``pending_failed``."""

from typing import Any

import sqlalchemy as sa
from sqlmodel import Field

from torc_framework.store.table_classes.base import Base


class VerdictRow(Base, table=True):
    """`VerdictRecord` without the job's name, one row for each verdict; deleted with its job only."""

    __table_args__ = (sa.Index(None, "workflow_id", "job_id"),)
    id: int | None = Field(default=None, primary_key=True)
    workflow_id: int = Field(foreign_key="workflow.id", ondelete="CASCADE")
    job_id: int = Field(foreign_key="job.id", ondelete="CASCADE", index=True)
    run_id: int
    attempt_id: int
    action: str
    reason: str
    confidence: float | None = None
    evidence: Any = Field(sa_type=sa.JSON(none_as_null=False), nullable=False)
    judge: str
    judge_kind: str
    user: str | None = None
    memory: str | None = None
    runtime: str | None = None
    num_cpus: int | None = None
    num_gpus: int | None = None
    judged_at: str
