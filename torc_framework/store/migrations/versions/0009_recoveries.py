"""What was done about failed jobs is kept."""

import sqlalchemy as sa
from alembic import op

revision = "0009"
down_revision = "0008"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Make the table of recovered jobs."""
    op.create_table(
        "recovery",
        sa.Column("id", sa.Integer(), nullable=False),
        sa.Column("workflow_id", sa.Integer(), nullable=False),
        sa.Column("job_id", sa.Integer(), nullable=False),
        sa.Column("job_name", sa.String(), nullable=False),
        sa.Column("recovered_at", sa.String(), nullable=False),
        sa.Column("run_id", sa.Integer(), nullable=False),
        sa.Column("attempt_id", sa.Integer(), nullable=False),
        sa.Column("new_run_id", sa.Integer(), nullable=False),
        sa.Column("decided_by", sa.String(), nullable=False),
        sa.Column("reason", sa.String(), nullable=False),
        sa.Column("causes", sa.JSON(), nullable=False),
        sa.Column("confidence", sa.Float(), nullable=False),
        sa.Column("evidence", sa.JSON(), nullable=False),
        sa.Column("old_requirements_id", sa.Integer(), nullable=False),
        sa.Column("new_requirements_id", sa.Integer(), nullable=False),
        sa.Column("old_memory", sa.String(), nullable=False),
        sa.Column("new_memory", sa.String(), nullable=False),
        sa.Column("old_runtime", sa.String(), nullable=False),
        sa.Column("new_runtime", sa.String(), nullable=False),
        sa.Column("old_num_cpus", sa.Integer(), nullable=False),
        sa.Column("new_num_cpus", sa.Integer(), nullable=False),
        sa.ForeignKeyConstraint(
            ["workflow_id"], ["workflow.id"], name="fk_recovery_workflow_id_workflow", ondelete="CASCADE"
        ),
        sa.PrimaryKeyConstraint("id", name="pk_recovery"),
    )
    op.create_index("ix_recovery_workflow_id_job_id", "recovery", ["workflow_id", "job_id"])
