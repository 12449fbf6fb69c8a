"""Insertion of planned schedulers into a spec: schedulers, the scheduler of each job, and ``schedule_nodes`` actions.

A parameterized job stays one entry if all its jobs get the same scheduler.
"""

import re
from collections.abc import Sequence
from itertools import groupby
from typing import Final

from attrs import asdict, evolve, fields

from torc_framework.errors import UserError
from torc_framework.models.plan import PlannedAction, SchedulerPlan
from torc_framework.models.records import SlurmSchedulerRecord
from torc_framework.spec.expansion.expand import expand
from torc_framework.spec.language.findings import Problems
from torc_framework.spec.language.model import ActionSpec, JobSpec, SlurmSchedulerSpec, WorkflowSpec

SCHEDULING: Final = "schedule_nodes"
_PLACEHOLDER: Final = re.compile(r"\{[^{}]*\}")
_FEW: Final = 3
"""Largest number of jobs that are listed by name instead of by a pattern."""
_FIELDS: Final = tuple(each.name for each in fields(SlurmSchedulerSpec))


def has_schedulers(spec: WorkflowSpec) -> bool:
    """Return whether a spec has schedulers or ``schedule_nodes`` actions."""
    return bool(spec.slurm_schedulers) or any(action.action_type == SCHEDULING for action in spec.actions or ())


def without_schedulers(spec: WorkflowSpec) -> WorkflowSpec:
    """Return a spec without schedulers and without references to them."""
    return evolve(
        spec,
        jobs=[evolve(job, scheduler=None, slurm_scheduler=None) for job in spec.jobs],
        slurm_schedulers=None,
        actions=[action for action in spec.actions or () if action.action_type != SCHEDULING] or None,
    )


def with_schedulers(spec: WorkflowSpec, planned: SchedulerPlan) -> WorkflowSpec:
    """Return a spec with the schedulers and actions planned for it.

    Raises:
        UserError: the plan belongs to another spec.
    """
    problems = Problems()
    expanded = expand(spec, problems).jobs
    if problems or len(expanded.items) != len(planned.bound):
        raise UserError("the schedulers were planned for another workflow")
    names = [job.name for job in expanded.items]
    templates = [spec.jobs[origin].name for origin in expanded.origins]
    schedulers = [_scheduler(record) for record in planned.schedulers]
    return evolve(
        spec,
        jobs=_bound(spec.jobs, expanded.items, expanded.origins, planned),
        slurm_schedulers=[*(spec.slurm_schedulers or ()), *schedulers] or None,
        actions=[*(spec.actions or ()), *(_action(each, planned, names, templates) for each in planned.actions)]
        or None,
    )


def _scheduler(record: SlurmSchedulerRecord) -> SlurmSchedulerSpec:
    default = SlurmSchedulerRecord(workflow_id=0, account="", nodes=1, walltime="")
    values = {name: value for name, value in asdict(record).items() if name in _FIELDS}
    return SlurmSchedulerSpec(**{**values, "qos": None if record.qos == default.qos else record.qos})


def _bound(
    written: Sequence[JobSpec], items: Sequence[JobSpec], origins: Sequence[int], planned: SchedulerPlan
) -> list[JobSpec]:
    """Return the jobs with their schedulers; an entry with jobs of several schedulers becomes one entry per job."""
    jobs: list[JobSpec] = []
    for origin, group in groupby(range(len(items)), key=lambda position: origins[position]):
        positions = list(group)
        bound = {planned.bound[position] for position in positions}
        if len(bound) == 1:
            jobs.append(_with_scheduler(written[origin], planned, bound.pop()))
        else:
            jobs += [_with_scheduler(items[position], planned, planned.bound[position]) for position in positions]
    return jobs


def _with_scheduler(job: JobSpec, planned: SchedulerPlan, scheduler: int | None) -> JobSpec:
    if scheduler is None:
        return job
    return evolve(job, scheduler=planned.schedulers[scheduler].name, slurm_scheduler=None)


def _action(action: PlannedAction, planned: SchedulerPlan, names: list[str], templates: list[str]) -> ActionSpec:
    jobs, patterns = _watched(action.jobs or (), names, templates)
    scheduler = None if action.scheduler is None else planned.schedulers[action.scheduler].name
    return ActionSpec(
        trigger_type=action.trigger_type,  # type: ignore[arg-type]  # plans have the same triggers as specs
        action_type=action.action_type,
        jobs=jobs or None,
        job_name_regexes=patterns or None,
        scheduler=scheduler,
        **action.config,
    )


def _watched(jobs: Sequence[int], names: list[str], templates: list[str]) -> tuple[list[str], list[str]]:
    """Return the jobs as names and patterns: a pattern for many jobs of one entry, if it matches no other job."""
    exact: list[str] = []
    patterns: list[str] = []
    by_template: dict[str, list[int]] = {}
    for job in jobs:
        by_template.setdefault(templates[job], []).append(job)
    for template, several in by_template.items():
        pattern = _pattern(template)
        search = re.compile(pattern).search
        if len(several) > _FEW and [n for n, name in enumerate(names) if search(name)] == several:
            patterns.append(pattern)
        else:
            exact += [names[job] for job in several]
    return exact, patterns


def _pattern(template: str) -> str:
    """Return a pattern for all names that a parameterized name expands to."""
    literal = [re.escape(part).replace(r"\-", "-") for part in _PLACEHOLDER.split(template)]
    return f"^{'.+'.join(literal)}$"
