"""The tables of workflows, and of their jobs, files, runners, results and events.

Each record of ``models.records`` has a table whose columns are the fields of the record; a test compares the two. A
field that is a list has a table of its own (`RELATIONS`). A column that no record has is for the store only, and has a
docstring.

Dependencies: a job waits for its *blockers*. These are the jobs that it depends on directly, and the dependency groups
that it waits for. A group stands for "M jobs wait for all of the same N jobs", in M + N rows instead of M x N. A job
is *over* when it has an unblocking status and is not interrupted. At every commit, for every job and group,

- ``job.blockers`` is the number of its direct dependencies that are not over, plus the number of its groups with
  ``remaining`` above zero; - ``job.failed_blockers`` is the number of its direct dependencies that are over and ended
  badly, plus the number of its groups with ``remaining`` zero and ``failed`` above zero; -
  ``dependency_group.remaining`` is the number of its members that are not over, ``failed`` the number of those that
  are over and ended badly.
"""

from typing import Any, Final

import sqlalchemy as sa
from sqlmodel import Field

from torc_framework.store.column_types import StatusType
from torc_framework.store.table_classes.base import Base


def _json() -> Any:
    return Field(default=None, sa_type=sa.JSON(none_as_null=True), nullable=True)


def _required_json() -> Any:
    return Field(sa_type=sa.JSON(none_as_null=False), nullable=False)


def _big(default: Any = None) -> Any:
    return Field(default=default, sa_type=sa.BigInteger)


def _parent(table: str, *, index: bool = True) -> Any:
    """A required reference; the row is deleted with its parent."""
    return Field(foreign_key=f"{table}.id", ondelete="CASCADE", index=index)


def _member(table: str, *, index: bool = True) -> Any:
    """One of the two references that are a primary key together."""
    return Field(foreign_key=f"{table}.id", ondelete="CASCADE", primary_key=True, index=index)


def _own(default: bool | int) -> Any:
    """A column that no record has; a bulk insert omits it, and the database fills in the default."""
    return Field(default=default, sa_column_kwargs={"server_default": sa.text(str(int(default)))})


def _unique_name() -> sa.UniqueConstraint:
    return sa.UniqueConstraint("workflow_id", "name")


_IS_HELD: Final = "active_compute_node_id IS NOT NULL"
_IS_DELAYED: Final = "not_before IS NOT NULL"
_IS_INTERRUPTED: Final = "is_interrupted <> 0"
_IS_CHANGED: Final = "input_hash IS NOT NULL"
_NO_ROWID: Final = {"sqlite_with_rowid": False}


class WorkflowRow(Base, table=True):
    """`WorkflowRecord`; no id is used twice."""

    __table_args__ = ({"sqlite_autoincrement": True},)
    id: int | None = Field(default=None, primary_key=True)
    name: str
    user: str = Field(index=True)
    description: str | None = None
    timestamp: str | None = None
    compute_node_expiration_buffer_seconds: int = 60
    compute_node_wait_for_new_jobs_seconds: int = 90
    compute_node_ignore_workflow_completion: bool = False
    compute_node_wait_for_healthy_database_minutes: int = 20
    compute_node_min_time_for_new_jobs_seconds: int = 300
    jobs_sort_method: str | None = "gpus_runtime_memory"
    resource_monitor_config: str | None = None
    slurm_defaults: str | None = None
    use_pending_failed: bool = False
    project: str | None = None
    shell: str | None = None
    stdio: str | None = None
    delete_stdio_on_success: bool | None = None
    metadata_: str | None = Field(default=None, sa_column=sa.Column("metadata", sa.String))
    status_id: int | None = None


class WorkflowStatusRow(Base, table=True):
    """`WorkflowStatusRecord`; its id is the workflow's."""

    id: int | None = Field(default=None, primary_key=True, foreign_key="workflow.id", ondelete="CASCADE")
    run_id: int
    is_canceled: bool
    is_archived: bool = False
    has_detected_need_to_run_completion_script: bool = False
    structure: int = Field(default=0, sa_column_kwargs={"server_default": sa.text("0")})
    """How often jobs were added, changed or deleted, or dependencies changed; no event tells these."""


