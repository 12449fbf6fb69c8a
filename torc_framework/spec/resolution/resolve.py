"""Fifth stage: resolution of names into positions, construction of the plan, and checks of the whole."""

from collections.abc import Iterator, Mapping, Sequence
from operator import attrgetter
from typing import Final, Literal

from torc_framework.distributions import how_to_get
from torc_framework.errors import suggestion
from torc_framework.graph import Graph
from torc_framework.models.plan import Barrier, Plan, PlannedJob
from torc_framework.models.records import FileRecord, UserDataRecord
from torc_framework.spec.expansion.expand import ExpandedSpec
from torc_framework.spec.language.findings import Problems, SpecFinding
from torc_framework.spec.language.model import JobSpec, ResourceRequirementsSpec, WorkflowSpec
from torc_framework.spec.language.options import LoadOptions
from torc_framework.spec.language.schema import rule_schema
from torc_framework.spec.resolution import records
from torc_framework.spec.resolution.actions import ActionPlanner
from torc_framework.spec.resolution.cycles import report_cycles
from torc_framework.spec.resolution.dependencies import DependencyBuilder
from torc_framework.spec.resolution.inline_requirements import RequirementsTable
from torc_framework.spec.resolution.job_options import JobOptionsBinder
from torc_framework.spec.resolution.names import NameTable, report_duplicates
from torc_framework.spec.resolution.relations import NONE, JobRelations, ListFinder, RelationFinder
from torc_framework.spec.resolution.scheduler_checks import (
    check_nodes,
    check_walltimes,
    warn_about_different_schedulers,
)
from torc_framework.spec.resolution.stdio_checks import warn_about_unkept_output

_INPUTS: Final[tuple[tuple[Literal[0, 2], Literal[1, 3], str], ...]] = ((0, 1, "file"), (2, 3, "user data"))
"""Positions of a job's inputs and outputs among its relations, with their kinds."""
_bound: Final = attrgetter(
    "resource_requirements", "failure_handler", "scheduler", "slurm_scheduler", "executor", "shell", "stdio"
)
"""Returns what a job refers to, besides jobs, files and user data."""


def resolve(
    spec: WorkflowSpec, expanded: ExpandedSpec, options: LoadOptions, problems: Problems, doubtful: set[str]
) -> Plan:
    """Return the plan of a workflow.

    Args:
        spec: The workflow.
        expanded: Its jobs, files and user data after expansion.
        options: Options of the caller.
        problems: Collector of findings; the plan is valid only if none was added.
        doubtful: Kinds (keys of the file) of which names may be missing because of other errors.
    """
    return _Resolver(spec, expanded, options, problems, doubtful | expanded.doubtful).plan()


