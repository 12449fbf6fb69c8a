"""Which jobs of a workflow nodes can be asked for together."""

from collections.abc import Collection

from attrs import frozen

from torc_framework.graph.dag import Graph
from torc_framework.models.plan import Plan


@frozen
class SchedulerGroup:
    """Jobs that ask for the same, and that all wait for other jobs or all do not.

    Attributes:
        requirements: Position of what they ask for in the plan's resource requirements; None is the default record.
        is_deferred: They wait for other jobs: nodes are of use only once they are ready.
        waves: The jobs by their level, the length of the longest chain before them. No job waits for another of its
            level, so that a trigger that watches a whole wave always fires; one that watches several might not.
    """

    requirements: int | None
    is_deferred: bool
    waves: dict[int, list[int]]


def scheduler_groups(plan: Plan, only: Collection[int] | None = None) -> list[SchedulerGroup]:
    """Return the groups of a plan's jobs, in the order of their first jobs.

    Args:
        plan: The plan.
        only: Positions of the jobs that need nodes; the others only have to be waited for. None is all.
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