class ResourceRequirementsRow(Base, table=True):
    """`ResourceRequirementsRecord`; several may have one name, except ``default``."""

    __table_args__ = (sa.Index(None, "workflow_id", "name"),)
    id: int | None = Field(default=None, primary_key=True)
    workflow_id: int = _parent("workflow", index=False)
    name: str
    num_cpus: int = 1
    num_gpus: int = 0
    num_nodes: int = 1
    memory: str = "1m"
    runtime: str = "P0DT1M"
    memory_bytes: int = Field(sa_type=sa.BigInteger)
    """``memory``, parsed."""
    runtime_s: int = Field(sa_type=sa.BigInteger)
    """``runtime``, parsed."""


class FailureHandlerRow(Base, table=True):
    """`FailureHandlerRecord`."""

    __table_args__ = (_unique_name(),)
    id: int | None = Field(default=None, primary_key=True)
    workflow_id: int = _parent("workflow", index=False)
    name: str
    rules: str


class SlurmSchedulerRow(Base, table=True):
    """`SlurmSchedulerRecord`."""

    __table_args__ = (_unique_name(),)
    id: int | None = Field(default=None, primary_key=True)
    workflow_id: int = _parent("workflow", index=False)
    name: str | None = None
    account: str
    gres: str | None = None
    mem: str | None = None
    nodes: int
    ntasks_per_node: int | None = None
    partition: str | None = None
    qos: str | None = "normal"
    tmp: str | None = None
    walltime: str
    extra: str | None = None


class LocalSchedulerRow(Base, table=True):
    """`LocalSchedulerRecord`."""

    id: int | None = Field(default=None, primary_key=True)
    workflow_id: int = _parent("workflow")
    name: str | None = "default"
    memory: str | None = None
    num_cpus: int | None = None


class JobRow(Base, table=True):
    """`JobRecord`.

    Its resource requirements, its scheduler and its failure handler are references without a constraint: with one, each
    delete of such a record would read all jobs. The function that deletes such records updates the jobs.
    """

    __table_args__ = (
        sa.Index("ix_job_by_status", "workflow_id", "status", "resource_requirements_id", "id"),
        sa.Index(None, "workflow_id", "id"),
        sa.Index(
            "ix_job_by_node",
            "active_compute_node_id",
            sqlite_where=sa.text(_IS_HELD),
            postgresql_where=sa.text(_IS_HELD),
        ),
        sa.Index(
            "ix_job_by_delay", "workflow_id", sqlite_where=sa.text(_IS_DELAYED), postgresql_where=sa.text(_IS_DELAYED)
        ),
        sa.Index(
            "ix_job_by_interruption",
            "workflow_id",
            sqlite_where=sa.text(_IS_INTERRUPTED),
            postgresql_where=sa.text(_IS_INTERRUPTED),
        ),
        sa.Index(
            "ix_job_by_change", "workflow_id", sqlite_where=sa.text(_IS_CHANGED), postgresql_where=sa.text(_IS_CHANGED)
        ),
    )
    id: int | None = Field(default=None, primary_key=True)
    workflow_id: int = _parent("workflow", index=False)
    name: str
    command: str
    invocation_script: str | None = None
    status: str | None = Field(default=None, sa_type=StatusType, sa_column_kwargs={"server_default": sa.text("0")})
    cancel_on_blocking_job_failure: bool = True
    supports_termination: bool = False
    clean_exit_after_stop: str = Field(default="auto", sa_column_kwargs={"server_default": "auto"})
    resource_requirements_id: int | None = None
    scheduler_id: int | None = None
    failure_handler_id: int | None = None
    attempt_id: int = _own(1)
    executor: str | None = None
    shell: str | None = None
    container: str | None = None
    executor_options: Any = _json()
    stdio: str | None = None
    delete_stdio_on_success: bool | None = None
    not_before: str | None = None
    waiting_reason: str | None = None
    started_s: float | None = None
    """When the attempt of a running job was reported as started, seconds since the epoch; None if it is not known."""
    blockers: int = _own(0)
    """Direct dependencies and groups that are not over; see above."""
    failed_blockers: int = _own(0)
    """Direct dependencies and groups that are over and ended badly; see above."""
    ended_badly: bool = _own(False)
    """Its ending cancels the dependents that have ``cancel_on_blocking_job_failure``; used in unblocking statuses
    only.
    """
    is_interrupted: bool = _own(False)
    """It is terminated, and becomes ready when a runner next asks for jobs; until then it counts as unfinished."""
    dependencies_resolved: bool = _own(False)
    """The dependencies that its files and user data imply have been added to its dependencies."""
    active_compute_node_id: int | None = None
    """Runner that holds it, from the claim until the attempt has ended."""
    result_id: int | None = None
    """Its current result: the one of the attempt that ended it."""
    input_hash: str | None = None
    """Hashes of its inputs at the last initialize, if these have changed since; see `changed_inputs`."""
    written_texts: str | None = None
    """JSON object of its command and invocation script as written, where these name user data: with names, not ids."""


