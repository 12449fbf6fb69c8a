"""How actions ended is recorded, and an action whose runner died is due again."""

import sqlalchemy as sa
from alembic import op

revision = "0006"
down_revision = "0005"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Add the end of an action, its error, and whether it is under way."""
    op.add_column("workflow_action", sa.Column("finished_at", sa.String(), nullable=True))
    op.add_column("workflow_action", sa.Column("error", sa.String(), nullable=True))
    op.add_column("workflow_action", sa.Column("is_open", sa.Boolean(), server_default=sa.text("0"), nullable=False))
