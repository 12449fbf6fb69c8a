"""Workflows and jobs may set where the output of jobs goes."""

import sqlalchemy as sa
from alembic import op

revision = "0017"
down_revision = "0016"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Add the setting to workflows and jobs; without one the output goes to two files, which stay."""
    for table in ("workflow", "job"):
        op.add_column(table, sa.Column("stdio", sa.String(), nullable=True))
        op.add_column(table, sa.Column("delete_stdio_on_success", sa.Boolean(), nullable=True))
