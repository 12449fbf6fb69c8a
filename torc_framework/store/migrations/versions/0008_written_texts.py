"""Commands are kept as they were written, for whoever moves a workflow to another database."""

import sqlalchemy as sa
from alembic import op

revision = "0008"
down_revision = "0007"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Add the texts of a job that name user data; those of older jobs are not known any more."""
    op.add_column("job", sa.Column("written_texts", sa.String(), nullable=True))
