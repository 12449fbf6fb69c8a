"""The records of the HTTP contract.

Each class declares one resource: its fields with types, defaults and write access. The server derives its JSON models
from these declarations, the client parses responses into them, and a test compares the database tables with them.
Field names and defaults are those of Torc's HTTP contract; fields marked ``ours`` are additions, which Torc's clients
ignore.

A field that is None is absent. Integers are never booleans; ids are positive.
"""

from enum import StrEnum
from typing import Any, Final

from attrs import Attribute, define, field, fields

from torc_framework.models.executor_options import ExecutorOptions
from torc_framework.models.exits import CleanExit
from torc_framework.models.stdio import StdioMode


class FieldAccess(StrEnum):
    """Which side sets a field, and when."""

    WRITE = "write"
    """The client, on create and update."""
    CREATE = "create"
    """The client, on create only."""
    SERVER = "server"
    """The server; a sent value is ignored."""


_META: Final = "torc"


def _field(default: Any, doc: str, access: FieldAccess = FieldAccess.WRITE, *, ours: bool = False) -> Any:
    return field(default=default, kw_only=True, metadata={_META: (doc, access, ours)})


def _required(doc: str, access: FieldAccess = FieldAccess.WRITE, *, ours: bool = False) -> Any:
    return field(kw_only=True, metadata={_META: (doc, access, ours)})


def describe_field(attribute: "Attribute[Any]") -> tuple[str, FieldAccess, bool]:
    """Return a field's description, its access, and whether it is an addition to Torc's contract."""
    doc, access, ours = attribute.metadata[_META]
    return doc, access, ours


def _id() -> Any:
    return _field(None, "Set by the server.", FieldAccess.SERVER)


def _workflow_id() -> Any:
    return _required("The workflow it belongs to.", FieldAccess.CREATE)


@define
class WorkflowRecord:
    """A workflow and its options."""

    id: int | None = _id()
    name: str = _required("Name; need not be unique.")
    user: str = _required("Owner.")
    description: str | None = _field(None, "Free text.")
    timestamp: str | None = _field(None, "Creation time, UTC, ISO 8601 with milliseconds.", FieldAccess.SERVER)
    compute_node_expiration_buffer_seconds: int = _field(60, "Runners stop this many seconds before their end time.")
    compute_node_wait_for_new_jobs_seconds: int = _field(90, "An idle runner waits this long for new jobs.")
    compute_node_ignore_workflow_completion: bool = _field(False, "Runners stay after the workflow is complete.")
    compute_node_wait_for_healthy_database_minutes: int = _field(20, "Runners wait this long for a lost server.")
    compute_node_min_time_for_new_jobs_seconds: int = _field(300, "No job starts with less walltime left than this.")
    jobs_sort_method: str | None = _field("gpus_runtime_memory", "Order in which ready jobs are claimed.")
    resource_monitor_config: str | None = _field(None, "JSON text of the resource monitor's settings.")
    slurm_defaults: str | None = _field(None, "JSON text of sbatch options for every Slurm scheduler.")
    use_pending_failed: bool = _field(False, "Unmatched failures wait for a verdict instead of failing.")
    project: str | None = _field(None, "Project the workflow belongs to.")
    shell: str | None = _field(None, "Program and options that run its commands; None is bash.", ours=True)
    stdio: StdioMode | None = _field(None, "Files of its jobs' output; None is separate.", ours=True)
    delete_stdio_on_success: bool | None = _field(
        None, "These files of a job are deleted once it has completed; None is no.", ours=True
    )
    metadata: str | None = _field(None, "JSON text of the owner's.")
    status_id: int | None = _field(None, "Id of the status record; equal to the workflow's.", FieldAccess.SERVER)


@define
class WorkflowStatusRecord:
    """The changing state of a workflow as a whole."""

    id: int | None = _id()
    run_id: int = _required("Grows by one at each initialize and reinitialize; 0 before the first.")
    is_canceled: bool = _required("A person canceled it.")
    is_archived: bool = _field(False, "Hidden from lists and closed to runs.")
    has_detected_need_to_run_completion_script: bool = _field(False, "The completion script is due.")


