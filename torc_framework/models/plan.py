"""The resolved plan of a workflow: the spec pipeline builds it, and the store inserts its rows.

All references are positions in the plan's own lists, from 0, so that a plan of 100,000 jobs is built, sent and stored
without looking up names. Its JSON form has exactly this shape.
"""

import re
from typing import Any, Final

import msgspec
from attrs import Factory, define

from torc_framework.models.barriers import Barrier
from torc_framework.models.executor_options import ExecutorOptions
from torc_framework.models.exits import CleanExit
from torc_framework.models.records import (
    FailureHandlerRecord,
    FileRecord,
    LocalSchedulerRecord,
    ResourceRequirementsRecord,
    SlurmSchedulerRecord,
    UserDataRecord,
    WorkflowRecord,
)
from torc_framework.models.stdio import StdioMode

USER_DATA_REFERENCE: Final = re.compile(r"\$\{user_data\.(?:input|output)\.([^{}]+)\}")
"""A reference to user data in a planned command or invocation script; group 1 is the name."""


class PlannedJob(msgspec.Struct, omit_defaults=True, gc=False):
    """One job of a plan; a struct without defaults in its JSON form, because a plan may have 100,000 of them.

    Attributes:
        command: Command line. References to files are replaced by paths; references to user data are still
            ``${user_data.input.NAME}``, because a record has no id before it is stored. The store writes the ids
            (`USER_DATA_REFERENCE`).
        invocation_script: Program that receives the command; references as in ``command``.
        resource_requirements: Position in the plan's resource requirements; None is the default record.
        failure_handler: Position in the plan's failure handlers.
        scheduler: Position in the plan's Slurm schedulers.
        executor: Executor that must run it.
        shell: Shell that runs its command; None is the workflow's.
        container: Image of the container in which its command runs.
        executor_options: What it sets for executors, by name.
        stdio: Files of its output; None is as the workflow says. Likewise ``delete_stdio_on_success``.
        clean_exit_after_stop: One of `CleanExit`.
        input_files: Positions in the plan's files; likewise the other three.
    """

    name: str
    command: str
    invocation_script: str | None = None
    resource_requirements: int | None = None
    failure_handler: int | None = None
    scheduler: int | None = None
    executor: str | None = None
    shell: str | None = None
    container: str | None = None
    executor_options: ExecutorOptions | None = None
    stdio: StdioMode | None = None
    delete_stdio_on_success: bool | None = None
    cancel_on_blocking_job_failure: bool = True
    supports_termination: bool = False
    clean_exit_after_stop: CleanExit = "auto"
    input_files: list[int] | None = None
    output_files: list[int] | None = None
    input_user_data: list[int] | None = None
    output_user_data: list[int] | None = None


@define
class PlannedAction:
    """One action of a plan; ``jobs`` are positions, ``config`` is the record's ``action_config``.

    Attributes:
        scheduler: Position, in the plan's Slurm schedulers, of the scheduler of a ``schedule_nodes`` action; the
            store writes its id into the configuration as ``scheduler_id``.
    """

    trigger_type: str
    action_type: str
    config: dict[str, Any] = Factory(dict)
    jobs: list[int] | None = None
    scheduler: int | None = None
    persistent: bool = False


@define
class Plan:
    """A whole workflow, expanded and resolved.

    The ``workflow_id`` of the records in it is 0 until the store sets it.

    Attributes:
        dependencies: Pairs (job, job it waits for), without duplicates and without those that a barrier covers:
            explicit dependencies and those implied by files and user data.
        barriers: Shared dependencies, each for at least two waiting and two awaited jobs.
    """

    workflow: WorkflowRecord
    jobs: list[PlannedJob]
    dependencies: list[tuple[int, int]] = Factory(list)
    barriers: list[Barrier] = Factory(list)
    files: list[FileRecord] = Factory(list)
    user_data: list[UserDataRecord] = Factory(list)
    resource_requirements: list[ResourceRequirementsRecord] = Factory(list)
    failure_handlers: list[FailureHandlerRecord] = Factory(list)
    slurm_schedulers: list[SlurmSchedulerRecord] = Factory(list)
    local_schedulers: list[LocalSchedulerRecord] = Factory(list)
    actions: list[PlannedAction] = Factory(list)


@define
class SchedulerPlan:
    """Schedulers (requests to a batch system) for the jobs of a plan, and the actions that submit them.

    Attributes:
        schedulers: The schedulers.
        bound: For each job of the plan the position of its scheduler; None if it has none.
        actions: ``schedule_nodes`` actions; ``jobs`` are positions in the plan, ``scheduler`` in ``schedulers``.
        warnings: What is valid but may not be intended.
    """

    schedulers: list[SlurmSchedulerRecord]
    bound: list[int | None]
    actions: list[PlannedAction] = Factory(list)
    warnings: list[str] = Factory(list)


@define
class SchedulerOrder:
    """New schedulers for jobs of a stored workflow, and the actions that submit them from now on.

    Attributes:
        run_id: The run for which the schedulers were planned; the server refuses any but the present run.
        schedulers: The schedulers; their ``workflow_id`` is 0 until the store sets it.
        job_ids: For each scheduler the jobs that are bound to it.
        actions: ``schedule_nodes`` actions; ``jobs`` are ids, ``scheduler`` is a position in ``schedulers``.
    """

    run_id: int
    schedulers: list[SlurmSchedulerRecord]
    job_ids: list[list[int]]
    actions: list[PlannedAction] = Factory(list)


class AddedJob(msgspec.Struct, omit_defaults=True, gc=False):
    """A job to be added to a stored workflow. It refers to the addition's user data by position, to all else by id."""

    name: str
    command: str
    resource_requirements_id: int | None = None
    scheduler_id: int | None = None
    failure_handler_id: int | None = None
    cancel_on_blocking_job_failure: bool = True
    supports_termination: bool = False
    clean_exit_after_stop: CleanExit = "auto"
    input_user_data: list[int] = msgspec.field(default_factory=list)
    output_user_data: list[int] = msgspec.field(default_factory=list)


@define
class Addition:
    """User data and jobs to be added to a stored workflow in one transaction.

    Attributes:
        user_data: New records; their ``workflow_id`` is 0 until the store sets it.
        depends_on_job_ids: Jobs of the workflow for which all the new jobs wait.
    """

    jobs: list[AddedJob]
    user_data: list[UserDataRecord] = Factory(list)
    depends_on_job_ids: list[int] = Factory(list)
