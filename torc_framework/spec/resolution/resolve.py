"""Fifth stage: resolution of names into positions, construction of the plan, and checks of the whole."""

from array import array
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import islice
from operator import lt
from typing import Final, Literal

from attrs import frozen

from torc_framework.graph import Graph, is_acyclic
from torc_framework.models.barriers import Barrier
from torc_framework.models.plan import Plan, PlannedJob
from torc_framework.models.plan_inputs import PlanInputs
from torc_framework.models.plan_parts import SLICE_JOBS, PlanParts, PlanSlice, head_of
from torc_framework.models.records import FileRecord, UserDataRecord
from torc_framework.spec.expansion.expand import ExpandedSpec
from torc_framework.spec.expansion.job_slices import JobSlice, JobSlices, job_at, origins_of
from torc_framework.spec.language.findings import Problems, SpecFinding
from torc_framework.spec.language.model import JobSpec, ResourceRequirementsSpec, WorkflowSpec
from torc_framework.spec.language.options import LoadOptions
from torc_framework.spec.language.plain_job import ShortJob
from torc_framework.spec.language.schema import rule_schema
from torc_framework.spec.resolution import records
from torc_framework.spec.resolution.actions import ActionPlanner
from torc_framework.spec.resolution.cycles import report_cycles
from torc_framework.spec.resolution.dependencies import DependencyBuilder
from torc_framework.spec.resolution.inline_requirements import RequirementsTable
from torc_framework.spec.resolution.job_kinds import JobKinds
from torc_framework.spec.resolution.job_planner import JobPlanner, NamedRecords
from torc_framework.spec.resolution.names import NameTable, report_duplicates
from torc_framework.spec.resolution.relations import NONE, ListFinder, RelationFinder
from torc_framework.spec.resolution.scheduler_checks import (
    check_nodes,
    check_walltimes,
    warn_about_different_schedulers,
)
from torc_framework.spec.resolution.stdio_checks import warn_about_unkept_output
from torc_framework.spec.resolution.survey import JobSurvey

_INPUTS: Final[tuple[tuple[Literal[0, 2], Literal[1, 3], str], ...]] = ((0, 1, "file"), (2, 3, "user data"))
"""Positions of a job's inputs and outputs among its relations, with their kinds."""


@frozen
class ResolvedParts:
    """A plan whose jobs are made when they are needed.

    Attributes:
        parts: The plan.
        inputs: What its jobs read and write.
    """

    parts: PlanParts
    inputs: PlanInputs


def resolve(
    spec: WorkflowSpec, expanded: ExpandedSpec[JobSlices], options: LoadOptions, problems: Problems, doubtful: set[str]
) -> Plan:
    """Return the plan of a workflow.

    Args:
        spec: The workflow.
        expanded: Its jobs, files and user data after expansion.
        options: Options of the caller.
        problems: Collector of findings; the plan is valid only if none was added.
        doubtful: Kinds (keys of the file) of which names may be missing because of other errors.
    """
    resolver = _Resolver(spec, expanded, options, problems, doubtful | expanded.doubtful)
    jobs: list[PlannedJob] = []
    plan, pairs = resolver.plan_without_jobs(jobs)
    plan.jobs = jobs
    plan.dependencies = list(zip(pairs[0::2], pairs[1::2], strict=True))
    return plan


