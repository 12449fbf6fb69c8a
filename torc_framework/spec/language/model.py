"""Classes of the entries of a workflow file, with one declaration per field.

The JSON schema for files, the reader of KDL documents and the reference pages are derived from these classes. None
stands for an absent field.
"""

from typing import Annotated, Any, Final, Literal

from attrs import Factory, define
from msgspec import Meta

from torc_framework.models.executor_options import ExecutorOptions
from torc_framework.models.exits import CleanExit
from torc_framework.models.stdio import StdioMode

Text = Annotated[str, Meta(min_length=1)]
Names = list[Text] | None
Count = Annotated[int, Meta(ge=1, le=2**31 - 1)]
Amount = Annotated[int, Meta(ge=0, le=2**31 - 1)]

Trigger = Literal[
    "on_workflow_start",
    "on_workflow_complete",
    "on_worker_start",
    "on_worker_complete",
    "on_jobs_ready",
    "on_jobs_complete",
]
JOB_TRIGGERS: Final = ("on_jobs_ready", "on_jobs_complete")
"""Triggers that depend on jobs."""
WORKER_TRIGGERS: Final = ("on_worker_start", "on_worker_complete")
"""Triggers that fire once per runner; their actions are persistent by default."""


@define(kw_only=True)
class ParameterizedSpec:
    """Common fields of jobs, files and user data: parameters, which expand an entry into several."""

    parameters: Annotated[dict[str, Text] | None, Meta(description="Local parameters, by name.")] = None
    parameter_mode: Annotated[
        Literal["product", "zip"], Meta(description="Combine parameters as all combinations, or position by position.")
    ] = "product"
    use_parameters: Annotated[Names, Meta(description="Parameters of the workflow to use here.")] = None


@define(kw_only=True)
class ResourceRequirementsSpec:
    """Resource requirements for jobs."""

    name: Annotated[Text, Meta(description="Name; unique, and not 'default'.")]
    num_cpus: Annotated[Count, Meta(description="CPU cores per node.")]
    memory: Annotated[Text, Meta(description="Memory per node, such as 512m or 16g.")]
    num_gpus: Annotated[Amount, Meta(description="GPUs per node.")] = 0
    num_nodes: Annotated[Count, Meta(description="Nodes.")] = 1
    runtime: Annotated[Text, Meta(description="Longest run time, ISO 8601 duration.")] = "PT1H"


@define(kw_only=True)
class InlineRequirementsSpec(ResourceRequirementsSpec):
    """Resource requirements that are written in a job instead of their name."""

    name: Annotated[Text, Meta(description="Name for other jobs; by default made from the values.")] = ""


@define(kw_only=True)
class JobSpec(ParameterizedSpec):
    """One unit of work, or a template of many."""

    name: Annotated[Text, Meta(description="Name; unique among jobs.")]
    command: Annotated[Text, Meta(description="Command line for the shell.")]
    invocation_script: Annotated[Text | None, Meta(description="Program that receives the command.")] = None
    resource_requirements: Annotated[
        Text | InlineRequirementsSpec | None,
        Meta(description="Its resource requirements: their name, or the values themselves."),
    ] = None
    failure_handler: Annotated[Text | None, Meta(description="Rules for its failures, by name.")] = None
    scheduler: Annotated[Text | None, Meta(description="Scheduler it is bound to, by name.")] = None
    slurm_scheduler: Annotated[Text | None, Meta(description="Another spelling of scheduler.")] = None
    executor: Annotated[Text | None, Meta(description="Executor that must run it.")] = None
    shell: Annotated[Text | None, Meta(description="Program and options that run its command.")] = None
    container: Annotated[Text | None, Meta(description="Image of the container in which its command runs.")] = None
    executor_options: Annotated[
        ExecutorOptions | None, Meta(description="What it sets for executors: a mapping for each executor, by name.")
    ] = None
    stdio: Annotated[StdioMode | None, Meta(description="Files of its output; by default as the workflow says.")] = None
    delete_stdio_on_success: Annotated[
        bool | None, Meta(description="Delete these files once it has completed; by default as the workflow says.")
    ] = None
    cancel_on_blocking_job_failure: Annotated[bool, Meta(description="Cancel it when a dependency fails.")] = True
    supports_termination: Annotated[
        bool, Meta(description="A runner stops it with SIGTERM and waits before SIGKILL.")
    ] = False
    clean_exit_after_stop: Annotated[
        CleanExit, Meta(description="What exit code 0 means after a stop: it is done, or it saved its state.")
    ] = "auto"
    depends_on: Annotated[Names, Meta(description="Jobs that it waits for.")] = None
    depends_on_regexes: Annotated[Names, Meta(description="Patterns of jobs that it waits for.")] = None
    input_files: Annotated[Names, Meta(description="Files that it reads.")] = None
    input_file_regexes: Annotated[Names, Meta(description="Patterns of files that it reads.")] = None
    output_files: Annotated[Names, Meta(description="Files that it writes.")] = None
    output_file_regexes: Annotated[Names, Meta(description="Patterns of files that it writes.")] = None
    input_user_data: Annotated[Names, Meta(description="User data that it reads.")] = None
    input_user_data_regexes: Annotated[Names, Meta(description="Patterns of user data that it reads.")] = None
    output_user_data: Annotated[Names, Meta(description="User data that it writes.")] = None
    output_user_data_regexes: Annotated[Names, Meta(description="Patterns of user data that it writes.")] = None