class _Resolver:
    """The resolution of one spec."""

    def __init__(
        self, spec: WorkflowSpec, expanded: ExpandedSpec, options: LoadOptions, problems: Problems, doubtful: set[str]
    ) -> None:
        self.spec, self.expanded, self.options, self.problems = spec, expanded, options, problems
        self.doubtful = doubtful
        self.all_jobs = expanded.jobs.items
        self.data_names = [item.name or f"user_data_{n}" for n, item in enumerate(expanded.user_data.items, 1)]
        file_names = [file.name for file in expanded.files.items]
        self.jobs = self._finder("jobs", "job", [job.name for job in self.all_jobs], expanded.jobs.origins)
        self.files = self._finder("files", "file", file_names, expanded.files.origins)
        self.data = self._finder("user_data", "user data", self.data_names, expanded.user_data.origins)
        self.requirements = RequirementsTable(spec.resource_requirements or [], problems)
        self.requirements.add_jobs(self.all_jobs, expanded.jobs.origins)
        self.requirement_names = self._table(
            "resource_requirements", "resource requirements", self.requirements.of_jobs
        )
        self.handlers = self._table("failure_handlers", "failure handler")
        self.schedulers = self._table("slurm_schedulers", "scheduler")
        self.relations: list[JobRelations | None] = []

    def _finder(self, key: str, kind: str, names: list[str], origins: Sequence[int]) -> ListFinder:
        report_duplicates(kind, key, names, origins, self.problems)
        return ListFinder(NameTable(kind, names, key in self.doubtful, self.problems))

    def _table(self, key: str, kind: str, more: Sequence[ResourceRequirementsSpec] = ()) -> NameTable:
        """Return the names of a list of the workflow, followed by those of further entries."""
        names = [item.name for item in getattr(self.spec, key) or []]
        given = [(name, position) for position, name in enumerate(names) if name is not None]
        report_duplicates(kind, key, [name for name, _ in given], [position for _, position in given], self.problems)
        all_names = [*(name or "" for name in names), *(item.name for item in more)]
        return NameTable(kind, all_names, key in self.doubtful, self.problems)

    def plan(self) -> Plan:
        """Return the plan."""
        spec, problems = self.spec, self.problems
        records.check_slurm_defaults(spec, problems)
        plan = Plan(
            workflow=records.workflow_record(spec, self.options),
            jobs=list(self._planned_jobs()),
            files=[FileRecord(workflow_id=0, name=item.name, path=item.path) for item in self.expanded.files.items],
            user_data=[
                UserDataRecord(workflow_id=0, name=name, is_ephemeral=item.is_ephemeral, data=item.data)
                for name, item in zip(self.data_names, self.expanded.user_data.items, strict=True)
            ],
            resource_requirements=self.requirements.records(),
            failure_handlers=records.failure_handlers(spec.failure_handlers or [], rule_schema(self.options)),
            slurm_schedulers=records.slurm_schedulers(spec, problems),
        )
        plan.dependencies, plan.barriers = self._dependencies()
        self._check_cycles(plan)
        records.check_shell(spec.shell, ("shell",), problems)
        planner = ActionPlanner(self.jobs, self.schedulers, problems, self.options.needs_scheduler)
        plan.actions = [planner.plan(action, ("actions", n)) for n, action in enumerate(spec.actions or [])]
        if not self.options.skip_checks:
            check_nodes(plan, problems)
            check_walltimes(plan, problems)
        warn_about_unkept_output(plan, problems)
        warn_about_different_schedulers(plan, spec.jobs_sort_method, problems)
        return plan

    def _planned_jobs(self) -> Iterator[PlannedJob]:
        finder = RelationFinder({"files": self.files, "user_data": self.data}, self._paths(), self.problems)
        written = self.spec.jobs
        binder = JobOptionsBinder(self.spec, self.options, self.problems)
        binder.check_defaults()
        has_options = bool(self.spec.container or self.spec.executor_options)
        for job, origin in zip(self.all_jobs, self.expanded.jobs.origins, strict=True):
            found = finder.of(job, ("jobs", origin), literal=job is written[origin])
            self.relations.append(found)
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
            if any(_bound(job)):
                self._bind(planned, job, origin)
            planned.delete_stdio_on_success = job.delete_stdio_on_success
            if has_options or job.container or job.executor_options:
                binder.bind(planned, job, origin)
            yield planned

    def _paths(self) -> list[str]:
        return [item.path for item in self.expanded.files.items]

    def _bind(self, planned: PlannedJob, job: JobSpec, origin: int) -> None:
        """Set the positions of a job's requirements, handler and scheduler."""
        of, at = job.name, ("jobs", origin)
        if named := job.resource_requirements:
            name = named if isinstance(named, str) else self.requirements.name_of(named)
            path = (*at, "resource_requirements")
            planned.resource_requirements = self.requirement_names.position(name, path, of)
        if job.failure_handler:
            planned.failure_handler = self.handlers.position(job.failure_handler, (*at, "failure_handler"), of)
        if scheduler := job.scheduler or job.slurm_scheduler:
            path = (*at, "scheduler" if job.scheduler else "slurm_scheduler")
            planned.scheduler = self.schedulers.position(scheduler, path, of)
        if job.scheduler and job.slurm_scheduler and job.scheduler != job.slurm_scheduler:
            text = f"{job.slurm_scheduler!r}, while scheduler is {job.scheduler!r}"
            self.problems.add(SpecFinding(text, hint="keep one of them", path=(*at, "slurm_scheduler")), "two")
        known = self.options.executors
        if job.executor and known is not None and job.executor not in known:
            text = f"unknown executor {job.executor!r} in job {of!r}"
            hint = how_to_get("executor", job.executor)
            hint = hint or suggestion(job.executor, sorted(known)).removeprefix("; ")
            self.problems.add(SpecFinding(text, hint=hint, path=(*at, "executor")), "unknown")
        planned.executor, planned.shell, planned.stdio = job.executor, job.shell, job.stdio
        records.check_shell(job.shell, (*at, "shell"), self.problems)

    def _dependencies(self) -> tuple[list[tuple[int, int]], list[Barrier]]:
        builder = DependencyBuilder()
        producers = [self._producers(outputs) for _, outputs, _ in _INPUTS]
        chunks: dict[tuple[int, ...], tuple[int, ...]] = {}
        written, known_jobs = self.spec.jobs, self.jobs.table.positions
        for position, (job, origin) in enumerate(zip(self.all_jobs, self.expanded.jobs.origins, strict=True)):
            names = job.depends_on
            if names and len(names) == 1 and self.relations[position] is None and not job.depends_on_regexes:
                on = known_jobs.get(names[0], position)
                if on != position:  # most jobs of most workflows: exactly one dependency
                    builder.add_pair(position, on)
                    continue
            upstream: list[Sequence[int]] = []
            if job.depends_on or job.depends_on_regexes:
                upstream += self._explicit(job, position, origin, literal=job is written[origin])
            relations = self.relations[position]
            if relations is not None:
                for (inputs, _, _), known in zip(_INPUTS, producers, strict=True):
                    upstream += _implied(relations.lists[inputs], known, chunks)
            if upstream:
                builder.add(position, upstream)
        return builder.result()

    def _explicit(self, job: JobSpec, position: int, origin: int, *, literal: bool) -> list[tuple[int, ...]]:
        """Return a job's explicit dependencies: one sequence for its list, and one for each pattern."""
        path = ("jobs", origin, "depends_on")
        found = [self.jobs.exact(job.depends_on, path, job.name, literal=literal)] if job.depends_on else []
        if found and position in found[0]:
            text = f"job {job.name!r} waits for itself"
            self.problems.add(SpecFinding(text, hint="take it out of its own list", path=path), "own")
        if job.depends_on_regexes:
            found += self.jobs.patterns(job.depends_on_regexes, ("jobs", origin, "depends_on_regexes"), job.name)
        return found

    def _producers(self, outputs: int) -> dict[int, list[int]]:
        """Return the jobs that write each file (or user data), by its position."""
        found: dict[int, list[int]] = {}
        for position, relations in enumerate(self.relations):
            if relations is not None:
                for written in relations.lists[outputs]:
                    found.setdefault(written, []).append(position)
        return found

    def _check_cycles(self, plan: Plan) -> None:
        if _only_backwards(plan):
            return
        graph = Graph.of_plan(plan)
        if not graph.is_acyclic:
            origins = self.expanded.jobs.origins
            names = [job.name for job in plan.jobs]
            report_cycles(graph, names.__getitem__, self._reason, lambda job: ("jobs", origins[job]), self.problems)

    def _reason(self, job: int, on: int) -> str:
        """Return why a job waits for another."""
        spec, other = self.all_jobs[job], self.all_jobs[on].name
        if other in (spec.depends_on or ()):
            return "depends_on"
        for pattern in spec.depends_on_regexes or ():
            if on in self.jobs.table.matching(pattern, ("jobs",)):
                return f"depends_on_regexes {pattern!r}"
        mine, others = self.relations[job], self.relations[on]
        assert mine is not None
        assert others is not None
        for inputs, outputs, kind in _INPUTS:
            for shared in set(mine.lists[inputs]).intersection(others.lists[outputs]):
                names = self.files.table.names if kind == "file" else self.data.table.names
                return f"{kind} {names[shared]!r}, which {other} writes"
        raise AssertionError("each dependency has a reason")


def _only_backwards(plan: Plan) -> bool:
    """Return whether every job waits only for jobs before it, so that there is no cycle."""
    return all(on < job for job, on in plan.dependencies) and all(
        max(barrier.upstream) < min(barrier.downstream) for barrier in plan.barriers
    )


def _implied(
    inputs: Sequence[int], producers: Mapping[int, Sequence[int]], chunks: dict[tuple[int, ...], tuple[int, ...]]
) -> list[Sequence[int]]:
    """Return the dependencies of a job by its inputs.

    The writers of an input with several writers are a sequence of their own, which its readers share. The single
    writers of the other inputs are one sequence, which all jobs with the same inputs share.
    """
    if not inputs or not producers:
        return []
    if len(inputs) == 1:
        return [producers.get(inputs[0], NONE)]
    writers = [producers.get(read, NONE) for read in inputs]
    shared = [known for known in writers if len(known) > 1]
    key = tuple(inputs)
    if key not in chunks:
        chunks[key] = tuple(dict.fromkeys(known[0] for known in writers if len(known) == 1))
    return [*shared, chunks[key]]
