"""What this machine offers to processes: CPUs, memory and GPUs."""

import os
import shutil
import subprocess
from pathlib import Path

from torc_framework.models.resources import Resources


def this_machine(*, count_gpus: bool = False) -> Resources:
    """Return what this process may use.

    Args:
        count_gpus: Count the GPUs too, which starts a program.
    """
    gpus = len(visible_gpus()) if count_gpus else 0
    return Resources(len(os.sched_getaffinity(0)), memory_bytes(), num_gpus=gpus)


def memory_bytes() -> int:
    """Return the machine's memory, or the limit of its control group where that is less."""
    physical = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    try:
        limit = int(Path("/sys/fs/cgroup/memory.max").read_text())
    except (OSError, ValueError):  # no limit reads "max"
        return physical
    return min(physical, limit)


def visible_gpus() -> list[str]:
    """Return the names of the GPUs that this process may use: ``CUDA_VISIBLE_DEVICES``, else all of NVIDIA."""
    visible = os.environ.get("CUDA_VISIBLE_DEVICES")
    if visible is not None:
        return [name.strip() for name in visible.split(",") if name.strip()]
    return _nvidia_gpus()


def _nvidia_gpus() -> list[str]:
    if shutil.which("nvidia-smi") is None:
        return []
    try:
        listing = subprocess.run(["nvidia-smi", "-L"], capture_output=True, text=True, timeout=30, check=True).stdout
    except (OSError, subprocess.SubprocessError):
        return []
    return [str(index) for index, line in enumerate(listing.splitlines()) if line.startswith("GPU ")]
