"""Runners have a lease with an epoch, and the number and answer of their last exchange."""

import sqlalchemy as sa
from alembic import op

revision = "0022"
down_revision = "0021"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Add the epoch and the holder of the lease, and what the last exchange was."""
    for name in ("epoch", "taken_over_by", "last_seq"):
        op.add_column("compute_node", sa.Column(name, sa.Integer(), nullable=True))
    op.add_column("compute_node", sa.Column("last_answer", sa.String(), nullable=True))
