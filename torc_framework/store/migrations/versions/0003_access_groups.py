"""Workflows are shared with access groups."""

import sqlalchemy as sa
from alembic import op

revision = "0003"
down_revision = "0002"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Make the tables of groups, their members and what is shared with them."""
    op.create_table(
        "access_group",
        sa.Column("id", sa.Integer(), nullable=False),
        sa.Column("name", sa.String(), nullable=False),
        sa.Column("description", sa.String(), nullable=True),
        sa.Column("is_system", sa.Boolean(), nullable=False),
        sa.Column("created_at", sa.String(), nullable=True),
        sa.PrimaryKeyConstraint("id", name="pk_access_group"),
        sa.UniqueConstraint("name", name="uq_access_group_name"),
        sqlite_autoincrement=True,
    )
    op.create_table(
        "user_group_membership",
        sa.Column("id", sa.Integer(), nullable=False),
        sa.Column("user_name", sa.String(), nullable=False),
        sa.Column("group_id", sa.Integer(), nullable=False),
        sa.Column("role", sa.String(), nullable=False),
        sa.Column("created_at", sa.String(), nullable=True),
        sa.ForeignKeyConstraint(
            ["group_id"],
            ["access_group.id"],
            name="fk_user_group_membership_group_id_access_group",
            ondelete="CASCADE",
        ),
        sa.PrimaryKeyConstraint("id", name="pk_user_group_membership"),
        sa.UniqueConstraint("user_name", "group_id", name="uq_user_group_membership_user_name_group_id"),
    )
    op.create_index("ix_user_group_membership_group_id", "user_group_membership", ["group_id"])
    op.create_table(
        "workflow_access_group",
        sa.Column("workflow_id", sa.Integer(), nullable=False),
        sa.Column("group_id", sa.Integer(), nullable=False),
        sa.Column("created_at", sa.String(), nullable=True),
        sa.ForeignKeyConstraint(
            ["group_id"],
            ["access_group.id"],
            name="fk_workflow_access_group_group_id_access_group",
            ondelete="CASCADE",
        ),
        sa.ForeignKeyConstraint(
            ["workflow_id"],
            ["workflow.id"],
            name="fk_workflow_access_group_workflow_id_workflow",
            ondelete="CASCADE",
        ),
        sa.PrimaryKeyConstraint("workflow_id", "group_id", name="pk_workflow_access_group"),
        sqlite_with_rowid=False,
    )
    op.create_index("ix_workflow_access_group_group_id", "workflow_access_group", ["group_id"])
