"""Several resource requirements of a workflow may have the same name, as in Torc."""

from alembic import op

revision = "0005"
down_revision = "0004"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Find resource requirements by name, but let names repeat."""
    with op.batch_alter_table("resource_requirements") as table:
        table.drop_constraint("uq_resource_requirements_workflow_id_name", type_="unique")
    op.create_index("ix_resource_requirements_workflow_id_name", "resource_requirements", ["workflow_id", "name"])
