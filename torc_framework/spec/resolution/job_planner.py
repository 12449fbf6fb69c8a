"""Planned jobs, from the jobs of a spec: names become positions, references become paths."""

from collections.abc import Callable, Mapping
from operator import attrgetter
from typing import Any, Final

import msgspec
from attrs import define, field

from torc_framework.distributions import how_to_get
from torc_framework.errors import suggestion
from torc_framework.models.plan import PlannedJob
from torc_framework.models.plan_inputs import PlanInputs
from torc_framework.models.plan_parts import JobColumns
from torc_framework.spec.expansion.job_slices import JobSlice
from torc_framework.spec.language.findings import Problems, SpecFinding
from torc_framework.spec.language.model import JobSpec, WorkflowSpec
from torc_framework.spec.language.options import LoadOptions
from torc_framework.spec.language.plain_job import PlainJob, ShortJob
from torc_framework.spec.resolution import records
from torc_framework.spec.resolution.inline_requirements import RequirementsTable
from torc_framework.spec.resolution.job_options import JobOptionsBinder
from torc_framework.spec.resolution.names import NameTable
from torc_framework.spec.resolution.relations import RelationFinder, RelationLists
from torc_framework.spec.resolution.survey import CHECKED_FIELDS
from torc_framework.supervision.shells import shell_words

_bound: Final = attrgetter(
    "resource_requirements", "failure_handler", "scheduler", "slurm_scheduler", "executor", "shell", "stdio"
)
"""Returns what a job refers to, besides jobs, files and user data."""
_PLAIN_FIELDS: Final = {name: attrgetter(name) for name in PlainJob.__struct_fields__ if name != "depends_on"}
_REQUIRED: Final = ("name", "command")
"""The fields of a planned job that have no default."""


@define
class NamedRecords:
    """The names of records that jobs refer to.

    Attributes:
        requirements: The resource requirements, with those that jobs contain.
        tables: The names by field of a planned job: ``resource_requirements``, ``failure_handler``, ``scheduler``.
    """

    requirements: RequirementsTable
    tables: Mapping[str, NameTable]


