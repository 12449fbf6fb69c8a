"""What the server answers besides records: pages, counts, relations, groups.

Structs and not attrs classes: every start of the program pays for making them.
"""

from typing import Any, Final, Generic, TypeVar

import msgspec

from torc_framework.models.plan import Barrier
from torc_framework.models.records import JobRecord

PAGE_SIZE: Final = 10_000
"""The most records that one list answer holds."""

_T = TypeVar("_T")


class Page(msgspec.Struct, Generic[_T]):
    """One answer of a list endpoint."""

    items: list[_T]
    offset: int = 0
    max_limit: int = PAGE_SIZE
    count: int = 0
    total_count: int = 0
    has_more: bool = False


class CompletionState(msgspec.Struct):
    """Whether a workflow is over."""

    is_complete: bool
    is_canceled: bool = False
    needs_to_run_completion_script: bool = False


class CreatedWorkflow(msgspec.Struct):
    """What became of a plan: the new workflow's id, the current run, and how much was stored."""

    id: int
    run_id: int = 0
    job_count: int = 0
    file_count: int = 0


class Added(msgspec.Struct):
    """Ids of what was added to a workflow, in the order in which it was given."""

    job_ids: list[int]
    user_data_ids: list[int]


class JobCounts(msgspec.Struct):
    """Jobs of a workflow by status label."""

    counts: dict[str, int] = msgspec.field(default_factory=dict)
    total: int = 0


class JobDependency(msgspec.Struct):
    """One job waits for another."""

    job_id: int
    depends_on_job_id: int
    job_name: str = ""
    depends_on_job_name: str = ""
    workflow_id: int = 0


class JobFileRelationship(msgspec.Struct):
    """A file, the job that writes it and a job that reads it; either may be missing."""

    file_id: int
    file_name: str = ""
    file_path: str = ""
    producer_job_id: int | None = None
    producer_job_name: str | None = None
    consumer_job_id: int | None = None
    consumer_job_name: str | None = None
    workflow_id: int = 0


class JobUserDataRelationship(msgspec.Struct):
    """User data, the job that writes it and a job that reads it; either may be missing."""

    user_data_id: int
    user_data_name: str = ""
    producer_job_id: int | None = None
    producer_job_name: str | None = None
    consumer_job_id: int | None = None
    consumer_job_name: str | None = None
    workflow_id: int = 0


class DependencyGraph(msgspec.Struct):
    """All dependencies of a workflow: pairs (job, job it waits for), and groups that stand for M x N pairs."""

    dependencies: list[tuple[int, int]]
    groups: list[Barrier]


class ClaimedJobs(msgspec.Struct):
    """Jobs that were handed out, or why there are none."""

    jobs: list[JobRecord] = msgspec.field(default_factory=list)
    reason: str | None = None


class ReadyRequirements(msgspec.Struct):
    """What all ready jobs ask for together.

    Attributes:
        memory_gb: In GiB.
        max_runtime: ISO 8601 duration.
    """

    num_jobs: int = 0
    num_cpus: int = 0
    num_gpus: int = 0
    memory_gb: float = 0.0
    max_num_nodes: int = 0
    max_runtime: str = ""


class RemoteWorker(msgspec.Struct):
    """A machine that a workflow may use: ``[user@]host[:port]``."""

    worker: str
    workflow_id: int = 0


class AccessGroup(msgspec.Struct):
    """People who share workflows."""

    name: str
    id: int | None = None
    description: str | None = None
    created_at: str | None = None


class Membership(msgspec.Struct):
    """One person in one group."""

    user_name: str
    group_id: int
    role: str = "member"
    id: int | None = None
    created_at: str | None = None


class SharedWorkflow(msgspec.Struct):
    """A workflow that a group may use."""

    workflow_id: int
    group_id: int
    created_at: str | None = None


JsonObject = dict[str, Any]
"""An answer that is only looked into here."""
