"""Checks that a plan is consistent: names, positions, shells, and the order of its jobs.

Plans from specs have passed more thorough checks already; these protect the store from other clients.
"""

from collections.abc import Iterable, Sequence
from itertools import chain, starmap
from operator import attrgetter, gt

from torc_framework.models.plan import Plan
from torc_framework.store.errors import RuleError
from torc_framework.store.job_state.dependency_cycles import nodes_in_or_behind_cycles
from torc_framework.store.records.failure_rules import check_rules
from torc_framework.store.records.requirements import (
    DEFAULT_REQUIREMENTS,
    check_executor_options,
    check_shell,
    check_sort_method,
)


def check_plan(plan: Plan) -> None:
    """Raise `RuleError` unless names are unique, all positions exist, and the dependencies have no cycle."""
    if not plan.workflow.name:
        raise RuleError("the workflow has no name")
    check_sort_method(plan.workflow.jobs_sort_method)
    check_shells(plan)
    check_options(plan)
    check_names("job", map(attrgetter("name"), plan.jobs), len(plan.jobs))
    for kind, records in (
        ("file", plan.files),
        ("user data", plan.user_data),
        ("resource requirements", plan.resource_requirements),
        ("failure handler", plan.failure_handlers),
    ):
        check_names(kind, (record.name for record in records), len(records))
    if any(record.name == DEFAULT_REQUIREMENTS for record in plan.resource_requirements):
        raise RuleError("resource requirements must not be named 'default': every workflow has its own")
    for handler in plan.failure_handlers:
        check_rules(f"failure handler {handler.name!r}: ", handler.rules)
    _check_positions(plan)
    check_order(plan)


def check_shells(plan: Plan) -> None:
    """Raise `RuleError` unless every shell is a program with its options."""
    for shell in {plan.workflow.shell, *map(attrgetter("shell"), plan.jobs)}:
        check_shell(shell)


def check_options(plan: Plan) -> None:
    """Raise `RuleError` unless the options of executors that jobs have are of the form and size that is allowed."""
    checked: set[int] = set()
    for job in plan.jobs:
        if job.executor_options is not None and id(job.executor_options) not in checked:
            check_executor_options(job.executor_options, f"job {job.name!r}: ")
            checked.add(id(job.executor_options))


def check_names(kind: str, names: Iterable[str], count: int) -> None:
    """Raise `RuleError` if a name is empty or occurs more than once."""
    seen = set(names)
    if "" in seen:
        raise RuleError(f"a {kind} has no name")
    if len(seen) != count:
        raise RuleError(f"{count - len(seen)} {kind} name(s) occur more than once")


def _check_positions(plan: Plan) -> None:
    jobs = plan.jobs
    lists = {name: list(filter(None, map(attrgetter(name), jobs))) for name in _LISTS}
    used: list[tuple[str, Iterable[int], Sequence[object]]] = [
        ("dependencies", chain.from_iterable(plan.dependencies), jobs),
        ("barriers", chain.from_iterable([*b.upstream, *b.downstream] for b in plan.barriers), jobs),
        ("actions", chain.from_iterable(action.jobs or () for action in plan.actions), jobs),
        ("actions", (a.scheduler for a in plan.actions if a.scheduler is not None), plan.slurm_schedulers),
        *((name, chain.from_iterable(lists[name]), getattr(plan, target)) for name, target in _LISTS.items()),
        *((name, {*map(attrgetter(name), jobs)} - {None}, getattr(plan, target)) for name, target in _SINGLES.items()),
    ]
    for name, positions, target in used:
        distinct = set(positions)
        if distinct and not (min(distinct) >= 0 and max(distinct) < len(target)):
            wrong = min(distinct) if min(distinct) < 0 else max(distinct)
            raise RuleError(f"{name}: position {wrong} is not among the {len(target)} there are")
    for name, several in lists.items():
        if any(len(set(positions)) != len(positions) for positions in several if len(positions) > 1):
            raise RuleError(f"{name}: a job lists one twice")


_LISTS = {
    "input_files": "files",
    "output_files": "files",
    "input_user_data": "user_data",
    "output_user_data": "user_data",
}
_SINGLES = {
    "resource_requirements": "resource_requirements",
    "failure_handler": "failure_handlers",
    "scheduler": "slurm_schedulers",
}


def check_order(plan: Plan) -> None:
    """Raise `RuleError` if dependencies are repeated or have a cycle."""
    if len(set(plan.dependencies)) != len(plan.dependencies):
        raise RuleError("dependencies: a pair occurs twice")
    for barrier in plan.barriers:
        if not barrier.upstream or not barrier.downstream:
            raise RuleError("barriers: one has no jobs on one side")
        if any(len(set(side)) != len(side) for side in (barrier.upstream, barrier.downstream)):
            raise RuleError("barriers: one lists a job twice")
    if all(starmap(gt, plan.dependencies)) and all(
        max(barrier.upstream) < min(barrier.downstream) for barrier in plan.barriers
    ):
        return  # every job waits only for jobs before it in the list
    barrier_edges = [
        edge
        for node, barrier in enumerate(plan.barriers, len(plan.jobs))
        for edge in (*((node, job) for job in barrier.upstream), *((job, node) for job in barrier.downstream))
    ]
    stuck = nodes_in_or_behind_cycles(len(plan.jobs) + len(plan.barriers), chain(plan.dependencies, barrier_edges))
    names = [plan.jobs[node].name for node in stuck if node < len(plan.jobs)]
    if names:
        raise RuleError(f"the dependencies have a cycle; among its jobs or waiting for it: {', '.join(names[:10])}")
