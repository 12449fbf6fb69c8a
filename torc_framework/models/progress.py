"""The server's responses about the progress of workflows: counts by status, runners, recent completions."""

import msgspec

from torc_framework.models.records import WorkflowRecord
from torc_framework.models.workflow_states import workflow_state


class WorkflowOverview(msgspec.Struct):
    """A workflow with the numbers that tell its state.

    Attributes:
        counts: Jobs by status label; statuses without jobs are left out.
        interrupted: How many of the terminated jobs were interrupted: the next runner resumes them.
        active_runners: Runners that have not reported their end.
        silent_runners: How many of those have not been heard of for `models.runner_states.SILENT_AFTER_S`.
        queued_allocations: Allocations that were requested and have not started.
        updated_at: Time of the newest event, milliseconds since the epoch; None without events.
    """

    workflow: WorkflowRecord
    run_id: int
    is_canceled: bool
    is_archived: bool
    counts: dict[str, int]
    interrupted: int = 0
    active_runners: int = 0
    silent_runners: int = 0
    queued_allocations: int = 0
    updated_at: int | None = None

    @property
    def id(self) -> int:
        """The workflow's id."""
        return self.workflow.id or 0

    @property
    def total(self) -> int:
        """The number of all jobs."""
        return sum(self.counts.values())

    @property
    def is_silent(self) -> bool:
        """Whether it has runners, and all of them are silent."""
        return 0 < self.active_runners <= self.silent_runners

    @property
    def state(self) -> str:
        """The state of the workflow in one word."""
        return workflow_state(
            self.counts, interrupted=self.interrupted, is_canceled=self.is_canceled, is_silent=self.is_silent
        )


class RunnerLoad(msgspec.Struct):
    """What the jobs that run at a runner have requested: CPUs and memory on all their nodes.

    Attributes:
        jobs: Jobs whose attempts have started.
        claimed: Jobs that the runner holds besides, whose attempts have not started.
    """

    compute_node_id: int
    jobs: int
    num_cpus: int
    memory_bytes: int
    claimed: int = 0


class WorkflowProgress(msgspec.Struct):
    """The progress of one workflow.

    Attributes:
        ready: Ready jobs by id of their resource requirements.
        failures: Failed jobs, and jobs that were terminated by their own limit, by exit class; the class of a result
            without one is ``unknown``.
        loads: Runners that hold jobs.
        recent: Ends of the newest results of jobs in this run, newest first, UTC, ISO 8601.
        started_at: Start of the first attempt of the run that has ended, UTC, ISO 8601; None if none has.
    """

    overview: WorkflowOverview
    ready: dict[int, int] = msgspec.field(default_factory=dict)
    failures: dict[str, int] = msgspec.field(default_factory=dict)
    loads: list[RunnerLoad] = msgspec.field(default_factory=list)
    recent: list[str] = msgspec.field(default_factory=list)
    started_at: str | None = None


class JobEnding(msgspec.Struct):
    """How a job ended: the values of its present result that lists show."""

    job_id: int
    status: str
    return_code: int
    exec_time_minutes: float
    exit_code: int | None = None
    signal: int | None = None
    exit_class: str | None = None
    peak_memory_bytes: int | None = None


class NamesOfJobs(msgspec.Struct):
    """The names of jobs whose ids are in a range, in the order of the ids."""

    ids: list[int]
    names: list[str]


class LikeNamedJobs(msgspec.Struct):
    """Jobs whose names differ in their digits only.

    Attributes:
        first_name: First of their names in the order of texts.
        last_name: Last of their names.
        count: Number of jobs.
        counts: The same by status label.
        waits_for: Names of unfinished jobs that one of those waits for which wait, one of each such group at most.
    """

    first_name: str
    last_name: str
    count: int
    counts: dict[str, int]
    waits_for: list[str] = msgspec.field(default_factory=list)


class JobGroups(msgspec.Struct):
    """The jobs of a workflow in groups by name, in the order of their first jobs.

    Attributes:
        group_count: Number of all groups; ``groups`` has the first of them only.
    """

    groups: list[LikeNamedJobs]
    group_count: int


class RunTotals(msgspec.Struct):
    """Sums over the present results of a workflow's jobs that were made in one run.

    Attributes:
        results: Their number.
        exec_time_s: Sum of their run times.
        started_s: When the first of these attempts began, seconds since the epoch; None if no time is known.
        ended_s: When the last of them ended, likewise.
    """

    run_id: int
    results: int = 0
    exec_time_s: float = 0.0
    started_s: float | None = None
    ended_s: float | None = None
