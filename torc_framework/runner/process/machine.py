"""What a runner offers to jobs: CPUs, memory and GPUs."""

import os

from attrs import evolve

from torc_framework.executors import LaunchSite
from torc_framework.models.resources import Resources
from torc_framework.runner.process.settings import RunnerSettings
from torc_framework.supervision.machine import visible_gpus
from torc_framework.system.machine import this_machine

_GIB = 1024**3


def offered(settings: RunnerSettings, site: LaunchSite | None, gpu_names: list[str]) -> Resources:
    """Return what a runner offers: its settings, else the launcher's site, else what this process may use."""
    there = site.resources if site is not None else evolve(this_machine(), num_nodes=settings.num_nodes)
    memory = settings.memory_gb * _GIB if settings.memory_gb is not None else there.memory_bytes
    return Resources(
        num_cpus=settings.num_cpus if settings.num_cpus is not None else there.num_cpus,
        memory_bytes=int(memory),
        num_gpus=len(gpu_names) // (1 if site is None else there.num_nodes),
        num_nodes=there.num_nodes,
    )


def gpu_names(count: int | None, site: LaunchSite | None) -> list[str]:
    """Return the names by which jobs are given GPUs (``CUDA_VISIBLE_DEVICES``).

    Args:
        count: GPUs to offer; None is all of the site, or all that are visible to this process.
    """
    if site is not None:
        return list(site.gpu_names[:count])
    if count is None:
        return visible_gpus()
    known = visible_gpus() if "CUDA_VISIBLE_DEVICES" in os.environ else []
    return known[:count] if len(known) >= count else [str(index) for index in range(count)]
