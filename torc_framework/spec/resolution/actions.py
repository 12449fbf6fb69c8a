"""Resolution and checks of actions: their jobs, schedulers and required settings."""

from collections.abc import Callable
from itertools import chain
from typing import Any, Final

from attrs import define

from torc_framework.models.plan import PlannedAction
from torc_framework.spec.language.findings import Problems, SpecFinding, SpecPath
from torc_framework.spec.language.model import JOB_TRIGGERS, WORKER_TRIGGERS, ActionSpec
from torc_framework.spec.language.schema import BUILTIN_ACTIONS
from torc_framework.spec.resolution.names import NameTable
from torc_framework.spec.resolution.relations import ListFinder

_REQUIRED: Final = {"run_commands": ("commands",), "schedule_nodes": ("scheduler", "scheduler_type")}


@define
class ActionPlanner:
    """Planner of the actions of one spec.

    Attributes:
        jobs: The jobs' names.
        schedulers: The Slurm schedulers' names.
        needs_scheduler: See `LoadOptions.needs_scheduler`.
    """

    jobs: ListFinder
    schedulers: NameTable
    problems: Problems
    needs_scheduler: Callable[[str], bool]

    def plan(self, spec: ActionSpec, path: SpecPath) -> PlannedAction:
        """Return the planned action."""
        own = BUILTIN_ACTIONS.get(spec.action_type, ())
        for name in _REQUIRED.get(spec.action_type, ()):
            if not getattr(spec, name) and not (name == "scheduler" and self._needs_none(spec)):
                self.problems.add(SpecFinding(f"{name!r} is missing; a {spec.action_type} action needs it", path=path))
        for name in set(chain.from_iterable(BUILTIN_ACTIONS.values())).difference(own):
            if getattr(spec, name) is not None:
                self.problems.warn(f"'{name}' means nothing in a {spec.action_type} action ({path[0]}[{path[1]}]).")
        persistent = spec.persistent if spec.persistent is not None else spec.trigger_type in WORKER_TRIGGERS
        return PlannedAction(
            spec.trigger_type,
            spec.action_type,
            self._config(spec),
            self._watched(spec, path),
            self._scheduler(spec, path),
            persistent,
        )

    def _config(self, spec: ActionSpec) -> dict[str, Any]:
        """Return the settings without the scheduler, which has no id yet."""
        if spec.action_type not in BUILTIN_ACTIONS:
            return dict(spec.settings)
        names = [name for name in BUILTIN_ACTIONS[spec.action_type] if name != "scheduler"]
        config = {name: value for name in names if (value := getattr(spec, name)) is not None}
        if spec.action_type == "schedule_nodes":
            config.setdefault("num_allocations", 1)
        return config

    def _watched(self, spec: ActionSpec, path: SpecPath) -> list[int] | None:
        """Return the jobs on which a job trigger depends."""
        named = bool(spec.jobs or spec.job_name_regexes)
        if spec.trigger_type not in JOB_TRIGGERS:
            if named:
                self.problems.warn(f"Jobs mean nothing to trigger {spec.trigger_type} ({path[0]}[{path[1]}]).")
            return None
        if not named:
            hint = "name jobs, or give job_name_regexes"
            self.problems.add(SpecFinding(f"trigger {spec.trigger_type} watches no job", hint=hint, path=path))
            return None
        exact = self.jobs.exact(spec.jobs or [], (*path, "jobs"), literal=True)
        matched = self.jobs.patterns(spec.job_name_regexes or [], (*path, "job_name_regexes"))
        return sorted(set(chain(exact, *matched)))

    def _needs_none(self, spec: ActionSpec) -> bool:
        """Return whether the action requests nodes of an executor that needs no scheduler for it."""
        return spec.scheduler_type is not None and not self.needs_scheduler(spec.scheduler_type)

    def _scheduler(self, spec: ActionSpec, path: SpecPath) -> int | None:
        if spec.action_type != "schedule_nodes" or spec.scheduler is None:
            return None
        return self.schedulers.position(spec.scheduler, (*path, "scheduler"))
