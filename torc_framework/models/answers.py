"""What the server answers besides records: counts, relations, claims."""

from typing import Any, Generic, TypeVar

from attrs import Factory, define

from torc_framework.models.records import JobRecord


_T = TypeVar("_T")


@define
class Page(Generic[_T]):
    """A part of a list; ``has_more`` says whether there is anything after it."""

    items: list[_T]
    offset: int
    max_limit: int
    count: int
    total_count: int
    has_more: bool


@define
class ShortPage(Generic[_T]):
    """A part of a list, as lists about access groups are answered."""

    items: list[_T]
    offset: int
    limit: int
    total_count: int
    has_more: bool


@define
class Message:
    """What was done, in words."""

    message: str


@define
class DeletedCount:
    """How many records were deleted."""

    count: int


@define
class DeletedFiles:
    """How many files were deleted."""

    deleted_count: int


@define
class DeletedUserData:
    """How many user data records were deleted, also in words."""

    message: str
    deleted_count: int


@define
class IsUninitialized:
    """Whether every job is uninitialized or disabled."""

    is_uninitialized: bool


@define
class JobCounts:
    """Jobs of a workflow by status."""

    counts: dict[str, int]
    total: int


@define
class JobIds:
    """The ids of a workflow's jobs, in order."""

    job_ids: list[int]
    count: int


@define
class RequiredFiles:
    """Ids of files that must exist before a run; as text, as Torc's clients want them."""

    files: list[str]


@define
class MissingUserData:
    """Ids of user data that must have a value before a run and has none."""

    user_data: list[int]


@define
class LatestEvent:
    """Time of a workflow's newest event, milliseconds since the epoch."""

    timestamp: int | None


@define
class ResetJobs:
    """How many jobs were made uninitialized; ``reset_type`` says so if only failed ones were."""

    workflow_id: int
    updated_count: int
    status: str
    reset_type: str | None = None


@define
class ChangedJobs:
    """Names of jobs whose inputs have changed since the last initialize."""

    reinitialized_jobs: list[str]


@define
class JobDependency:
    """One job waits for another."""

    job_id: int
    job_name: str
    depends_on_job_id: int
    depends_on_job_name: str
    workflow_id: int


@define
class JobFileRelationship:
    """A file, a job that writes it and a job that reads it; either may be missing."""

    file_id: int
    file_name: str
    file_path: str
    workflow_id: int
    producer_job_id: int | None = None
    producer_job_name: str | None = None
    consumer_job_id: int | None = None
    consumer_job_name: str | None = None


@define
class JobUserDataRelationship:
    """User data, a job that writes it and a job that reads it; either may be missing."""

    user_data_id: int
    user_data_name: str
    workflow_id: int
    producer_job_id: int | None = None
    producer_job_name: str | None = None
    consumer_job_id: int | None = None
    consumer_job_name: str | None = None


@define
class DependencyGraph:
    """All dependencies: pairs (job, job it waits for), and groups ``{upstream, downstream}`` of M x N pairs."""

    dependencies: list[tuple[int, int]]
    groups: list[dict[str, list[int]]]


@define
class CreatedJobs:
    """The jobs of a batch, in its order."""

    jobs: list[JobRecord]


@define
class ClaimedJobs:
    """Jobs handed out, now pending; ``reason`` says why there can be none."""

    jobs: list[JobRecord]
    reason: str | None = None


@define
class ReadyRequirements:
    """What all ready jobs ask for together; memory in GiB, the longest run time as ISO 8601 duration."""

    num_jobs: int
    num_cpus: int
    num_gpus: int
    memory_gb: float
    max_num_nodes: int
    max_runtime: str


@define
class RemoteWorker:
    """A machine that a workflow may use: ``[user@]host[:port]``."""

    worker: str
    workflow_id: int


@define
class ClaimedAction:
    """An action that was taken; somebody else's claim is an error."""

    action_id: int
    success: bool = True
    claimed: bool = True


@define
class StoredPlan:
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


@define
class Ping:
    """The server is there."""

    status: str


@define
class Failure:
    """Why a request was refused; ``code`` is the HTTP status."""

    error: dict[str, Any] = Factory(dict)
    errorNum: int | None = None  # noqa: N815
    errorMessage: str | None = None  # noqa: N815
    code: int | None = None