@define
class JobRecord:
    """One unit of work."""

    id: int | None = _id()
    workflow_id: int = _workflow_id()
    name: str = _required("Name; unique within a spec.")
    command: str = _required("Command line for the shell.")
    invocation_script: str | None = _field(None, "Program that the command is handed to.")
    status: str | None = _field(None, "Name of the job's status.")
    cancel_on_blocking_job_failure: bool = _field(True, "Cancel it when a dependency fails.")
    supports_termination: bool = _field(False, "A runner stops it with SIGTERM and waits before SIGKILL.")
    depends_on_job_ids: list[int] | None = _field(None, "Jobs it waits for.")
    input_file_ids: list[int] | None = _field(None, "Files it reads.", FieldAccess.CREATE)
    output_file_ids: list[int] | None = _field(None, "Files it writes.", FieldAccess.CREATE)
    input_user_data_ids: list[int] | None = _field(None, "User data it reads.", FieldAccess.CREATE)
    output_user_data_ids: list[int] | None = _field(None, "User data it writes.", FieldAccess.CREATE)
    resource_requirements_id: int | None = _field(None, "Its resource requirements.")
    scheduler_id: int | None = _field(None, "Scheduler it is bound to.")
    failure_handler_id: int | None = _field(None, "Rules for its failures.")
    attempt_id: int = _field(1, "Number of its present attempt.", FieldAccess.SERVER)
    executor: str | None = _field(None, "Executor that must run it; None is the runner's own.", ours=True)
    shell: str | None = _field(None, "Program and options that run its command; None is the workflow's.", ours=True)
    container: str | None = _field(None, "Image of the container in which its command runs.", ours=True)
    stdio: StdioMode | None = _field(None, "Files of its output; None is as the workflow says.", ours=True)
    delete_stdio_on_success: bool | None = _field(
        None, "These files are deleted once it has completed; None is as the workflow says.", ours=True
    )
    executor_options: ExecutorOptions | None = _field(
        None, "What it sets for executors: a JSON object of an object for each executor, by name.", ours=True
    )
    clean_exit_after_stop: CleanExit = _field(
        "auto", "What exit code 0 means after a stop: auto, completed or interrupted.", ours=True
    )
    not_before: str | None = _field(None, "When its next attempt may begin, UTC.", FieldAccess.SERVER, ours=True)
    waiting_reason: str | None = _field(
        None,
        "What its attempt waits for that was given to an executor and has not begun.",
        FieldAccess.SERVER,
        ours=True,
    )
    is_interrupted: bool = _field(
        False,
        "It is terminated only because its runner had to end; the next runner resumes it.",
        FieldAccess.SERVER,
        ours=True,
    )


@define
class FileRecord:
    """A file that jobs read or write."""

    id: int | None = _id()
    workflow_id: int = _workflow_id()
    name: str = _required("Name; unique within a workflow.")
    path: str = _required("Path on the file system.")
    st_mtime: float | None = _field(None, "Last known modification time, seconds since the epoch.")


@define
class UserDataRecord:
    """A JSON value that jobs read or write."""

    id: int | None = _id()
    workflow_id: int = _workflow_id()
    name: str = _required("Name; unique within a workflow.")
    is_ephemeral: bool = _field(False, "Cleared at each initialize.")
    data: Any = _field(None, "Any JSON value; null is absent.")


@define
class ResourceRequirementsRecord:
    """A job's requests."""

    id: int | None = _id()
    workflow_id: int = _workflow_id()
    name: str = _required("Name; unique within a spec.")
    num_cpus: int = _field(1, "CPU cores per node.")
    num_gpus: int = _field(0, "GPUs per node.")
    num_nodes: int = _field(1, "Nodes.")
    memory: str = _field("1m", "Memory per node, such as 512m or 16g.")
    runtime: str = _field("P0DT1M", "Longest run time, ISO 8601 duration.")


@define
class FailureHandlerRecord:
    """Rules that answer a job's failures."""

    id: int | None = _id()
    workflow_id: int = _workflow_id()
    name: str = _required("Name; unique within a workflow.")
    rules: str = _required("JSON text of a list of rules.")


@define
class SlurmSchedulerRecord:
    """An sbatch request."""

    id: int | None = _id()
    workflow_id: int = _workflow_id()
    name: str | None = _field(None, "Name; unique within a workflow.")
    account: str = _required("Account to charge.")
    gres: str | None = _field(None, "Generic resources, such as gpu:2.")
    mem: str | None = _field(None, "Memory per node.")
    nodes: int = _required("Nodes per allocation.")
    ntasks_per_node: int | None = _field(None, "Tasks per node.")
    partition: str | None = _field(None, "Partition.")
    qos: str | None = _field("normal", "Quality of service.")
    tmp: str | None = _field(None, "Temporary storage.")
    walltime: str = _required("Time limit, such as 04:00:00.")
    extra: str | None = _field(None, "Further sbatch options.")


