"""Allocations may be named by any text, and requests for them are recorded before they are made."""

import sqlalchemy as sa
from alembic import op

revision = "0013"
down_revision = "0012"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Add the id as the batch system wrote it, the request's name, and the process that asks."""
    op.add_column("scheduled_compute_node", sa.Column("allocation_id", sa.String(), nullable=True))
    op.add_column("scheduled_compute_node", sa.Column("request", sa.String(), nullable=True))
    op.add_column("scheduled_compute_node", sa.Column("requester", sa.JSON(), nullable=True))
    is_open = sa.text("allocation_id IS NOT NULL AND status <> 'complete'")
    op.create_index(
        "uq_scheduled_compute_node_open",
        "scheduled_compute_node",
        ["workflow_id", "scheduler_type", "allocation_id"],
        unique=True,
        sqlite_where=is_open,
        postgresql_where=is_open,
    )