@define(kw_only=True)
class FileSpec(ParameterizedSpec):
    """A file that jobs read or write."""

    name: Annotated[Text, Meta(description="Name; unique among files.")]
    path: Annotated[Text, Meta(description="Path on the file system.")]


@define(kw_only=True)
class UserDataSpec(ParameterizedSpec):
    """A JSON value that jobs read or write."""

    name: Annotated[Text | None, Meta(description="Name; unique among user data.")] = None
    data: Annotated[Any, Meta(description="Any JSON value; null is absent.")] = None
    is_ephemeral: Annotated[bool, Meta(description="Cleared at each initialize.")] = False


@define(kw_only=True)
class FailureHandlerSpec:
    """Rules that answer a job's failures."""

    name: Annotated[Text, Meta(description="Name; unique among failure handlers.")]
    rules: Annotated[
        list[dict[str, Any]], Meta(description="Rules; the first one that covers a failure applies.", min_length=1)
    ]


@define(kw_only=True)
class SlurmSchedulerSpec:
    """An sbatch request."""

    account: Annotated[Text, Meta(description="Account to charge.")]
    name: Annotated[Text | None, Meta(description="Name; unique among schedulers.")] = None
    partition: Annotated[Text | None, Meta(description="Partition.")] = None
    nodes: Annotated[Count, Meta(description="Nodes per allocation.")] = 1
    walltime: Annotated[Text, Meta(description="Time limit, such as 04:00:00.")] = "01:00:00"
    mem: Annotated[Text | None, Meta(description="Memory per node.")] = None
    gres: Annotated[Text | None, Meta(description="Generic resources, such as gpu:2.")] = None
    qos: Annotated[Text | None, Meta(description="Quality of service.")] = None
    ntasks_per_node: Annotated[Count | None, Meta(description="Tasks per node.")] = None
    tmp: Annotated[Text | None, Meta(description="Temporary storage.")] = None
    extra: Annotated[Text | None, Meta(description="Further sbatch options.")] = None


@define(kw_only=True)
class ActionSpec:
    """Something to do when a trigger fires."""

    trigger_type: Annotated[Trigger, Meta(description="What fires it.")]
    action_type: Annotated[Text, Meta(description="What is done.")]
    jobs: Annotated[Names, Meta(description="Jobs that a job trigger watches.")] = None
    job_name_regexes: Annotated[Names, Meta(description="Patterns of jobs that a job trigger watches.")] = None
    commands: Annotated[Names, Meta(description="Commands of run_commands, in order.")] = None
    scheduler: Annotated[Text | None, Meta(description="Scheduler of schedule_nodes, by name.")] = None
    scheduler_type: Annotated[Text | None, Meta(description="Kind of that scheduler, such as slurm.")] = None
    num_allocations: Annotated[Count | None, Meta(description="Number of allocations.")] = None
    start_one_worker_per_node: Annotated[bool | None, Meta(description="Start a runner on each node.")] = None
    max_parallel_jobs: Annotated[Count | None, Meta(description="Most jobs at a time of each runner.")] = None
    persistent: Annotated[bool | None, Meta(description="Every runner may claim it.")] = None
    settings: Annotated[
        dict[str, Any],
        Meta(description="Settings of a plugin's action type; they may also stand beside `action_type`."),
    ] = Factory(dict)


