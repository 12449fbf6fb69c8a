"""What went into jobs is remembered when it changes; workflows have remote workers."""

import sqlalchemy as sa
from alembic import op

revision = "0004"
down_revision = "0003"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Add the hash of a job's inputs, and the machines that a workflow may use."""
    op.add_column("job", sa.Column("input_hash", sa.String(), nullable=True))
    changed = sa.text("input_hash IS NOT NULL")
    op.create_index("ix_job_by_change", "job", ["workflow_id"], sqlite_where=changed, postgresql_where=changed)
    op.create_table(
        "remote_worker",
        sa.Column("workflow_id", sa.Integer(), nullable=False),
        sa.Column("worker", sa.String(), nullable=False),
        sa.ForeignKeyConstraint(
            ["workflow_id"], ["workflow.id"], name="fk_remote_worker_workflow_id_workflow", ondelete="CASCADE"
        ),
        sa.PrimaryKeyConstraint("workflow_id", "worker", name="pk_remote_worker"),
        sqlite_with_rowid=False,
    )
