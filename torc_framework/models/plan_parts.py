"""A plan in parts: its head, then its dependencies and jobs in slices, so that it never has to be in memory as a whole.

The parts of a plan are one line of JSON each (`PLAN_LINES`): the head, then the slices with dependencies, then the
slices with jobs. Dependencies come first because the row of a job holds how many jobs it waits for.
"""

from collections.abc import Iterable, Iterator, Sequence
from itertools import chain
from operator import attrgetter
from typing import Annotated, Any, Final, Self

import msgspec
from attrs import Factory, define, fields, frozen

from torc_framework.models.barriers import Barrier
from torc_framework.models.executor_options import ExecutorOptions
from torc_framework.models.exits import CleanExit
from torc_framework.models.plan import Plan, PlannedAction, PlannedJob
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

PLAN_PATH: Final = "/workflows/from_plan"
PLAN_LINES: Final = "application/x-ndjson"
"""Media type of a plan in parts."""
SLICE_JOBS: Final = 10_000
"""Jobs, or dependencies, of one slice that this program makes; it reads slices of any length."""

JOB_DEFAULTS: Final = {each.name: each.default for each in msgspec.structs.fields(PlannedJob) if not each.required}
"""Default values of the fields of planned jobs that have one."""
_GETTERS: Final = {name: attrgetter(name) for name in PlannedJob.__struct_fields__}
_Count = Annotated[int, msgspec.Meta(ge=0, le=2**31 - 1)]


@define(kw_only=True)
class PlanHead:
    """A plan without its jobs and dependencies.

    Attributes:
        job_count: Number of jobs in all slices.
        dependency_count: Number of pairs of jobs in all slices.
        barriers: As in `Plan`, and so are the others.
    """

    workflow: WorkflowRecord
    job_count: _Count
    dependency_count: _Count = 0
    barriers: list[Barrier] = Factory(list)
    files: list[FileRecord] = Factory(list)
    user_data: list[UserDataRecord] = Factory(list)
    resource_requirements: list[ResourceRequirementsRecord] = Factory(list)
    failure_handlers: list[FailureHandlerRecord] = Factory(list)
    slurm_schedulers: list[SlurmSchedulerRecord] = Factory(list)
    local_schedulers: list[LocalSchedulerRecord] = Factory(list)
    actions: list[PlannedAction] = Factory(list)


class JobColumns(msgspec.Struct, omit_defaults=True, forbid_unknown_fields=True, gc=False):
    """Consecutive jobs, with a list of values for each field of `PlannedJob`; None if all have the field's default."""

    name: list[str]
    command: list[str]
    invocation_script: list[str | None] | None = None
    resource_requirements: list[int | None] | None = None
    failure_handler: list[int | None] | None = None
    scheduler: list[int | None] | None = None
    executor: list[str | None] | None = None
    shell: list[str | None] | None = None
    container: list[str | None] | None = None
    executor_options: list[ExecutorOptions | None] | None = None
    stdio: list[StdioMode | None] | None = None
    delete_stdio_on_success: list[bool | None] | None = None
    cancel_on_blocking_job_failure: list[bool] | None = None
    supports_termination: list[bool] | None = None
    clean_exit_after_stop: list[CleanExit] | None = None
    input_files: list[list[int] | None] | None = None
    output_files: list[list[int] | None] | None = None
    input_user_data: list[list[int] | None] | None = None
    output_user_data: list[list[int] | None] | None = None

    @classmethod
    def of(cls, jobs: Sequence[PlannedJob]) -> Self:
        """Return the columns of jobs."""
        columns = {name: [*map(get, jobs)] for name, get in _GETTERS.items()}
        return cls(
            **{
                name: values
                for name, values in columns.items()
                if name not in JOB_DEFAULTS or any(value != JOB_DEFAULTS[name] for value in values)
            }
        )

    def jobs(self) -> list[PlannedJob]:
        """Return the jobs."""
        given = {name: column for name in _GETTERS if (column := getattr(self, name)) is not None}
        return [PlannedJob(**dict(zip(given, values, strict=True))) for values in zip(*given.values(), strict=True)]


class PlanSlice(msgspec.Struct, omit_defaults=True, forbid_unknown_fields=True, gc=False):
    """Some of a plan's dependencies, or some of its jobs.

    Attributes:
        dependencies: Positions of jobs: a job, then the job for which it waits, then the next pair.
        jobs: Jobs; their positions follow those of the slice before.
    """

    dependencies: list[int] = msgspec.field(default_factory=list)
    jobs: JobColumns | None = None


@frozen
class PlanParts:
    """A plan whose slices are made when they are needed, and only once."""

    head: PlanHead
    slices: Iterator[PlanSlice]


_SAME_IN_HEAD: Final = tuple(attribute.name for attribute in fields(PlanHead) if not attribute.name.endswith("_count"))


def parts_of(plan: Plan) -> PlanParts:
    """Return the parts of a plan."""
    head = head_of(plan, job_count=len(plan.jobs), dependency_count=len(plan.dependencies))
    return PlanParts(head, _slices(plan))


def head_of(plan: Plan, *, job_count: int, dependency_count: int) -> PlanHead:
    """Return the head of a plan, which shares its records; the counts may differ from the plan's lists."""
    same: dict[str, Any] = {name: getattr(plan, name) for name in _SAME_IN_HEAD}
    return PlanHead(**same, job_count=job_count, dependency_count=dependency_count)


def _slices(plan: Plan) -> Iterator[PlanSlice]:
    for start in range(0, len(plan.dependencies), SLICE_JOBS):
        pairs = plan.dependencies[start : start + SLICE_JOBS]
        yield PlanSlice(dependencies=[*chain.from_iterable(pairs)])
    for start in range(0, len(plan.jobs), SLICE_JOBS):
        yield PlanSlice(jobs=JobColumns.of(plan.jobs[start : start + SLICE_JOBS]))


def plan_lines(parts: PlanParts) -> Iterator[bytes]:
    """Yield the lines of a plan in parts."""
    encode = msgspec.json.Encoder().encode
    yield encode(parts.head) + b"\n"
    for part in parts.slices:
        yield encode(part) + b"\n"


def read_plan_lines(lines: Iterable[bytes]) -> PlanParts:
    """Return the plan of lines; each line is read when its slice is needed.

    Raises, here or while the slices are read:
        msgspec.DecodeError: a line is not JSON, or does not fit its class.
    """
    left = iter(lines)
    head = msgspec.json.decode(next(left, b""), type=PlanHead)
    return PlanParts(head, map(msgspec.json.Decoder(PlanSlice).decode, left))