@define
class JobPlanner:
    """Planner of the jobs of one spec.

    Attributes:
        given: The optional fields that plain jobs give.
        relations: The files and user data of each job that has some, by its position.
        inputs: What the jobs read and write.
    """

    spec: WorkflowSpec
    options: LoadOptions
    problems: Problems
    finder: RelationFinder
    named: NamedRecords
    given: frozenset[str]
    relations: dict[int, RelationLists] = field(factory=dict, init=False)
    inputs: PlanInputs = field(factory=PlanInputs, init=False)
    _binder: JobOptionsBinder = field(init=False)
    _good: dict[str, dict[Any, Any]] = field(factory=dict, init=False)  # values of plain jobs that are in order

    def __attrs_post_init__(self) -> None:
        self._binder = JobOptionsBinder(self.spec, self.options, self.problems)

    def check_defaults(self) -> None:
        """Add findings for the options that the workflow has for all jobs."""
        self._binder.check_defaults()

    def plan(self, part: JobSlice, start: int) -> list[PlannedJob]:
        """Return the planned jobs of a slice.

        Args:
            part: The slice.
            start: Position of its first job among all jobs.
        """
        columns = self._columns(part) if part.is_plain else None
        if columns is not None:
            return columns.jobs()
        return [
            self._planned(_as_spec(job), origin, position)
            for position, (job, origin) in enumerate(zip(part.jobs, part.origins, strict=True), start)
        ]

    def columns(self, part: JobSlice, start: int) -> JobColumns:
        """Return the planned jobs of a slice as columns; the arguments are those of `plan`."""
        columns = self._columns(part) if part.is_plain else None
        return JobColumns.of(self.plan(part, start)) if columns is None else columns

    def check(self, part: JobSlice, start: int) -> None:
        """Add the findings of the jobs of a slice, their relations and what they read and write."""
        if not part.is_plain or self._columns(part) is None:
            self.plan(part, start)

    def are_good(self, values: Mapping[str, set[Any]]) -> bool:
        """Return whether values of plain jobs, by field, have no findings."""
        if self.spec.container or self.spec.executor_options:
            return False
        return all(self._good_values(name, values[name]) is not None for name in CHECKED_FIELDS)

    def _columns(self, part: JobSlice) -> JobColumns | None:
        """Return the planned jobs of plain jobs; None if one of the jobs is not in order."""
        if self.spec.container or self.spec.executor_options:
            return None
        columns: dict[str, Any] = {}
        for name, get in _PLAIN_FIELDS.items():
            if name not in _REQUIRED and not (part.have_options and name in self.given):
                continue
            values = [*map(get, part.jobs)]
            if name in CHECKED_FIELDS:
                good = self._good_values(name, set(values))
                if good is None:
                    return None
                values = [*map(good.__getitem__, values)]
            columns[name] = values
        return JobColumns(**columns)

    def _good_values(self, name: str, values: set[Any]) -> dict[Any, Any] | None:
        """Return what the values of a field of plain jobs become in planned jobs; None if one is wrong."""
        good = self._good.setdefault(name, {None: None})
        for value in values.difference(good):
            if name in self.named.tables:
                good[value] = self.named.tables[name].positions.get(value)
            elif _CHECKS[name](self.options, value):
                good[value] = value
            if good.get(value) is None:
                good.pop(value, None)
                return None
        return good

    def _planned(self, job: JobSpec, origin: int, position: int) -> PlannedJob:
        written = self.spec.jobs
        found = self.finder.of(job, ("jobs", origin), literal=origin < len(written) and job is written[origin])
        planned = PlannedJob(
            job.name,
            job.command if found is None else found.command,
            cancel_on_blocking_job_failure=job.cancel_on_blocking_job_failure,
            supports_termination=job.supports_termination,
            clean_exit_after_stop=job.clean_exit_after_stop,
        )
        if found is not None:
            planned.invocation_script = found.invocation_script
            lists = [list(positions) or None for positions in found.lists]
            planned.input_files, planned.output_files, planned.input_user_data, planned.output_user_data = lists
            if any(lists):
                self.relations[position] = found.lists
        if any(_bound(job)):
            self._bind(planned, job, origin)
        planned.delete_stdio_on_success = job.delete_stdio_on_success
        if self.spec.container or self.spec.executor_options or job.container or job.executor_options:
            self._binder.bind(planned, job, origin)
        if found is not None:
            self.inputs.add(planned)
        return planned

    def _bind(self, planned: PlannedJob, job: JobSpec, origin: int) -> None:
        """Set the positions of a job's requirements, handler and scheduler."""
        of, at, tables = job.name, ("jobs", origin), self.named.tables
        if named := job.resource_requirements:
            name = named if isinstance(named, str) else self.named.requirements.name_of(named)
            path = (*at, "resource_requirements")
            planned.resource_requirements = tables["resource_requirements"].position(name, path, of)
        if job.failure_handler:
            path = (*at, "failure_handler")
            planned.failure_handler = tables["failure_handler"].position(job.failure_handler, path, of)
        if scheduler := job.scheduler or job.slurm_scheduler:
            path = (*at, "scheduler" if job.scheduler else "slurm_scheduler")
            planned.scheduler = tables["scheduler"].position(scheduler, path, of)
        if job.scheduler and job.slurm_scheduler and job.scheduler != job.slurm_scheduler:
            text = f"{job.slurm_scheduler!r}, while scheduler is {job.scheduler!r}"
            self.problems.add(SpecFinding(text, hint="keep one of them", path=(*at, "slurm_scheduler")), "two")
        if job.executor and not _is_known_executor(self.options, job.executor):
            text = f"unknown executor {job.executor!r} in job {of!r}"
            hint = how_to_get("executor", job.executor)
            hint = hint or suggestion(job.executor, sorted(self.options.executors or ())).removeprefix("; ")
            self.problems.add(SpecFinding(text, hint=hint, path=(*at, "executor")), "unknown")
        planned.executor, planned.shell, planned.stdio = job.executor, job.shell, job.stdio
        records.check_shell(job.shell, (*at, "shell"), self.problems)


def _as_spec(job: JobSpec | ShortJob) -> JobSpec:
    return job if isinstance(job, JobSpec) else JobSpec(**msgspec.structs.asdict(job))


def _is_known_executor(options: LoadOptions, executor: str) -> bool:
    return options.executors is None or executor in options.executors


def _is_shell(_: LoadOptions, shell: str) -> bool:
    try:
        shell_words(shell)
    except ValueError:
        return False
    return True


_CHECKS: Final[Mapping[str, Callable[[LoadOptions, str], bool]]] = {
    "executor": _is_known_executor,
    "shell": _is_shell,
}
"""For fields of plain jobs that may be wrong: whether a value is good."""
