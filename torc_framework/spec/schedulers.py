"""Do schedulers, jobs and actions go together? What is legal and yet surely not meant."""

from typing import Final

from torc_framework.models.plan import Plan
from torc_framework.models.records import SlurmSchedulerRecord
from torc_framework.spec.errors import Finding, Problems

_PROFILE: Final = {"mem": "memory (mem)", "gres": "GPUs (gres)", "walltime": "walltime", "partition": "partition"}
"""Fields in which schedulers' machines differ, as messages call them."""


def check_nodes(plan: Plan, problems: Problems) -> None:
    """Refuse allocations of several nodes of which one runner would use but one.

    A scheduler of more than one node that is scheduled without a runner per node needs a job that
    asks for all its nodes at once.
    """
    wide_jobs = {
        (job.scheduler, plan.resource_requirements[job.resource_requirements].num_nodes)
        for job in plan.jobs
        if job.scheduler is not None and job.resource_requirements is not None
    }
    for position, action in enumerate(plan.actions):
        if action.scheduler is None or action.config.get("start_one_worker_per_node"):
            continue
        scheduler = plan.slurm_schedulers[action.scheduler]
        if scheduler.nodes > 1 and (action.scheduler, scheduler.nodes) not in wide_jobs:
            found = f"scheduler {scheduler.name!r} allocates {scheduler.nodes} nodes, but no job that names it uses all"
            hint = (
                f"set start_one_worker_per_node, or num_nodes {scheduler.nodes} in the requirements of a job "
                "of this scheduler, or pass --skip-checks"
            )
            problems.add(Finding(found, hint=hint, path=("actions", position)))


def warn_of_mixture(plan: Plan, sort_method: str | None, problems: Problems) -> None:
    """Warn when jobs may land on any of several unlike schedulers and nobody chose their order."""
    schedulers = plan.slurm_schedulers
    free = sum(job.scheduler is None for job in plan.jobs)
    differences = [label for name, label in _PROFILE.items() if _differ(schedulers, name)]
    if sort_method is not None or not free or not differences:
        return
    problems.warn(
        f"Workflow has {len(schedulers)} schedulers with different {', '.join(differences)} but {free} job(s) "
        "have no explicit scheduler assignment and jobs_sort_method is not set. The default sort method "
        "'gpus_runtime_memory' will be used (jobs sorted by GPUs, then runtime, then memory). If this doesn't "
        "match your workload, consider setting jobs_sort_method explicitly to 'gpus_memory_runtime' (prioritize "
        "memory over runtime) or 'none' (no sorting)."
    )


def _differ(schedulers: list[SlurmSchedulerRecord], name: str) -> bool:
    return len({getattr(scheduler, name) for scheduler in schedulers}) > 1
