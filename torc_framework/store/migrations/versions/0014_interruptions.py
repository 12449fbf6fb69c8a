"""Jobs that ended only because their runner had to end run again, and say what a clean exit after a stop means."""

import sqlalchemy as sa
from alembic import op

revision = "0014"
down_revision = "0013"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Add both columns, and an index of the interrupted jobs."""
    op.add_column(
        "job", sa.Column("clean_exit_after_stop", sa.String(), server_default=sa.text("'auto'"), nullable=False)
    )
    op.add_column("job", sa.Column("is_interrupted", sa.Boolean(), server_default=sa.text("0"), nullable=False))
    interrupted = sa.text("is_interrupted <> 0")
    op.create_index(
        "ix_job_by_interruption", "job", ["workflow_id"], sqlite_where=interrupted, postgresql_where=interrupted
    )
