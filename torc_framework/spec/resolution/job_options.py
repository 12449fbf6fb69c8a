"""Containers of jobs and their options of executors: defaults of the workflow, and the checks of both."""

from typing import Any

from attrs import define, field

from torc_framework.distributions import distribution_of, how_to_get
from torc_framework.errors import suggestion
from torc_framework.job_options import JobOptionsError, container_refusal, structure_job_options
from torc_framework.models.executor_options import ExecutorOptions, options_problem, options_text
from torc_framework.models.plan import PlannedJob
from torc_framework.spec.language.findings import Problems, SpecFinding, SpecPath
from torc_framework.spec.language.model import JobSpec, WorkflowSpec
from torc_framework.spec.language.options import LoadOptions

KEY = "executor_options"


@define
class JobOptionsBinder:
    """Sets containers and options of planned jobs, and adds findings for those that no executor takes.

    Attributes:
        spec: The workflow, with the defaults of all jobs.
    """

    spec: WorkflowSpec
    options: LoadOptions
    problems: Problems
    _checked: set[tuple[str, str]] = field(factory=set, init=False)  # executor and text of options without problems
    _unused: set[tuple[str, str]] = field(
        factory=set, init=False
    )  # executor, and names of those whose options it lacks

    def check_defaults(self) -> None:
        """Add findings for the options that the workflow has for all jobs."""
        self._check_form(self.spec.executor_options, (KEY,), "the workflow")
        self._check_names(self.spec.executor_options or {}, (KEY,))

    def bind(self, planned: PlannedJob, job: JobSpec, origin: int) -> None:
        """Set container and options of a planned job, whose executor is set."""
        spec, at = self.spec, ("jobs", origin)
        planned.container = job.container or (spec.container if self._may_take_default(job.executor) else None)
        if job.container is not None:
            self._check_container(job, (*at, "container"))
        own, defaults = job.executor_options, spec.executor_options
        planned.executor_options = _merged(defaults, own) if defaults and own else own or defaults
        if own is not None:
            self._check_form(own, (*at, KEY), f"job {job.name!r}")
            self._check_names(own, (*at, KEY))
            self._warn_if_unused(job, own)
        for name, values in (planned.executor_options or {}).items():
            self._check_values(name, values, own or {}, at)

    def _may_take_default(self, executor: str | None) -> bool:
        """Return whether a job takes the workflow's container: not if it names an executor that runs none."""
        known = (self.options.known_executors or {}).get(executor or "")
        return known is None or known.runs_containers

    def _check_container(self, job: JobSpec, path: SpecPath) -> None:
        executors = self.options.known_executors or {}
        if job.executor is not None and job.executor in executors and not executors[job.executor].runs_containers:
            others = [name for name, known in executors.items() if known.runs_containers]
            text = container_refusal(f"job {job.name!r}", job.executor, others)
            self.problems.add(SpecFinding(text, path=path), "container")

    def _check_form(self, options: ExecutorOptions | None, path: SpecPath, of: str) -> None:
        if options is not None and (problem := options_problem(options)) is not None:
            self.problems.add(SpecFinding(f"{of}: {problem}", path=path), "form of options")

    def _check_names(self, options: ExecutorOptions, path: SpecPath) -> None:
        """Add a finding or a warning for each executor that is not known.

        An executor that is not installed may be known where the jobs run.
        """
        known = self.options.known_executors
        if known is None:
            return
        for name in options:
            if name in known or distribution_of("executor", name) is not None:
                continue
            hint = how_to_get("executor", name) or suggestion(name, sorted(known)).removeprefix("; ")
            if self.options.executors is not None:
                finding = SpecFinding(f"unknown executor {name!r}", hint=hint, path=(*path, name), at_key=True)
                self.problems.add(finding, f"executor {name}")
            else:
                self.problems.warn(
                    f"{KEY}: executor {name!r} is not installed here, its options are not checked; {hint}"
                )

    def _check_values(self, name: str, values: dict[str, Any], own: ExecutorOptions, at: SpecPath) -> None:
        """Check the values for one executor; those that were found good before are not checked again."""
        known = (self.options.known_executors or {}).get(name)
        key = (name, options_text(values)) if known is not None else None
        if known is None or key is None or key in self._checked:
            return
        try:
            structure_job_options(known.job_options, values)
        except JobOptionsError as error:
            mine = own.get(name, {})
            for problem in error.problems:
                is_mine = problem.path[0] in mine if problem.path else name in own
                path = (*(at if is_mine else ()), KEY, name, *problem.path)
                hint = problem.hint
                if problem.at_key and len(problem.path) == 1 and problem.path[0] in known.run_options:
                    hint = _run_option_hint(name, str(problem.path[0]))
                finding = SpecFinding(problem.found, problem.expected, hint, path, problem.at_key)
                self.problems.add(finding, "option")
        else:
            self._checked.add(key)

    def _warn_if_unused(self, job: JobSpec, own: ExecutorOptions) -> None:
        if job.executor is None or not own or job.executor in own:
            return
        names = ", ".join(sorted(own))
        if (job.executor, names) not in self._unused:
            self._unused.add((job.executor, names))
            self.problems.warn(
                f"{KEY} of {names} have no effect in jobs whose executor is {job.executor!r}, such as {job.name!r}"
            )


def _run_option_hint(executor: str, key: str) -> str:
    """Return how an option is given that holds for all jobs of a run."""
    option = "--" + key.replace("_", "-")
    return (
        f"it holds for all jobs of a run: give {option} to 'torc run', or set {key} under [executor.{executor}] in the "
        "configuration"
    )


def _merged(defaults: ExecutorOptions, own: ExecutorOptions) -> ExecutorOptions:
    """Return the options of a job: its own keys win, executor by executor."""
    return {name: {**defaults.get(name, {}), **own.get(name, {})} for name in {**defaults, **own}}
