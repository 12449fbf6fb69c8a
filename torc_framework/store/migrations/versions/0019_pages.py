"""Pages of jobs and results begin after an id."""

from alembic import op

revision = "0019"
down_revision = "0018"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Add an index of the ids in each workflow, so that a page reads no row before its first."""
    for table in ("job", "result"):
        op.create_index(f"ix_{table}_workflow_id_id", table, ["workflow_id", "id"])
