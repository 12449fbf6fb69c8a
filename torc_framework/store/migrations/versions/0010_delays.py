"""Jobs may have to wait before their next attempt."""

import sqlalchemy as sa
from alembic import op

revision = "0010"
down_revision = "0009"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Add the time before which a job may not begin."""
    op.add_column("job", sa.Column("not_before", sa.String(), nullable=True))
    delayed = sa.text("not_before IS NOT NULL")
    op.create_index("ix_job_by_delay", "job", ["workflow_id"], sqlite_where=delayed, postgresql_where=delayed)
