"""Workflows and jobs may name the shell that runs commands."""

import sqlalchemy as sa
from alembic import op

revision = "0011"
down_revision = "0010"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Add the shell of workflows and jobs; without one it is the default."""
    for table in ("workflow", "job"):
        op.add_column(table, sa.Column("shell", sa.String(), nullable=True))
