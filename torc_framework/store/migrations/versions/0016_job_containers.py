"""Jobs may name the image of their container, and set options of executors."""

import sqlalchemy as sa
from alembic import op

revision = "0016"
down_revision = "0015"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Add both columns; a job that has neither runs as before."""
    op.add_column("job", sa.Column("container", sa.String(), nullable=True))
    op.add_column("job", sa.Column("executor_options", sa.JSON(), nullable=True))