@define
class LocalSchedulerRecord:
    """A local machine as a scheduler."""

    id: int | None = _id()
    workflow_id: int = _workflow_id()
    name: str | None = _field("default", "Name.")
    memory: str | None = _field(None, "Memory it offers.")
    num_cpus: int | None = _field(None, "CPUs it offers.")


@define
class WorkflowActionRecord:
    """Something to do when a trigger fires."""

    id: int | None = _id()
    workflow_id: int = _workflow_id()
    trigger_type: str = _required("What fires it.", FieldAccess.CREATE)
    action_type: str = _required("What is done.", FieldAccess.CREATE)
    action_config: Any = _required("Settings of the action type.", FieldAccess.CREATE)
    job_ids: list[int] | None = _field(None, "Jobs that a job trigger watches.", FieldAccess.CREATE)
    trigger_count: int = _field(0, "Triggers seen so far.", FieldAccess.SERVER)
    required_triggers: int = _field(1, "Triggers needed.", FieldAccess.SERVER)
    executed: bool = _field(False, "It was claimed.", FieldAccess.SERVER)
    executed_at: str | None = _field(None, "When it was claimed, UTC, ISO 8601.", FieldAccess.SERVER)
    executed_by: int | None = _field(None, "Compute node that claimed it.", FieldAccess.SERVER)
    finished_at: str | None = _field(
        None,
        "When the runner that claimed it was done, or new schedulers replaced it, UTC, ISO 8601.",
        FieldAccess.SERVER,
    )
    error: str | None = _field(None, "Why it failed.", FieldAccess.SERVER)
    persistent: bool = _field(False, "Every worker may claim it.", FieldAccess.CREATE)
    is_recovery: bool = _field(False, "Made by a recovery; deleted at the next initialize.", FieldAccess.CREATE)


@define
class ComputeNodeRecord:
    """A runner on one machine, and what it offers."""

    id: int | None = _id()
    workflow_id: int = _workflow_id()
    hostname: str = _required("Name of the machine.")
    pid: int = _required("Process id of the runner.")
    start_time: str = _required("Start of the runner, UTC, ISO 8601.")
    duration_seconds: float | None = _field(None, "How long it ran.")
    is_active: bool | None = _field(None, "The runner has not reported its end.")
    num_cpus: int = _required("CPU cores offered.")
    memory_gb: float = _required("Memory offered, in GiB.")
    num_gpus: int = _required("GPUs offered.")
    num_nodes: int = _required("Nodes offered.")
    time_limit: str | None = _field(None, "Walltime, ISO 8601 duration; None is unlimited.")
    scheduler_config_id: int | None = _field(None, "Scheduler whose jobs it takes.")
    compute_node_type: str = _required("Kind of allocation: local, slurm, remote.")
    scheduler: Any = _field(None, "The executor's own data, as a JSON object.")
    is_draining: bool | None = _field(
        None, "It is asked to take no more jobs, and to end when those that it runs have ended.", ours=True
    )
    last_heard_at: str | None = _field(
        None,
        "When it last reported to the server, UTC, ISO 8601; stored once a minute at most.",
        FieldAccess.SERVER,
        ours=True,
    )
    epoch: int | None = _field(
        None,
        "How often its lease has changed hands: it was taken over, or closed. None is 0. An exchange with another "
        "epoch is refused.",
        FieldAccess.SERVER,
        ours=True,
    )
    taken_over_by: int | None = _field(
        None, "The runner that continues the attempts of this one, which is dead.", FieldAccess.SERVER, ours=True
    )


GIVEN_OPTIONS: Final = "given_options"
"""Key in `ComputeNodeRecord.scheduler`: the options of the executor that the runner's command line gave, by name."""
HINDRANCE: Final = "hindrance"
"""Key in `ComputeNodeRecord.scheduler`: ``reason`` for which the runner cannot start attempts now, and ``since``."""


