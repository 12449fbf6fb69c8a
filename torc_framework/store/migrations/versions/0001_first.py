"""The first tables."""

import sqlalchemy as sa
from alembic import op

revision = "0001"
down_revision = None
branch_labels = None
depends_on = None

TABLES = (
    "workflow",
    "compute_node",
    "dependency_group",
    "event",
    "failure_handler",
    "file",
    "job",
    "local_scheduler",
    "resource_requirements",
    "scheduled_compute_node",
    "slurm_scheduler",
    "user_data",
    "workflow_action",
    "workflow_status",
    "action_job",
    "group_member",
    "group_waiter",
    "job_dependency",
    "job_input_file",
    "job_input_user_data",
    "job_output_file",
    "job_output_user_data",
    "result",
)
"""In the order in which they refer to each other."""


def upgrade() -> None:
    """Make the tables."""
    op.create_table(
        "workflow",
        sa.Column("id", sa.Integer(), nullable=False),
        sa.Column("name", sa.String(), nullable=False),
        sa.Column("user", sa.String(), nullable=False),
        sa.Column("description", sa.String(), nullable=True),
        sa.Column("timestamp", sa.String(), nullable=True),
        sa.Column("compute_node_expiration_buffer_seconds", sa.Integer(), nullable=False),
        sa.Column("compute_node_wait_for_new_jobs_seconds", sa.Integer(), nullable=False),
        sa.Column("compute_node_ignore_workflow_completion", sa.Boolean(), nullable=False),
        sa.Column("compute_node_wait_for_healthy_database_minutes", sa.Integer(), nullable=False),
        sa.Column("compute_node_min_time_for_new_jobs_seconds", sa.Integer(), nullable=False),
        sa.Column("jobs_sort_method", sa.String(), nullable=True),
        sa.Column("resource_monitor_config", sa.String(), nullable=True),
        sa.Column("slurm_defaults", sa.String(), nullable=True),
        sa.Column("use_pending_failed", sa.Boolean(), nullable=False),
        sa.Column("project", sa.String(), nullable=True),
        sa.Column("metadata", sa.String(), nullable=True),
        sa.Column("status_id", sa.Integer(), nullable=True),
        sa.PrimaryKeyConstraint("id", name="pk_workflow"),
        sqlite_autoincrement=True,
    )
    op.create_index("ix_workflow_user", "workflow", ["user"])
    op.create_table(
        "compute_node",
        sa.Column("id", sa.Integer(), nullable=False),
        sa.Column("workflow_id", sa.Integer(), nullable=False),
        sa.Column("hostname", sa.String(), nullable=False),
        sa.Column("pid", sa.Integer(), nullable=False),
        sa.Column("start_time", sa.String(), nullable=False),
        sa.Column("duration_seconds", sa.Float(), nullable=True),
        sa.Column("is_active", sa.Boolean(), nullable=True),
        sa.Column("num_cpus", sa.Integer(), nullable=False),
        sa.Column("memory_gb", sa.Float(), nullable=False),
        sa.Column("num_gpus", sa.Integer(), nullable=False),
        sa.Column("num_nodes", sa.Integer(), nullable=False),
        sa.Column("time_limit", sa.String(), nullable=True),
        sa.Column("scheduler_config_id", sa.Integer(), nullable=True),
        sa.Column("compute_node_type", sa.String(), nullable=False),
        sa.Column("scheduler", sa.JSON(), nullable=True),
        sa.ForeignKeyConstraint(
            ["workflow_id"], ["workflow.id"], name="fk_compute_node_workflow_id_workflow", ondelete="CASCADE"
        ),
        sa.PrimaryKeyConstraint("id", name="pk_compute_node"),
        sqlite_autoincrement=True,
    )
    op.create_index("ix_compute_node_workflow_id", "compute_node", ["workflow_id"])
    op.create_table(
        "dependency_group",
        sa.Column("id", sa.Integer(), nullable=False),
        sa.Column("workflow_id", sa.Integer(), nullable=False),
        sa.Column("remaining", sa.Integer(), nullable=False),
        sa.Column("failed", sa.Integer(), server_default=sa.text("0"), nullable=False),
        sa.ForeignKeyConstraint(
            ["workflow_id"], ["workflow.id"], name="fk_dependency_group_workflow_id_workflow", ondelete="CASCADE"
        ),
        sa.PrimaryKeyConstraint("id", name="pk_dependency_group"),
    )
    op.create_index("ix_dependency_group_workflow_id", "dependency_group", ["workflow_id"])
    op.create_table(
        "event",
        sa.Column("id", sa.Integer(), nullable=False),
        sa.Column("workflow_id", sa.Integer(), nullable=False),
        sa.Column("timestamp", sa.BigInteger(), nullable=True),
        sa.Column("data", sa.JSON(), nullable=False),
        sa.ForeignKeyConstraint(
            ["workflow_id"], ["workflow.id"], name="fk_event_workflow_id_workflow", ondelete="CASCADE"
        ),
        sa.PrimaryKeyConstraint("id", name="pk_event"),
    )
    op.create_index("ix_event_workflow_id_timestamp", "event", ["workflow_id", "timestamp"])
    op.create_table(
        "failure_handler",
        sa.Column("id", sa.Integer(), nullable=False),
        sa.Column("workflow_id", sa.Integer(), nullable=False),
        sa.Column("name", sa.String(), nullable=False),
        sa.Column("rules", sa.String(), nullable=False),
        sa.ForeignKeyConstraint(
            ["workflow_id"], ["workflow.id"], name="fk_failure_handler_workflow_id_workflow", ondelete="CASCADE"
        ),
        sa.PrimaryKeyConstraint("id", name="pk_failure_handler"),
        sa.UniqueConstraint("workflow_id", "name", name="uq_failure_handler_workflow_id_name"),
    )
    op.create_table(
        "file",
        sa.Column("id", sa.Integer(), nullable=False),
        sa.Column("workflow_id", sa.Integer(), nullable=False),
        sa.Column("name", sa.String(), nullable=False),
        sa.Column("path", sa.String(), nullable=False),
        sa.Column("st_mtime", sa.Float(), nullable=True),
        sa.ForeignKeyConstraint(
            ["workflow_id"], ["workflow.id"], name="fk_file_workflow_id_workflow", ondelete="CASCADE"
        ),
        sa.PrimaryKeyConstraint("id", name="pk_file"),
        sa.UniqueConstraint("workflow_id", "name", name="uq_file_workflow_id_name"),
    )
    op.create_table(
        "job",
        sa.Column("id", sa.Integer(), nullable=False),
        sa.Column("workflow_id", sa.Integer(), nullable=False),
        sa.Column("name", sa.String(), nullable=False),
        sa.Column("command", sa.String(), nullable=False),
        sa.Column("invocation_script", sa.String(), nullable=True),
        sa.Column("status", sa.SmallInteger(), server_default=sa.text("0"), nullable=True),
        sa.Column("cancel_on_blocking_job_failure", sa.Boolean(), nullable=False),
        sa.Column("supports_termination", sa.Boolean(), nullable=False),
        sa.Column("resource_requirements_id", sa.Integer(), nullable=True),
        sa.Column("scheduler_id", sa.Integer(), nullable=True),
        sa.Column("failure_handler_id", sa.Integer(), nullable=True),
        sa.Column("attempt_id", sa.Integer(), server_default=sa.text("1"), nullable=False),
        sa.Column("executor", sa.String(), nullable=True),
        sa.Column("blockers", sa.Integer(), server_default=sa.text("0"), nullable=False),
        sa.Column("failed_blockers", sa.Integer(), server_default=sa.text("0"), nullable=False),
        sa.Column("ended_badly", sa.Boolean(), server_default=sa.text("0"), nullable=False),
        sa.Column("dependencies_resolved", sa.Boolean(), server_default=sa.text("0"), nullable=False),
        sa.Column("active_compute_node_id", sa.Integer(), nullable=True),
        sa.Column("result_id", sa.Integer(), nullable=True),
        sa.ForeignKeyConstraint(
            ["workflow_id"], ["workflow.id"], name="fk_job_workflow_id_workflow", ondelete="CASCADE"
        ),
        sa.PrimaryKeyConstraint("id", name="pk_job"),
    )
    is_held = sa.text("active_compute_node_id IS NOT NULL")
    op.create_index("ix_job_by_node", "job", ["active_compute_node_id"], sqlite_where=is_held, postgresql_where=is_held)
    op.create_index("ix_job_by_status", "job", ["workflow_id", "status", "resource_requirements_id", "id"])
    op.create_table(
        "local_scheduler",
        sa.Column("id", sa.Integer(), nullable=False),
        sa.Column("workflow_id", sa.Integer(), nullable=False),
        sa.Column("name", sa.String(), nullable=True),
        sa.Column("memory", sa.String(), nullable=True),
        sa.Column("num_cpus", sa.Integer(), nullable=True),
        sa.ForeignKeyConstraint(
            ["workflow_id"], ["workflow.id"], name="fk_local_scheduler_workflow_id_workflow", ondelete="CASCADE"
        ),
        sa.PrimaryKeyConstraint("id", name="pk_local_scheduler"),
    )
    op.create_index("ix_local_scheduler_workflow_id", "local_scheduler", ["workflow_id"])
    op.create_table(
        "resource_requirements",
        sa.Column("id", sa.Integer(), nullable=False),
        sa.Column("workflow_id", sa.Integer(), nullable=False),
        sa.Column("name", sa.String(), nullable=False),
        sa.Column("num_cpus", sa.Integer(), nullable=False),
        sa.Column("num_gpus", sa.Integer(), nullable=False),
        sa.Column("num_nodes", sa.Integer(), nullable=False),
        sa.Column("memory", sa.String(), nullable=False),
        sa.Column("runtime", sa.String(), nullable=False),
        sa.Column("memory_bytes", sa.BigInteger(), nullable=False),
        sa.Column("runtime_s", sa.BigInteger(), nullable=False),
        sa.ForeignKeyConstraint(
            ["workflow_id"], ["workflow.id"], name="fk_resource_requirements_workflow_id_workflow", ondelete="CASCADE"
        ),
        sa.PrimaryKeyConstraint("id", name="pk_resource_requirements"),
        sa.UniqueConstraint("workflow_id", "name", name="uq_resource_requirements_workflow_id_name"),
    )
    op.create_table(
        "scheduled_compute_node",
        sa.Column("id", sa.Integer(), nullable=False),
        sa.Column("workflow_id", sa.Integer(), nullable=False),
        sa.Column("scheduler_id", sa.BigInteger(), nullable=False),
        sa.Column("scheduler_config_id", sa.Integer(), nullable=False),
        sa.Column("scheduler_type", sa.String(), nullable=False),
        sa.Column("status", sa.String(), nullable=False),
        sa.ForeignKeyConstraint(
            ["workflow_id"], ["workflow.id"], name="fk_scheduled_compute_node_workflow_id_workflow", ondelete="CASCADE"
        ),
        sa.PrimaryKeyConstraint("id", name="pk_scheduled_compute_node"),
    )
    op.create_index("ix_scheduled_compute_node_workflow_id", "scheduled_compute_node", ["workflow_id"])
    op.create_table(
        "slurm_scheduler",
        sa.Column("id", sa.Integer(), nullable=False),
        sa.Column("workflow_id", sa.Integer(), nullable=False),
        sa.Column("name", sa.String(), nullable=True),
        sa.Column("account", sa.String(), nullable=False),
        sa.Column("gres", sa.String(), nullable=True),
        sa.Column("mem", sa.String(), nullable=True),
        sa.Column("nodes", sa.Integer(), nullable=False),
        sa.Column("ntasks_per_node", sa.Integer(), nullable=True),
        sa.Column("partition", sa.String(), nullable=True),
        sa.Column("qos", sa.String(), nullable=True),
        sa.Column("tmp", sa.String(), nullable=True),
        sa.Column("walltime", sa.String(), nullable=False),
        sa.Column("extra", sa.String(), nullable=True),
        sa.ForeignKeyConstraint(
            ["workflow_id"], ["workflow.id"], name="fk_slurm_scheduler_workflow_id_workflow", ondelete="CASCADE"
        ),
        sa.PrimaryKeyConstraint("id", name="pk_slurm_scheduler"),
        sa.UniqueConstraint("workflow_id", "name", name="uq_slurm_scheduler_workflow_id_name"),
    )
    op.create_table(
        "user_data",
        sa.Column("id", sa.Integer(), nullable=False),
        sa.Column("workflow_id", sa.Integer(), nullable=False),
        sa.Column("name", sa.String(), nullable=False),
        sa.Column("is_ephemeral", sa.Boolean(), nullable=False),
        sa.Column("data", sa.JSON(), nullable=True),
        sa.ForeignKeyConstraint(
            ["workflow_id"], ["workflow.id"], name="fk_user_data_workflow_id_workflow", ondelete="CASCADE"
        ),
        sa.PrimaryKeyConstraint("id", name="pk_user_data"),
        sa.UniqueConstraint("workflow_id", "name", name="uq_user_data_workflow_id_name"),
    )
    op.create_table(
        "workflow_action",
        sa.Column("id", sa.Integer(), nullable=False),
        sa.Column("workflow_id", sa.Integer(), nullable=False),
        sa.Column("trigger_type", sa.String(), nullable=False),
        sa.Column("action_type", sa.String(), nullable=False),
        sa.Column("action_config", sa.JSON(), nullable=False),
        sa.Column("trigger_count", sa.Integer(), nullable=False),
        sa.Column("required_triggers", sa.Integer(), nullable=False),
        sa.Column("executed", sa.Boolean(), nullable=False),
        sa.Column("executed_at", sa.String(), nullable=True),
        sa.Column("executed_by", sa.Integer(), nullable=True),
        sa.Column("persistent", sa.Boolean(), nullable=False),
        sa.Column("is_recovery", sa.Boolean(), nullable=False),
        sa.ForeignKeyConstraint(
            ["workflow_id"], ["workflow.id"], name="fk_workflow_action_workflow_id_workflow", ondelete="CASCADE"
        ),
        sa.PrimaryKeyConstraint("id", name="pk_workflow_action"),
    )
    op.create_index("ix_workflow_action_workflow_id", "workflow_action", ["workflow_id"])
    op.create_table(
        "workflow_status",
        sa.Column("id", sa.Integer(), nullable=False),
        sa.Column("run_id", sa.Integer(), nullable=False),
        sa.Column("is_canceled", sa.Boolean(), nullable=False),
        sa.Column("is_archived", sa.Boolean(), nullable=False),
        sa.Column("has_detected_need_to_run_completion_script", sa.Boolean(), nullable=False),
        sa.ForeignKeyConstraint(["id"], ["workflow.id"], name="fk_workflow_status_id_workflow", ondelete="CASCADE"),
        sa.PrimaryKeyConstraint("id", name="pk_workflow_status"),
    )
    op.create_table(
        "action_job",
        sa.Column("job_id", sa.Integer(), nullable=False),
        sa.Column("action_id", sa.Integer(), nullable=False),
        sa.Column("counted", sa.Boolean(), server_default=sa.text("0"), nullable=False),
        sa.ForeignKeyConstraint(
            ["action_id"], ["workflow_action.id"], name="fk_action_job_action_id_workflow_action", ondelete="CASCADE"
        ),
        sa.ForeignKeyConstraint(["job_id"], ["job.id"], name="fk_action_job_job_id_job", ondelete="CASCADE"),
        sa.PrimaryKeyConstraint("job_id", "action_id", name="pk_action_job"),
        sqlite_with_rowid=False,
    )
    op.create_index("ix_action_job_action_id", "action_job", ["action_id"])
    op.create_table(
        "group_member",
        sa.Column("job_id", sa.Integer(), nullable=False),
        sa.Column("group_id", sa.Integer(), nullable=False),
        sa.ForeignKeyConstraint(
            ["group_id"], ["dependency_group.id"], name="fk_group_member_group_id_dependency_group", ondelete="CASCADE"
        ),
        sa.ForeignKeyConstraint(["job_id"], ["job.id"], name="fk_group_member_job_id_job", ondelete="CASCADE"),
        sa.PrimaryKeyConstraint("job_id", "group_id", name="pk_group_member"),
        sqlite_with_rowid=False,
    )
    op.create_index("ix_group_member_group_id", "group_member", ["group_id"])
    op.create_table(
        "group_waiter",
        sa.Column("group_id", sa.Integer(), nullable=False),
        sa.Column("job_id", sa.Integer(), nullable=False),
        sa.ForeignKeyConstraint(
            ["group_id"], ["dependency_group.id"], name="fk_group_waiter_group_id_dependency_group", ondelete="CASCADE"
        ),
        sa.ForeignKeyConstraint(["job_id"], ["job.id"], name="fk_group_waiter_job_id_job", ondelete="CASCADE"),
        sa.PrimaryKeyConstraint("group_id", "job_id", name="pk_group_waiter"),
        sqlite_with_rowid=False,
    )
    op.create_index("ix_group_waiter_job_id", "group_waiter", ["job_id"])
    op.create_table(
        "job_dependency",
        sa.Column("job_id", sa.Integer(), nullable=False),
        sa.Column("depends_on_job_id", sa.Integer(), nullable=False),
        sa.ForeignKeyConstraint(
            ["depends_on_job_id"], ["job.id"], name="fk_job_dependency_depends_on_job_id_job", ondelete="CASCADE"
        ),
        sa.ForeignKeyConstraint(["job_id"], ["job.id"], name="fk_job_dependency_job_id_job", ondelete="CASCADE"),
        sa.PrimaryKeyConstraint("job_id", "depends_on_job_id", name="pk_job_dependency"),
        sqlite_with_rowid=False,
    )
    op.create_index("ix_job_dependency_depends_on_job_id", "job_dependency", ["depends_on_job_id"])
    op.create_table(
        "job_input_file",
        sa.Column("job_id", sa.Integer(), nullable=False),
        sa.Column("file_id", sa.Integer(), nullable=False),
        sa.ForeignKeyConstraint(["file_id"], ["file.id"], name="fk_job_input_file_file_id_file", ondelete="CASCADE"),
        sa.ForeignKeyConstraint(["job_id"], ["job.id"], name="fk_job_input_file_job_id_job", ondelete="CASCADE"),
        sa.PrimaryKeyConstraint("job_id", "file_id", name="pk_job_input_file"),
        sqlite_with_rowid=False,
    )
    op.create_index("ix_job_input_file_file_id", "job_input_file", ["file_id"])
    op.create_table(
        "job_input_user_data",
        sa.Column("job_id", sa.Integer(), nullable=False),
        sa.Column("user_data_id", sa.Integer(), nullable=False),
        sa.ForeignKeyConstraint(["job_id"], ["job.id"], name="fk_job_input_user_data_job_id_job", ondelete="CASCADE"),
        sa.ForeignKeyConstraint(
            ["user_data_id"], ["user_data.id"], name="fk_job_input_user_data_user_data_id_user_data", ondelete="CASCADE"
        ),
        sa.PrimaryKeyConstraint("job_id", "user_data_id", name="pk_job_input_user_data"),
        sqlite_with_rowid=False,
    )
    op.create_index("ix_job_input_user_data_user_data_id", "job_input_user_data", ["user_data_id"])
    op.create_table(
        "job_output_file",
        sa.Column("job_id", sa.Integer(), nullable=False),
        sa.Column("file_id", sa.Integer(), nullable=False),
        sa.ForeignKeyConstraint(["file_id"], ["file.id"], name="fk_job_output_file_file_id_file", ondelete="CASCADE"),
        sa.ForeignKeyConstraint(["job_id"], ["job.id"], name="fk_job_output_file_job_id_job", ondelete="CASCADE"),
        sa.PrimaryKeyConstraint("job_id", "file_id", name="pk_job_output_file"),
        sqlite_with_rowid=False,
    )
    op.create_index("ix_job_output_file_file_id", "job_output_file", ["file_id"])
    op.create_table(
        "job_output_user_data",
        sa.Column("job_id", sa.Integer(), nullable=False),
        sa.Column("user_data_id", sa.Integer(), nullable=False),
        sa.ForeignKeyConstraint(["job_id"], ["job.id"], name="fk_job_output_user_data_job_id_job", ondelete="CASCADE"),
        sa.ForeignKeyConstraint(
            ["user_data_id"],
            ["user_data.id"],
            name="fk_job_output_user_data_user_data_id_user_data",
            ondelete="CASCADE",
        ),
        sa.PrimaryKeyConstraint("job_id", "user_data_id", name="pk_job_output_user_data"),
        sqlite_with_rowid=False,
    )
    op.create_index("ix_job_output_user_data_user_data_id", "job_output_user_data", ["user_data_id"])
    op.create_table(
        "result",
        sa.Column("id", sa.Integer(), nullable=False),
        sa.Column("job_id", sa.Integer(), nullable=False),
        sa.Column("workflow_id", sa.Integer(), nullable=False),
        sa.Column("run_id", sa.Integer(), nullable=False),
        sa.Column("attempt_id", sa.Integer(), nullable=False),
        sa.Column("compute_node_id", sa.Integer(), nullable=False),
        sa.Column("return_code", sa.Integer(), nullable=False),
        sa.Column("exec_time_minutes", sa.Float(), nullable=False),
        sa.Column("completion_time", sa.String(), nullable=False),
        sa.Column("status", sa.SmallInteger(), nullable=False),
        sa.Column("peak_memory_bytes", sa.BigInteger(), nullable=True),
        sa.Column("avg_memory_bytes", sa.BigInteger(), nullable=True),
        sa.Column("peak_cpu_percent", sa.Float(), nullable=True),
        sa.Column("avg_cpu_percent", sa.Float(), nullable=True),
        sa.Column("exit_code", sa.Integer(), nullable=True),
        sa.Column("signal", sa.Integer(), nullable=True),
        sa.Column("exit_class", sa.String(), nullable=True),
        sa.Column("reason", sa.String(), nullable=True),
        sa.Column("cpu_time_s", sa.Float(), nullable=True),
        sa.Column("observation", sa.JSON(), nullable=True),
        sa.ForeignKeyConstraint(["job_id"], ["job.id"], name="fk_result_job_id_job", ondelete="CASCADE"),
        sa.ForeignKeyConstraint(
            ["workflow_id"], ["workflow.id"], name="fk_result_workflow_id_workflow", ondelete="CASCADE"
        ),
        sa.PrimaryKeyConstraint("id", name="pk_result"),
        sa.UniqueConstraint("job_id", "run_id", "attempt_id", name="uq_result_job_id_run_id_attempt_id"),
    )
    op.create_index("ix_result_workflow_id_run_id", "result", ["workflow_id", "run_id"])


def downgrade() -> None:
    """Drop the tables, with everything in them."""
    for table in reversed(TABLES):
        op.drop_table(table)
