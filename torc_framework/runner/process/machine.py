"""What this machine offers to jobs: CPUs, memory and GPUs."""

import os
import shutil
import subprocess
from pathlib import Path

from torc_framework.executors import LaunchSite
from torc_framework.models.resources import Resources
from torc_framework.runner.process.settings import RunnerSettings

_GIB = 1024**3


def offered(settings: RunnerSettings, site: LaunchSite | None, gpu_names: list[str]) -> Resources:
    """Return what a runner offers: its settings, else the launcher's site, else what this process may use."""
    there = site.resources if site is not None else _here(settings)
    memory = settings.memory_gb * _GIB if settings.memory_gb is not None else there.memory_bytes
    return Resources(
        num_cpus=settings.num_cpus if settings.num_cpus is not None else there.num_cpus,
        memory_bytes=int(memory),
        num_gpus=len(gpu_names) // (1 if site is None else there.num_nodes),
        num_nodes=there.num_nodes,
    )


def _here(settings: RunnerSettings) -> Resources:
    return Resources(len(os.sched_getaffinity(0)), _memory_bytes(), num_nodes=settings.num_nodes)


def _memory_bytes() -> int:
    """Return the machine's memory, or the limit of its control group where that is less."""
    physical = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    try:
        limit = int(Path("/sys/fs/cgroup/memory.max").read_text())
    except (OSError, ValueError):  # no limit reads "max"
        return physical
    return min(physical, limit)


def gpu_names(count: int | None, site: LaunchSite | None) -> list[str]:
    """Return the names by which jobs are given GPUs (``CUDA_VISIBLE_DEVICES``).

    Args:
        count: GPUs to offer; None is all of the site, or all that are visible to this process.
    """
    if site is not None:
        return list(site.gpu_names[:count])
    visible = os.environ.get("CUDA_VISIBLE_DEVICES")
    known = [name.strip() for name in visible.split(",") if name.strip()] if visible is not None else None
    if known is None:
        known = _nvidia_gpus() if count is None else []
    if count is None:
        return known
    return known[:count] if len(known) >= count else [str(index) for index in range(count)]


def _nvidia_gpus() -> list[str]:
    if shutil.which("nvidia-smi") is None:
        return []
    try:
        listing = subprocess.run(["nvidia-smi", "-L"], capture_output=True, text=True, timeout=30, check=True).stdout
    except (OSError, subprocess.SubprocessError):
        return []
    return [str(index) for index, line in enumerate(listing.splitlines()) if line.startswith("GPU ")]
