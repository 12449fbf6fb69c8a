"""Bodies of the server's responses other than records: counts, relations, claims.

They are msgspec structs, not attrs classes: every start of a program defines these classes, and structs take a tenth
of the time.
"""

from typing import Any, Final, Generic, TypeVar

import msgspec

from torc_framework.models.barriers import Barrier
from torc_framework.models.records import JobRecord

_T = TypeVar("_T")

DATABASE_GONE: Final = "DatabaseGone"
"""Stands in the field ``error`` of a refusal (503) when the server's database file was deleted or replaced."""


RECORD_COUNTS_HEADER: Final = "Torc-Record-Counts"
"""Header of an exported workflow: the lengths of the document's lists, as in ``jobs=5,files=1``."""


class Page(msgspec.Struct, Generic[_T]):
    """A part of a list; with ``has_more`` there are further items after it."""

    items: list[_T]
    offset: int
    max_limit: int
    count: int
    total_count: int
    has_more: bool


class ShortPage(msgspec.Struct, Generic[_T]):
    """A part of a list about access groups, in the form that Torc gives to these lists."""

    items: list[_T]
    offset: int
    limit: int
    total_count: int
    has_more: bool


class CompletionState(msgspec.Struct):
    """Whether a workflow is complete."""

    is_complete: bool
    is_canceled: bool
    needs_to_run_completion_script: bool


class Added(msgspec.Struct):
    """Ids of what was added to a workflow, in the order in which it was given."""

    job_ids: list[int]
    user_data_ids: list[int]


class Rescheduled(msgspec.Struct):
    """Ids of new schedulers and actions, in the order of the request, and of actions that no longer request nodes."""

    scheduler_ids: list[int]
    action_ids: list[int]
    retired_action_ids: list[int]


class Message(msgspec.Struct):
    """A sentence on what the server did."""

    message: str


class StatusMessage(msgspec.Struct):
    """A sentence on what the server did to a workflow, and the workflow's status after it."""

    message: str
    id: int
    run_id: int
    is_canceled: bool
    is_archived: bool
    has_detected_need_to_run_completion_script: bool


class DeletedCount(msgspec.Struct):
    """How many records were deleted."""

    count: int


class DeletedFiles(msgspec.Struct):
    """How many files were deleted."""

    deleted_count: int


class DeletedUserData(msgspec.Struct):
    """How many user data records were deleted, as a number and as a sentence."""

    message: str
    deleted_count: int


class IsUninitialized(msgspec.Struct):
    """Whether every job is uninitialized or disabled."""

    is_uninitialized: bool


class JobCounts(msgspec.Struct):
    """Jobs of a workflow by status.

    Attributes:
        interrupted: How many of the terminated jobs were interrupted: the next runner resumes them.
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
    """Ids of files that must exist before a run; as texts, which Torc's clients expect."""

    files: list[str]


class MissingUserData(msgspec.Struct):
    """Ids of user data that must have a value before a run and have none."""

    user_data: list[int]


class LatestEvent(msgspec.Struct):
    """Time of a workflow's newest event, milliseconds since the epoch."""

    timestamp: int | None


class ResetJobs(msgspec.Struct):
    """How many jobs were made uninitialized; ``reset_type`` is ``failed_only`` if only failed jobs were."""

    workflow_id: int
    updated_count: int
    status: str
    reset_type: str | None = None


class ChangedJobs(msgspec.Struct):
    """Names of jobs whose inputs have changed since the last initialize."""

    reinitialized_jobs: list[str]


class RerunJob(msgspec.Struct):
    """A job that runs again, the status that it had, and the first reason found.

    ``cause`` is one of ``status``, ``command``, ``invocation_script``, ``dependencies``, ``input_files``,
    ``output_files``, ``input_user_data``, ``output_user_data``, ``user_data``, ``inputs``, ``input_file``,
    ``output_file``, ``dependency``; with ``dependency``, ``depends_on_job_id`` is the upstream job that runs again.
    """

    id: int
    name: str
    status: str
    cause: str
    reason: str
    depends_on_job_id: int | None = None


class Reinitialized(msgspec.Struct):
    """The run that began, or with ``dry_run`` the present run, and the jobs that run (would run) again.

    ``reset_count`` is the number of jobs that were reset first, without comparing their inputs.
    """

    workflow_id: int
    run_id: int
    dry_run: bool
    job_count: int
    jobs: list[RerunJob]
    reset_count: int = 0


class DeletedJobs(msgspec.Struct):
    """Jobs that were deleted, as they were before."""

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
    """Jobs that were claimed, now pending; ``reason`` is why no job could be claimed."""

    jobs: list[JobRecord]
    reason: str | None = None


class ReadyRequirements(msgspec.Struct):
    """Requests of all ready jobs: sums, memory in GiB, and the largest node count and run time (ISO 8601 duration)."""

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
    """An action that this caller has claimed; if another runner has claimed it, the response is an error instead."""

    action_id: int
    success: bool = True
    claimed: bool = True


class AccessCheck(msgspec.Struct):
    """Whether a person may use a workflow."""

    has_access: bool
    user_name: str
    workflow_id: int


class PlanReceipt(msgspec.Struct):
    """The workflow that a plan was stored as, its run, and how many records of each kind were stored."""

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
    """The workflow that an export document was imported as, and how many records of each kind it has."""

    workflow_id: int
    name: str
    user: str
    jobs: int
    files: int
    user_data: int
    results: int
    events: int


class Ping(msgspec.Struct):
    """The server responds."""

    status: str


class Health(msgspec.Struct):
    """The server's health: ``status`` is ok or unavailable, ``database`` is ok or the problem with it."""

    status: str
    database: str
    version: str


class ErrorBody(msgspec.Struct):
    """Why a request was refused; ``code`` is the HTTP status."""

    error: dict[str, Any] = msgspec.field(default_factory=dict)
    errorNum: int | None = None  # noqa: N815 - a field of the HTTP contract
    errorMessage: str | None = None  # noqa: N815 - a field of the HTTP contract
    code: int | None = None