def resolve_in_slices(
    spec: WorkflowSpec, expanded: ExpandedSpec[JobSlices], options: LoadOptions, problems: Problems
) -> ResolvedParts | None:
    """Return the parts of what `resolve` returns; None if there are findings."""
    resolver = _Resolver(spec, expanded, options, problems, expanded.doubtful)
    if problems:
        return None
    plan, pairs = resolver.plan_without_jobs(None)
    if problems:
        return None
    head = head_of(plan, job_count=len(resolver.jobs.table.names), dependency_count=len(pairs) // 2)
    return ResolvedParts(PlanParts(head, resolver.plan_slices(pairs)), resolver.planner.inputs)


class _Resolver:
    """The resolution of one spec."""

    def __init__(
        self,
        spec: WorkflowSpec,
        expanded: ExpandedSpec[JobSlices],
        options: LoadOptions,
        problems: Problems,
        doubtful: set[str],
    ) -> None:
        self.spec, self.expanded, self.options, self.problems = spec, expanded, options, problems
        self.doubtful = doubtful
        self.requirements = RequirementsTable(spec.resource_requirements or [], problems)
        self.survey = JobSurvey(NameTable("job", [], "jobs" in doubtful, problems))
        for part in expanded.jobs.slices():
            self.survey.add(part)
            if not part.is_plain:
                self.requirements.add_jobs(part)
        self.data_names = [item.name or f"user_data_{n}" for n, item in enumerate(expanded.user_data.items, 1)]
        file_names = [file.name for file in expanded.files.items]
        self.jobs = self._finder("jobs", self.survey.names, lambda: origins_of(expanded.jobs))
        files = NameTable("file", file_names, "files" in doubtful, problems)
        self.files = self._finder("files", files, lambda: expanded.files.origins)
        data = NameTable("user data", self.data_names, "user_data" in doubtful, problems)
        self.data = self._finder("user_data", data, lambda: expanded.user_data.origins)
        requirement_names = self._table("resource_requirements", "resource requirements", self.requirements.of_jobs)
        handlers = self._table("failure_handlers", "failure handler")
        self.schedulers = self._table("slurm_schedulers", "scheduler")
        finder = RelationFinder({"files": self.files, "user_data": self.data}, self._paths(), problems)
        tables = {
            "resource_requirements": requirement_names,
            "failure_handler": handlers,
            "scheduler": self.schedulers,
        }
        named = NamedRecords(self.requirements, tables)
        self.planner = JobPlanner(spec, options, problems, finder, named, self.survey.given)

    def _finder(self, key: str, table: NameTable, origins: Callable[[], Iterable[int]]) -> ListFinder:
        if len(table.positions) < len(table.names):
            report_duplicates(table.kind, key, table.names, origins(), self.problems)
        return ListFinder(table)

    def _table(self, key: str, kind: str, more: Sequence[ResourceRequirementsSpec] = ()) -> NameTable:
        """Return the names of a list of the workflow, followed by those of further entries."""
        names = [item.name for item in getattr(self.spec, key) or []]
        given = [(name, position) for position, name in enumerate(names) if name is not None]
        report_duplicates(kind, key, [name for name, _ in given], [position for _, position in given], self.problems)
        all_names = [*(name or "" for name in names), *(item.name for item in more)]
        return NameTable(kind, all_names, key in self.doubtful, self.problems)

    def plan_without_jobs(self, jobs: list[PlannedJob] | None) -> tuple[Plan, "array[int]"]:
        """Return the plan without its jobs and pairs, and the pairs as `DependencyBuilder` returns them.

        Args:
            jobs: The list to which the planned jobs are added; None only checks them.
        """
        spec, problems = self.spec, self.problems
        records.check_slurm_defaults(spec, problems)
        workflow = records.workflow_record(spec, self.options)
        kinds = self._plan_jobs(jobs)
        plan = Plan(
            workflow=workflow,
            jobs=[],
            files=[FileRecord(workflow_id=0, name=item.name, path=item.path) for item in self.expanded.files.items],
            user_data=[
                UserDataRecord(workflow_id=0, name=name, is_ephemeral=item.is_ephemeral, data=item.data)
                for name, item in zip(self.data_names, self.expanded.user_data.items, strict=True)
            ],
            resource_requirements=self.requirements.records(),
            failure_handlers=records.failure_handlers(spec.failure_handlers or [], rule_schema(self.options)),
            slurm_schedulers=records.slurm_schedulers(spec, problems),
        )
        pairs, plan.barriers = self._dependencies()
        self._check_cycles(pairs, plan.barriers)
        records.check_shell(spec.shell, ("shell",), problems)
        planner = ActionPlanner(self.jobs, self.schedulers, problems, self.options.needs_scheduler)
        plan.actions = [planner.plan(action, ("actions", n)) for n, action in enumerate(spec.actions or [])]
        if not self.options.skip_checks:
            check_nodes(plan, kinds, problems)
            check_walltimes(plan, kinds, problems, to_submit=self.options.to_submit)
        warn_about_unkept_output(plan, kinds, problems)
        warn_about_different_schedulers(plan, kinds, spec.jobs_sort_method, problems)
        return plan, pairs

    def _plan_jobs(self, jobs: list[PlannedJob] | None) -> JobKinds:
        """Plan or check all jobs; return their kinds, if there is a check that needs them."""
        kinds, planner = JobKinds(), self.planner
        needs_kinds = bool(self.spec.slurm_schedulers or self.spec.failure_handlers)
        planner.check_defaults()
        if jobs is None and not needs_kinds and self.survey.is_plain and planner.are_good(self.survey.values):
            return kinds
        for part, start in self._placed_slices():
            if jobs is None and not needs_kinds:
                planner.check(part, start)
                continue
            planned = planner.plan(part, start)
            if needs_kinds:
                kinds.add(planned)
            if jobs is not None:
                jobs += planned
        return kinds

    def _placed_slices(self, *, with_dependencies: bool = True) -> Iterator[tuple[JobSlice, int]]:
        """Yield the slices of jobs, each with the position of its first job."""
        start = 0
        for part in self.expanded.jobs.slices(with_dependencies=with_dependencies):
            yield part, start
            start += len(part.jobs)

    def plan_slices(self, pairs: "array[int]") -> Iterator[PlanSlice]:
        """Yield the slices of the plan."""
        for start in range(0, len(pairs), 2 * SLICE_JOBS):
            yield PlanSlice(dependencies=pairs[start : start + 2 * SLICE_JOBS].tolist())
        for part, start in self._placed_slices(with_dependencies=False):
            yield PlanSlice(jobs=self.planner.columns(part, start))

    def _paths(self) -> list[str]:
        return [item.path for item in self.expanded.files.items]

    def _dependencies(self) -> tuple["array[int]", list[Barrier]]:
        builder = DependencyBuilder()
        if self.survey.pairs is not None:
            return self.survey.pairs, []
        if not self.survey.has_dependencies and not self.planner.relations:
            return builder.result()
        producers = [self._producers(outputs) for _, outputs, _ in _INPUTS]
        chunks: dict[tuple[int, ...], tuple[int, ...]] = {}
        written, known_jobs, all_relations = self.spec.jobs, self.jobs.table.positions, self.planner.relations
        for part, start in self._placed_slices():
            for position, job in enumerate(part.jobs, start):
                names, relations = job.depends_on, all_relations.get(position)
                if names and len(names) == 1 and relations is None and not job.depends_on_regexes:
                    on = known_jobs.get(names[0], position)
                    if on != position:  # most jobs of most workflows: exactly one dependency
                        builder.add_pair(position, on)
                        continue
                upstream: list[Sequence[int]] = []
                if names or job.depends_on_regexes:
                    origin = part.origins[position - start]
                    literal = origin < len(written) and job is written[origin]
                    upstream += self._explicit(job, position, origin, literal=literal)
                if relations is not None:
                    for (inputs, _, _), known in zip(_INPUTS, producers, strict=True):
                        upstream += _implied(relations[inputs], known, chunks)
                if upstream:
                    builder.add(position, upstream)
        return builder.result()

    def _explicit(self, job: JobSpec | ShortJob, position: int, origin: int, *, literal: bool) -> list[tuple[int, ...]]:
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
        for position, relations in self.planner.relations.items():
            for written in relations[outputs]:
                found.setdefault(written, []).append(position)
        return found

    def _check_cycles(self, pairs: "array[int]", barriers: list[Barrier]) -> None:
        names = self.jobs.table.names
        if (
            self._has_only_known_backward_pairs(pairs)
            or _only_backwards(pairs, barriers)
            or is_acyclic(len(names), pairs, barriers)
        ):
            return
        graph = Graph(len(names), list(zip(pairs[0::2], pairs[1::2], strict=True)), barriers)
        origins = [*origins_of(self.expanded.jobs)]
        report_cycles(graph, names.__getitem__, self._reason, lambda job: ("jobs", origins[job]), self.problems)

    def _has_only_known_backward_pairs(self, pairs: "array[int]") -> bool:
        """Return whether the first pass has found all pairs, and each job waits only for jobs before it."""
        return pairs is self.survey.pairs and not self.survey.has_forward_pair

    def _reason(self, job: int, on: int) -> str:
        """Return why a job waits for another."""
        spec, other = job_at(self.expanded.jobs, job), self.jobs.table.names[on]
        if other in (spec.depends_on or ()):
            return "depends_on"
        for pattern in spec.depends_on_regexes or ():
            if on in self.jobs.table.matching(pattern, ("jobs",)):
                return f"depends_on_regexes {pattern!r}"
        mine, others = self.planner.relations[job], self.planner.relations[on]
        for inputs, outputs, kind in _INPUTS:
            for shared in set(mine[inputs]).intersection(others[outputs]):
                names = self.files.table.names if kind == "file" else self.data.table.names
                return f"{kind} {names[shared]!r}, which {other} writes"
        raise AssertionError("each dependency has a reason")


def _only_backwards(pairs: "array[int]", barriers: Sequence[Barrier]) -> bool:
    """Return whether every job waits only for jobs before it, so that there is no cycle."""
    return all(map(lt, islice(pairs, 1, None, 2), islice(pairs, 0, None, 2))) and all(
        max(barrier.upstream) < min(barrier.downstream) for barrier in barriers
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
