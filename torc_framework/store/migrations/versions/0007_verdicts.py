"""Verdicts on failures that waited for one are kept."""

import sqlalchemy as sa
from alembic import op

revision = "0007"
down_revision = "0006"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Make the table of verdicts."""
    op.create_table(
        "verdict",
        sa.Column("id", sa.Integer(), nullable=False),
        sa.Column("workflow_id", sa.Integer(), nullable=False),
        sa.Column("job_id", sa.Integer(), nullable=False),
        sa.Column("run_id", sa.Integer(), nullable=False),
        sa.Column("attempt_id", sa.Integer(), nullable=False),
        sa.Column("action", sa.String(), nullable=False),
        sa.Column("reason", sa.String(), nullable=False),
        sa.Column("confidence", sa.Float(), nullable=True),
        sa.Column("evidence", sa.JSON(), nullable=False),
        sa.Column("judge", sa.String(), nullable=False),
        sa.Column("judge_kind", sa.String(), nullable=False),
        sa.Column("user", sa.String(), nullable=True),
        sa.Column("memory", sa.String(), nullable=True),
        sa.Column("runtime", sa.String(), nullable=True),
        sa.Column("num_cpus", sa.Integer(), nullable=True),
        sa.Column("num_gpus", sa.Integer(), nullable=True),
        sa.Column("judged_at", sa.String(), nullable=False),
        sa.ForeignKeyConstraint(
            ["workflow_id"], ["workflow.id"], name="fk_verdict_workflow_id_workflow", ondelete="CASCADE"
        ),
        sa.ForeignKeyConstraint(["job_id"], ["job.id"], name="fk_verdict_job_id_job", ondelete="CASCADE"),
        sa.PrimaryKeyConstraint("id", name="pk_verdict"),
    )
    op.create_index("ix_verdict_job_id", "verdict", ["job_id"])
    op.create_index("ix_verdict_workflow_id_job_id", "verdict", ["workflow_id", "job_id"])
