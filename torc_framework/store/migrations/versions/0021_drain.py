"""Runners may be drained, and have the time at which they were last heard of."""

import sqlalchemy as sa
from alembic import op

revision = "0021"
down_revision = "0020"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Add the request to drain, and the time: UTC, ISO 8601."""
    op.add_column("compute_node", sa.Column("is_draining", sa.Boolean(), nullable=True))
    op.add_column("compute_node", sa.Column("last_heard_at", sa.String(), nullable=True))
