"""No id is used twice; a runner is told of jobs that were deleted while it had them."""

from typing import Final

import sqlalchemy as sa
from alembic import op

revision = "0012"
down_revision = "0011"
branch_labels = None
depends_on = None

_TABLES: Final = (
    "access_group",
    "compute_node",
    "dependency_group",
    "failure_handler",
    "file",
    "job",
    "local_scheduler",
    "recovery",
    "resource_requirements",
    "result",
    "scheduled_compute_node",
    "slurm_scheduler",
    "user_data",
    "user_group_membership",
    "verdict",
    "workflow",
    "workflow_action",
)
_REFERENCES: Final = {
    "job": ("SELECT max(job_id) FROM recovery",),
    "resource_requirements": (
        "SELECT max(old_requirements_id) FROM recovery",
        "SELECT max(new_requirements_id) FROM recovery",
    ),
    "result": ("SELECT max(result_id) FROM job",),
}
"""Further questions for ids that a table has had."""
_SQLITE: Final = {
    name: (f"SELECT seq FROM sqlite_sequence WHERE name = '{name}'",)
    for name in ("access_group", "compute_node", "workflow")
} | {
    "job": (
        "SELECT max(json_extract(data, '$.job_id')) FROM event "
        f"WHERE json_type(data, '$.job_id') = 'integer' AND json_extract(data, '$.job_id') < {2**31}",
    )
}
"""What SQLite knows of deleted rows. Clients may write events, too: absurd numbers are not believed."""


def upgrade() -> None:
    """Count the ids that were used, and make the table of jobs to stop."""
    counters = op.create_table(
        "id_counter",
        sa.Column("table_name", sa.String(), nullable=False),
        sa.Column("last_id", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("table_name", name="pk_id_counter"),
        sqlite_with_rowid=False,
    )
    op.bulk_insert(counters, [{"table_name": name, "last_id": _last_id(name)} for name in _TABLES])
    op.create_table(
        "job_to_stop",
        sa.Column("compute_node_id", sa.Integer(), nullable=False),
        sa.Column("job_id", sa.Integer(), nullable=False),
        sa.ForeignKeyConstraint(
            ["compute_node_id"],
            ["compute_node.id"],
            name="fk_job_to_stop_compute_node_id_compute_node",
            ondelete="CASCADE",
        ),
        sa.PrimaryKeyConstraint("compute_node_id", "job_id", name="pk_job_to_stop"),
        sqlite_with_rowid=False,
    )


def _last_id(table: str) -> int:
    """Return the greatest id that the database knows a table to have had."""
    connection = op.get_bind()
    if connection.dialect.name == "sqlite":
        own = _SQLITE.get(table, ())
    else:
        own = (f"SELECT CASE WHEN is_called THEN last_value ELSE 0 END FROM {table}_id_seq",)
    questions = (f"SELECT max(id) FROM {table}", *_REFERENCES.get(table, ()), *own)
    return max(int(connection.exec_driver_sql(question).scalar() or 0) for question in questions)
