"""Checks of schedulers against jobs and actions: combinations that are valid but cannot be intended."""

from typing import Final

from torc_framework.models.plan import Plan
from torc_framework.models.records import SlurmSchedulerRecord
from torc_framework.models.resources import parse_duration
from torc_framework.models.time_limits import parse_time_limit
from torc_framework.models.walltime_reserve import WalltimeReserve
from torc_framework.spec.language.findings import Problems, SpecFinding
from torc_framework.spec.resolution.job_kinds import JobKinds

_PROFILE: Final = {"mem": "memory (mem)", "gres": "GPUs (gres)", "walltime": "walltime", "partition": "partition"}
"""Fields that distinguish the machines of schedulers, with their names in messages."""


def check_nodes(plan: Plan, kinds: JobKinds, problems: Problems) -> None:
    """Add findings for allocations of several nodes of which a single runner would use only one.

    A scheduler with several nodes that is scheduled without a runner per node needs a job that requests all its nodes.
    """
    if not plan.slurm_schedulers:
        return
    wide_jobs = {
        (job.scheduler, plan.resource_requirements[job.resource_requirements].num_nodes)
        for job in kinds.examples()
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
            problems.add(SpecFinding(found, hint=hint, path=("actions", position)))


def check_walltimes(plan: Plan, kinds: JobKinds, problems: Problems, *, to_submit: bool) -> None:
    """Warn of walltimes that are too short for a job of the scheduler and the runners' reserve.

    Runners on such nodes would start no job. A job without a scheduler must fit into one of the schedulers.

    Args:
        to_submit: The nodes will be requested: add findings instead.
    """
    if not plan.slurm_schedulers:
        return
    reserve = WalltimeReserve.of(plan.workflow)
    walltimes = [_seconds(each.walltime) for each in plan.slurm_schedulers]
    runtimes = [_seconds(each.runtime, iso=True) for each in plan.resource_requirements]
    reported: set[tuple[int | None, int]] = set()
    for job in kinds.examples():
        kind = job.scheduler, job.resource_requirements
        runtime_s = None if kind[1] is None else runtimes[kind[1]]
        if kind[1] is None or runtime_s is None or (kind[0], kind[1]) in reported:
            continue
        reported.add((kind[0], kind[1]))
        positions = range(len(walltimes)) if kind[0] is None else [kind[0]]
        found = [(walltimes[each], each) for each in positions]
        if not found or any(time is None or not reserve.never_starts(time, runtime_s) for time, _ in found):
            continue
        walltime_s, position = max((time or 0, each) for time, each in found)
        name = plan.slurm_schedulers[position].name
        which = f"scheduler {name!r}" if len(found) == 1 else f"the longest, that of scheduler {name!r},"
        text = reserve.never_starts_text(which, walltime_s, job.name, runtime_s)
        path = ("slurm_schedulers", position, "walltime")
        if to_submit:
            problems.add(SpecFinding(text, hint="--skip-checks skips this check", path=path))
        else:
            problems.warn(str(SpecFinding(text, path=path)))


def _seconds(text: str, *, iso: bool = False) -> int | None:
    """Return the seconds of a time; None if it is unlimited, or invalid and already reported."""
    try:
        return parse_duration(text) if iso else parse_time_limit(text)
    except ValueError:
        return None


def warn_about_different_schedulers(plan: Plan, kinds: JobKinds, sort_method: str | None, problems: Problems) -> None:
    """Warn if jobs may run on any of several different schedulers and the spec sets no order of jobs."""
    schedulers = plan.slurm_schedulers
    differences = [label for name, label in _PROFILE.items() if _differ(schedulers, name)]
    if sort_method is not None or not differences:
        return
    free = kinds.count(lambda job: job.scheduler is None)
    if not free:
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
