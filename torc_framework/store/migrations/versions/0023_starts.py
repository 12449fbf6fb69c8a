"""Running jobs have the time at which their attempts started."""

import sqlalchemy as sa
from alembic import op

revision = "0023"
down_revision = "0022"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Add the time: seconds since the epoch."""
    op.add_column("job", sa.Column("started_s", sa.Float(), nullable=True))
