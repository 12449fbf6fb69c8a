"""Jobs say what their attempts wait for that were given to an executor and have not begun."""

import sqlalchemy as sa
from alembic import op

revision = "0015"
down_revision = "0014"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Add the column."""
    op.add_column("job", sa.Column("waiting_reason", sa.String(), nullable=True))