class JobDependencyRow(Base, table=True):
    """``job_id`` waits for ``depends_on_job_id``."""

    __table_args__ = (_NO_ROWID,)
    job_id: int = _member("job", index=False)
    depends_on_job_id: int = _member("job")


class DependencyGroupRow(Base, table=True):
    """A shared dependency: each waiter waits for all members."""

    id: int | None = Field(default=None, primary_key=True)
    workflow_id: int = _parent("workflow")
    remaining: int = 0
    """Members that are not over."""
    failed: int = _own(0)
    """Members that are over and ended badly."""


class GroupMemberRow(Base, table=True):
    """A job for which a group's waiters wait."""

    __table_args__ = (_NO_ROWID,)
    job_id: int = _member("job", index=False)
    group_id: int = _member("dependency_group")


class GroupWaiterRow(Base, table=True):
    """A job that waits for a group's members."""

    __table_args__ = (_NO_ROWID,)
    group_id: int = _member("dependency_group", index=False)
    job_id: int = _member("job")


class FileRow(Base, table=True):
    """`FileRecord`."""

    __table_args__ = (_unique_name(),)
    id: int | None = Field(default=None, primary_key=True)
    workflow_id: int = _parent("workflow", index=False)
    name: str
    path: str
    st_mtime: float | None = None


class UserDataRow(Base, table=True):
    """`UserDataRecord`."""

    __table_args__ = (_unique_name(),)
    id: int | None = Field(default=None, primary_key=True)
    workflow_id: int = _parent("workflow", index=False)
    name: str
    is_ephemeral: bool = False
    data: Any = _json()


class JobInputFileRow(Base, table=True):
    """``job_id`` reads ``file_id``."""

    __table_args__ = (_NO_ROWID,)
    job_id: int = _member("job", index=False)
    file_id: int = _member("file")


class JobOutputFileRow(Base, table=True):
    """``job_id`` writes ``file_id``."""

    __table_args__ = (_NO_ROWID,)
    job_id: int = _member("job", index=False)
    file_id: int = _member("file")


class JobInputUserDataRow(Base, table=True):
    """``job_id`` reads ``user_data_id``."""

    __table_args__ = (_NO_ROWID,)
    job_id: int = _member("job", index=False)
    user_data_id: int = _member("user_data")


class JobOutputUserDataRow(Base, table=True):
    """``job_id`` writes ``user_data_id``."""

    __table_args__ = (_NO_ROWID,)
    job_id: int = _member("job", index=False)
    user_data_id: int = _member("user_data")


