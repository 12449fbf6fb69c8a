"""What the server answers besides records: counts, relations, claims.

Structs and not attrs classes: they are made at every start of the program, in a tenth of the time.
"""

from typing import Any, Final, Generic, TypeVar

import msgspec

from torc_framework.models.plan import Barrier
from torc_framework.models.records import JobRecord

_T = TypeVar("_T")

DATABASE_GONE: Final = "DatabaseGone"
"""Stands in the field ``error`` of a refusal (503) when the server's database file was deleted or replaced."""


class Page(msgspec.Struct, Generic[_T]):
    """A part of a list; ``has_more`` says whether there is anything after it."""

    items: list[_T]
    offset: int
    max_limit: int
    count: int
    total_count: int
    has_more: bool


class ShortPage(msgspec.Struct, Generic[_T]):
    """A part of a list, as lists about access groups are answered."""

    items: list[_T]
    offset: int
    limit: int
    total_count: int
    has_more: bool


class CompletionState(msgspec.Struct):
    """Whether a workflow is over."""

    is_complete: bool
    is_canceled: bool
    needs_to_run_completion_script: bool


class Added(msgspec.Struct):
    """Ids of what was added to a workflow, in the order in which it was given."""

    job_ids: list[int]
    user_data_ids: list[int]


class Rescheduled(msgspec.Struct):
    """Ids of new schedulers and actions, in the order in which they were given, and of actions that ask no more."""

    scheduler_ids: list[int]
    action_ids: list[int]
    retired_action_ids: list[int]


class Message(msgspec.Struct):
    """What was done, in words."""

    message: str


class DeletedCount(msgspec.Struct):
    """How many records were deleted."""

    count: int


class DeletedFiles(msgspec.Struct):
    """How many files were deleted."""

    deleted_count: int


class DeletedUserData(msgspec.Struct):
    """How many user data records were deleted, also in words."""

    message: str
    deleted_count: int


class IsUninitialized(msgspec.Struct):
    """Whether every job is uninitialized or disabled."""

    is_uninitialized: bool


class JobCounts(msgspec.Struct):
    """Jobs of a workflow by status.

    Attributes:
        interrupted: How many of the terminated ones were interrupted: the next runner goes on with them.
    """

    counts: dict[str, int]
    total: int
    interrupted: int = 0


class ResumedJobs(msgspec.Struct):
    """Ids of the interrupted jobs that were made ready."""

    job_ids: list[int]


class JobIds(msgspec.Struct):
    """The ids of a workflow's jobs, in order."""

    job_ids: list[int]
    count: int


class RequiredFiles(msgspec.Struct):
    """Ids of files that must exist before a run; as text, as Torc's clients want them."""

    files: list[str]


class MissingUserData(msgspec.Struct):
    """Ids of user data that must have a value before a run and has none."""

    user_data: list[int]


class LatestEvent(msgspec.Struct):
    """Time of a workflow's newest event, milliseconds since the epoch."""

    timestamp: int | None


class ResetJobs(msgspec.Struct):
    """How many jobs were made uninitialized; ``reset_type`` says so if only failed ones were."""

    workflow_id: int
    updated_count: int
    status: str
    reset_type: str | None = None


class ChangedJobs(msgspec.Struct):
    """Names of jobs whose inputs have changed since the last initialize."""

    reinitialized_jobs: list[str]


class RerunJob(msgspec.Struct):
    """A job that runs again, the status it was in, and the first thing found to be a reason for it.

    ``cause`` is one of ``status``, ``command``, ``invocation_script``, ``dependencies``, ``input_files``,
    ``output_files``, ``input_user_data``, ``output_user_data``, ``user_data``, ``inputs``, ``input_file``,
    ``output_file``, ``dependency``; of the last, ``depends_on_job_id`` is the job that runs again.
    """

    id: int
    name: str
    status: str
    cause: str
    reason: str
    depends_on_job_id: int | None = None