@define
class ScheduledComputeNodeRecord:
    """An allocation of a batch system, or a request for allocations without a recorded reply of the batch system."""

    id: int | None = _id()
    workflow_id: int = _workflow_id()
    scheduler_id: int = _required("Id in the batch system if it is a whole number, else 0.")
    scheduler_config_id: int = _required("Scheduler it was made from.")
    scheduler_type: str = _required("Executor that asked.")
    status: str = _required("pending, active or complete.")
    allocation_id: str | None = _field(None, "Id in the batch system, as text.", ours=True)
    request: str | None = _field(None, "Name of the request for nodes in the batch system.", ours=True)
    requester: Any = _field(
        None, "Process that requested the nodes, while the batch system's reply is not recorded.", ours=True
    )

    @property
    def is_request(self) -> bool:
        """Whether this is a request of which the batch system's reply is not recorded."""
        return self.request is not None and self.allocation_id is None

    @property
    def batch_id(self) -> str:
        """Id of the allocation in the batch system; records of Torc's own clients have whole numbers only."""
        return str(self.scheduler_id) if self.allocation_id is None else self.allocation_id


@define
class ResultRecord:
    """How one attempt of a job ended."""

    id: int | None = _id()
    job_id: int = _required("The job.", FieldAccess.CREATE)
    workflow_id: int = _workflow_id()
    run_id: int = _required("Run of the workflow.", FieldAccess.CREATE)
    attempt_id: int = _field(1, "Attempt of the job.", FieldAccess.CREATE)
    compute_node_id: int = _required("Runner that held it.", FieldAccess.CREATE)
    return_code: int = _required("Rendering of the ending as one number.")
    exec_time_minutes: float = _required("Run time in minutes.")
    completion_time: str = _required("End, UTC, ISO 8601.")
    status: str = _required("Status the attempt ended in.")
    peak_memory_bytes: int | None = _field(None, "Largest memory: of one process by the kernel, of all by samples.")
    avg_memory_bytes: int | None = _field(None, "Mean memory of all processes, by samples.")
    peak_cpu_percent: float | None = _field(None, "Largest CPU use, at least the mean; 100 is one core.")
    avg_cpu_percent: float | None = _field(None, "CPU time by run time; 100 is one core.")
    exit_code: int | None = _field(None, "Code the process ended with; null after a signal.", ours=True)
    signal: int | None = _field(None, "Signal that ended it.", ours=True)
    exit_class: str | None = _field(None, "Class of the ending.", ours=True)
    reason: str | None = _field(None, "Why it has this class.", ours=True)
    cpu_time_s: float | None = _field(None, "CPU seconds used.", ours=True)
    observation: Any = _field(None, "The whole observation, as a JSON object.", ours=True)


@define
class EventRecord:
    """Something that happened."""

    id: int | None = _id()
    workflow_id: int = _workflow_id()
    timestamp: int | None = _field(None, "Milliseconds since the epoch, UTC.", FieldAccess.SERVER)
    data: Any = _required("A JSON object; event_type names it.")


@define
class AccessGroupRecord:
    """A group of users who share workflows."""

    id: int | None = _id()
    name: str = _required("Name; there is one group of it.")
    description: str | None = _field(None, "Free text.")
    is_system: bool = _field(False, "The server's configuration determines its members.", FieldAccess.SERVER, ours=True)
    created_at: str | None = _field(None, "Creation time, UTC, ISO 8601 with milliseconds.", FieldAccess.SERVER)


@define
class UserGroupMembershipRecord:
    """One person in one access group."""

    id: int | None = _id()
    user_name: str = _required("Name that the person logs in with.", FieldAccess.CREATE)
    group_id: int = _required("The access group.", FieldAccess.CREATE)
    role: str = _field("member", "`member`, or `admin`, who may add and remove members.", FieldAccess.CREATE)
    created_at: str | None = _field(None, "Creation time, UTC, ISO 8601 with milliseconds.", FieldAccess.SERVER)


@define
class WorkflowAccessGroupRecord:
    """One workflow that one access group may use."""

    workflow_id: int = _workflow_id()
    group_id: int = _required("The access group.", FieldAccess.CREATE)
    created_at: str | None = _field(None, "Creation time, UTC, ISO 8601 with milliseconds.", FieldAccess.SERVER)


Record = (
    WorkflowRecord
    | WorkflowStatusRecord
    | JobRecord
    | FileRecord
    | UserDataRecord
    | ResourceRequirementsRecord
    | FailureHandlerRecord
    | SlurmSchedulerRecord
    | LocalSchedulerRecord
    | WorkflowActionRecord
    | ComputeNodeRecord
    | ScheduledComputeNodeRecord
    | ResultRecord
    | EventRecord
    | AccessGroupRecord
    | UserGroupMembershipRecord
    | WorkflowAccessGroupRecord
)


def field_names(record: type[Record]) -> list[str]:
    """Return the names of a record's fields, in declaration order."""
    return [attribute.name for attribute in fields(record)]
