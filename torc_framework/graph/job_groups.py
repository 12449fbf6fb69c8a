"""Groups of jobs for which nodes can be requested together."""

from collections.abc import Collection

from attrs import frozen

from torc_framework.graph.dag import Graph
from torc_framework.models.plan import Plan


@frozen
class SchedulerGroup:
    """Jobs with the same requirements, either all with dependencies or all without.

    Attributes:
        requirements: Position of their requirements in the plan's resource requirements; None is the default record.
        is_deferred: They have dependencies, so that nodes are needed only when the jobs become ready.
        waves: The jobs by level, which is the length of the longest chain before a job. No job waits for another job of
            its level, so that a trigger on all jobs of one wave always fires; a trigger on several waves may not.
    """

    requirements: int | None
    is_deferred: bool
    waves: dict[int, list[int]]


def scheduler_groups(plan: Plan, only: Collection[int] | None = None) -> list[SchedulerGroup]:
    """Return the groups of a plan's jobs, in the order of their first jobs.

    Args:
        plan: The plan.
        only: Positions of the jobs that need nodes; the others count only as dependencies. None is all jobs.
    """
    levels = Graph.of_plan(plan).levels
    found: dict[tuple[int | None, bool], dict[int, list[int]]] = {}
    for position, job in enumerate(plan.jobs):
        if only is None or position in only:
            waves = found.setdefault((job.resource_requirements, levels[position] > 0), {})
            waves.setdefault(levels[position], []).append(position)
    return [
        SchedulerGroup(requirements, is_deferred, dict(sorted(waves.items())))
        for (requirements, is_deferred), waves in found.items()
    ]
