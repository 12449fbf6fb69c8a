"""Events are followed by their ids, which are never used twice."""

from alembic import op

revision = "0002"
down_revision = "0001"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Let ids only grow; find a workflow's events by id."""
    if op.get_bind().dialect.name == "sqlite":
        with op.batch_alter_table("event", recreate="always", table_kwargs={"sqlite_autoincrement": True}):
            pass
    op.create_index("ix_event_workflow_id_id", "event", ["workflow_id", "id"])
