"""On PostgreSQL ids come from the sequences of their tables."""

import sqlalchemy as sa
from alembic import op

revision = "0018"
down_revision = "0017"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Let each sequence go on after the largest id that was counted; SQLite keeps the counters."""
    connection = op.get_bind()
    if connection.dialect.name == "sqlite":
        return
    for table, last_id in connection.execute(sa.text("SELECT table_name, last_id FROM id_counter")).all():
        is_used = last_id > 0
        connection.execute(
            sa.text("SELECT setval(CAST(:sequence AS regclass), :value, CAST(:is_used AS boolean))"),
            {"sequence": f"{table}_id_seq", "value": max(1, last_id), "is_used": "true" if is_used else "false"},
        )
    connection.execute(sa.text("DELETE FROM id_counter"))