@define(kw_only=True)
class ResourceMonitorSpec:
    """How resource use is watched."""

    enabled: Annotated[bool, Meta(description="Sample jobs while they run.")] = True
    granularity: Annotated[
        Literal["summary", "time_series", "Summary", "TimeSeries"],
        Meta(description="Peaks and means in the results, or also every sample in a file."),
    ] = "summary"
    sample_interval_seconds: Annotated[Count, Meta(description="Seconds between two samples of a job.")] = 5
    generate_plots: Annotated[bool, Meta(description="Reserved; `torc plot-resources` draws plots.")] = False


@define(kw_only=True)
class WorkflowSpec:
    """A whole workflow file."""

    name: Annotated[Text, Meta(description="Name of the workflow.")]
    jobs: Annotated[list[JobSpec], Meta(description="The jobs.")]
    user: Annotated[Text | None, Meta(description="Owner; by default the present user.")] = None
    description: Annotated[str | None, Meta(description="Free text.")] = None
    project: Annotated[Text | None, Meta(description="Project that the workflow belongs to.")] = None
    shell: Annotated[
        Text | None, Meta(description="Program and options that run all commands, such as bash -e; by default bash.")
    ] = None
    container: Annotated[Text | None, Meta(description="Image for jobs that name none themselves.")] = None
    executor_options: Annotated[
        ExecutorOptions | None, Meta(description="Options of executors for all jobs; the keys of a job win.")
    ] = None
    stdio: Annotated[
        StdioMode | None,
        Meta(
            description="Files of the jobs' output: separate (two), combined (one, in the order of writing), "
            "no_stdout, no_stderr or none; by default separate."
        ),
    ] = None
    delete_stdio_on_success: Annotated[
        bool | None, Meta(description="Delete these files of a job once it has completed; by default no.")
    ] = None
    metadata: Annotated[Any, Meta(description="Any JSON value of the owner's.")] = None
    parameters: Annotated[dict[str, Text] | None, Meta(description="Parameters for entries with use_parameters.")] = (
        None
    )
    files: Annotated[list[FileSpec] | None, Meta(description="The files.")] = None
    user_data: Annotated[list[UserDataSpec] | None, Meta(description="The user data.")] = None
    resource_requirements: Annotated[
        list[ResourceRequirementsSpec] | None, Meta(description="Resource requirements for jobs.")
    ] = None
    failure_handlers: Annotated[list[FailureHandlerSpec] | None, Meta(description="Rules for failures.")] = None
    slurm_schedulers: Annotated[list[SlurmSchedulerSpec] | None, Meta(description="Slurm schedulers.")] = None
    slurm_defaults: Annotated[
        dict[str, str | int | float | bool] | None, Meta(description="sbatch options for every Slurm scheduler.")
    ] = None
    resource_monitor: Annotated[ResourceMonitorSpec | None, Meta(description="How resource use is watched.")] = None
    actions: Annotated[list[ActionSpec] | None, Meta(description="Actions for triggers.")] = None
    use_pending_failed: Annotated[bool | None, Meta(description="Unmatched failures wait for a verdict.")] = None
    compute_node_expiration_buffer_seconds: Annotated[
        Amount | None, Meta(description="Runners stop this many seconds before their end time.")
    ] = None
    compute_node_wait_for_new_jobs_seconds: Annotated[
        Amount | None, Meta(description="An idle runner waits this long for new jobs.")
    ] = None
    compute_node_ignore_workflow_completion: Annotated[
        bool | None, Meta(description="Runners stay after the workflow is complete.")
    ] = None
    compute_node_wait_for_healthy_database_minutes: Annotated[
        Amount | None, Meta(description="Runners wait this long for a lost server.")
    ] = None
    compute_node_min_time_for_new_jobs_seconds: Annotated[
        Amount | None, Meta(description="No job starts with less walltime left than this.")
    ] = None
    jobs_sort_method: Annotated[
        Literal["none", "gpus_runtime_memory", "gpus_memory_runtime"] | None,
        Meta(description="Order in which ready jobs are claimed."),
    ] = None
