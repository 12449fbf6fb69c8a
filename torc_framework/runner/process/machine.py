"""Facts about this machine: what it offers, and which boot and process is which."""

import os
import shutil
import subprocess
from pathlib import Path

from torc_framework.executors import LaunchSite
from torc_framework.models.resources import Resources
from torc_framework.runner.process.settings import RunnerSettings

_GIB = 1024**3


def boot_id() -> str:
    """Return the name of this boot of the machine."""
    return Path("/proc/sys/kernel/random/boot_id").read_text().strip()


def machine_id() -> str:
    """Return the name of this installation, or "" where there is none."""
    try:
        return Path("/etc/machine-id").read_text().strip()
    except OSError:
        return ""


def process_start(pid: int) -> int | None:
    """Return when a process began, in clock ticks since the boot; None if there is no such process."""
    try:
        return int(Path(f"/proc/{pid}/stat").read_bytes().rpartition(b")")[2].split()[19])
    except (OSError, IndexError):
        return None


def offered(settings: RunnerSettings, premises: LaunchSite | None, gpu_names: list[str]) -> Resources:
    """Return what a runner offers: what it was told, else its launcher's premises, else what this process may use."""
    there = premises.resources if premises is not None else _here(settings)
    memory = settings.memory_gb * _GIB if settings.memory_gb is not None else there.memory_bytes
    return Resources(
        num_cpus=settings.num_cpus if settings.num_cpus is not None else there.num_cpus,
        memory_bytes=int(memory),
        num_gpus=len(gpu_names) // (1 if premises is None else there.num_nodes),
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


def gpu_names(count: int | None, premises: LaunchSite | None) -> list[str]:
    """Return the names by which jobs are given GPUs (``CUDA_VISIBLE_DEVICES``).

    Args:
        count: GPUs to offer; None is all that the premises have, or that are visible to this process.
    """
    if premises is not None:
        return list(premises.gpu_names[:count])
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
