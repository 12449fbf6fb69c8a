"""A workflow counts the changes of its structure, so that what is computed from it can be kept."""

import sqlalchemy as sa
from alembic import op

revision = "0020"
down_revision = "0019"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Add the number of changes."""
    op.add_column("workflow_status", sa.Column("structure", sa.Integer(), nullable=False, server_default=sa.text("0")))