class WorkflowActionRow(Base, table=True):
    """`WorkflowActionRecord`."""

    id: int | None = Field(default=None, primary_key=True)
    workflow_id: int = _parent("workflow")
    trigger_type: str
    action_type: str
    action_config: Any = _required_json()
    trigger_count: int = 0
    required_triggers: int = 1
    executed: bool = False
    executed_at: str | None = None
    executed_by: int | None = None
    finished_at: str | None = None
    error: str | None = None
    persistent: bool = False
    is_recovery: bool = False
    is_open: bool = _own(False)
    """A runner is carrying it out and will report how it ended; if the runner ends before, the action is due again."""


class ActionJobRow(Base, table=True):
    """A job whose status an action's trigger counts."""

    __table_args__ = (_NO_ROWID,)
    job_id: int = _member("job", index=False)
    action_id: int = _member("workflow_action")
    counted: bool = _own(False)
    """The action's trigger count includes it."""


class ComputeNodeRow(Base, table=True):
    """`ComputeNodeRecord`; no id is used twice.

    Attributes:
        last_seq: Number of the newest exchange of the runner that was carried out (`ExchangeRequest.seq`).
        last_answer: The part of its answers that the jobs do not tell again (`store.exchange.leases`), as JSON.
    """

    __table_args__ = ({"sqlite_autoincrement": True},)
    id: int | None = Field(default=None, primary_key=True)
    workflow_id: int = _parent("workflow")
    hostname: str
    pid: int
    start_time: str
    duration_seconds: float | None = None
    is_active: bool | None = None
    num_cpus: int
    memory_gb: float
    num_gpus: int
    num_nodes: int
    time_limit: str | None = None
    scheduler_config_id: int | None = None
    compute_node_type: str
    scheduler: Any = _json()
    is_draining: bool | None = None
    last_heard_at: str | None = None
    epoch: int | None = None
    taken_over_by: int | None = None
    last_seq: int | None = None
    last_answer: str | None = None


class RemoteWorkerRow(Base, table=True):
    """A machine that a workflow may use."""

    __table_args__ = (_NO_ROWID,)
    workflow_id: int = _member("workflow", index=False)
    worker: str = Field(primary_key=True)


class ResultRow(Base, table=True):
    """`ResultRecord`: one row per job, run and attempt."""

    __table_args__ = (
        sa.UniqueConstraint("job_id", "run_id", "attempt_id"),
        sa.Index(None, "workflow_id", "run_id"),
        sa.Index(None, "workflow_id", "id"),
    )
    id: int | None = Field(default=None, primary_key=True)
    job_id: int = _parent("job", index=False)
    workflow_id: int = _parent("workflow", index=False)
    run_id: int
    attempt_id: int = 1
    compute_node_id: int
    return_code: int
    exec_time_minutes: float
    completion_time: str
    status: str = Field(sa_type=StatusType)
    peak_memory_bytes: int | None = _big()
    avg_memory_bytes: int | None = _big()
    peak_cpu_percent: float | None = None
    avg_cpu_percent: float | None = None
    exit_code: int | None = None
    signal: int | None = None
    exit_class: str | None = None
    reason: str | None = None
    cpu_time_s: float | None = None
    observation: Any = _json()


class EventRow(Base, table=True):
    """`EventRecord`; no id is used twice, so that a client that has read all events up to an id misses none later."""

    __table_args__ = (
        sa.Index(None, "workflow_id", "timestamp"),
        sa.Index(None, "workflow_id", "id"),
        {"sqlite_autoincrement": True},
    )
    id: int | None = Field(default=None, primary_key=True)
    workflow_id: int = _parent("workflow", index=False)
    timestamp: int | None = _big()
    data: Any = _required_json()


RELATIONS: Final = {
    "depends_on_job_ids": "job_dependency",
    "input_file_ids": "job_input_file",
    "output_file_ids": "job_output_file",
    "input_user_data_ids": "job_input_user_data",
    "output_user_data_ids": "job_output_user_data",
    "job_ids": "action_job",
}
"""Record fields that are lists of ids, and the tables that hold them."""