class Reinitialized(msgspec.Struct):
    """The run that began, or with ``dry_run`` the present one, and the jobs that run (would run) again.

    ``reset_count`` is the number of jobs that were reset before, whatever they had done.
    """

    workflow_id: int
    run_id: int
    dry_run: bool
    job_count: int
    jobs: list[RerunJob]
    reset_count: int = 0


class DeletedJobs(msgspec.Struct):
    """Jobs that were deleted, as they were."""

    jobs: list[JobRecord]


class JobDependency(msgspec.Struct):
    """One job waits for another."""

    job_id: int
    job_name: str
    depends_on_job_id: int
    depends_on_job_name: str
    workflow_id: int


class JobFileRelationship(msgspec.Struct):
    """A file, a job that writes it and a job that reads it; either may be missing."""

    file_id: int
    file_name: str
    file_path: str
    workflow_id: int
    producer_job_id: int | None = None
    producer_job_name: str | None = None
    consumer_job_id: int | None = None
    consumer_job_name: str | None = None


class JobUserDataRelationship(msgspec.Struct):
    """User data, a job that writes it and a job that reads it; either may be missing."""

    user_data_id: int
    user_data_name: str
    workflow_id: int
    producer_job_id: int | None = None
    producer_job_name: str | None = None
    consumer_job_id: int | None = None
    consumer_job_name: str | None = None


class DependencyGraph(msgspec.Struct):
    """All dependencies: pairs (job, job it waits for), and groups that stand for M x N pairs, by id."""

    dependencies: list[tuple[int, int]]
    groups: list[Barrier]


class CreatedJobs(msgspec.Struct):
    """The jobs of a batch, in its order."""

    jobs: list[JobRecord]


class ClaimedJobs(msgspec.Struct):
    """Jobs handed out, now pending; ``reason`` says why there can be none."""

    jobs: list[JobRecord]
    reason: str | None = None


class ReadyRequirements(msgspec.Struct):
    """What all ready jobs ask for together; memory in GiB, the longest run time as ISO 8601 duration."""

    num_jobs: int
    num_cpus: int
    num_gpus: int
    memory_gb: float
    max_num_nodes: int
    max_runtime: str


class RemoteWorker(msgspec.Struct):
    """A machine that a workflow may use: ``[user@]host[:port]``."""

    worker: str
    workflow_id: int


class ClaimedAction(msgspec.Struct):
    """An action that was taken; somebody else's claim is an error."""

    action_id: int
    success: bool = True
    claimed: bool = True


class AccessCheck(msgspec.Struct):
    """Whether a person may use a workflow."""

    has_access: bool
    user_name: str
    workflow_id: int


class PlanReceipt(msgspec.Struct):
    """What became of a plan: the workflow, its run, and how many records of each kind there are."""

    id: int
    run_id: int
    job_count: int = 0
    file_count: int = 0
    user_data_count: int = 0
    resource_requirements_count: int = 0
    failure_handler_count: int = 0
    slurm_scheduler_count: int = 0
    local_scheduler_count: int = 0
    action_count: int = 0
    dependency_count: int = 0
    barrier_count: int = 0


class ImportedWorkflow(msgspec.Struct):
    """The workflow that a document became, and how many records of each kind it has."""

    workflow_id: int
    name: str
    user: str
    jobs: int
    files: int
    user_data: int
    results: int
    events: int


class Ping(msgspec.Struct):
    """The server is there."""

    status: str


class Health(msgspec.Struct):
    """Whether the server is fit to work: ``status`` is ok or unavailable, ``database`` ok or what is wrong with it."""

    status: str
    database: str
    version: str


class ErrorBody(msgspec.Struct):
    """Why a request was refused; ``code`` is the HTTP status."""

    error: dict[str, Any] = msgspec.field(default_factory=dict)
    errorNum: int | None = None  # noqa: N815
    errorMessage: str | None = None  # noqa: N815
    code: int | None = None
