"""What this machine offers to the processes of this user: CPUs, memory and GPUs.

CPUs and memory are limited by the control groups of this process, for example those of a container.
"""

from __future__ import annotations

import math
import os
import shutil
import subprocess
from pathlib import Path
from typing import TYPE_CHECKING, Final

from torc_framework.supervision.cgroup_location import PROC, own_cgroup

if TYPE_CHECKING:
    from collections.abc import Iterator

GPU_LIST_TIMEOUT_S: Final = 30.0
_MEMORY_LIMITS: Final = {1: "memory.limit_in_bytes", 2: "memory.max"}


def usable_cpus(proc: Path = PROC) -> int:
    """Return how many CPUs this process may use: by its affinity, and by CPU time quotas, rounded up."""
    quotas = [math.ceil(quota) for folder, version in _groups("cpu", proc) if (quota := _cpu_quota(folder, version))]
    return min([len(os.sched_getaffinity(0)), *quotas])


def _cpu_quota(folder: Path, version: int) -> float | None:
    """Return how many CPUs' time a control group may use; None without a limit."""
    try:
        if version == 2:
            quota, period = map(float, (folder / "cpu.max").read_text().split())  # no limit reads "max"
        else:
            quota, period = (float((folder / f"cpu.cfs_{name}_us").read_text()) for name in ("quota", "period"))
    except (OSError, ValueError):
        return None
    return quota / period if quota > 0 and period > 0 else None


def memory_bytes(proc: Path = PROC) -> int:
    """Return the machine's memory, or the limit of this process's control groups where that is less."""
    limits = [os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")]
    for folder, version in _groups("memory", proc):
        try:
            limits.append(int((folder / _MEMORY_LIMITS[version]).read_text()))
        except (OSError, ValueError):  # no limit reads "max" in version 2, and a very large number in version 1
            continue
    return min(limits)


def _groups(controller: str, proc: Path) -> Iterator[tuple[Path, int]]:
    """Yield the folder and version of this process's control group of a controller and of the groups above it."""
    if (own := own_cgroup(proc, controller)) is not None:
        version, folder = own
        for each in (Path(folder), *Path(folder).parents):
            yield each, version


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
        listing = subprocess.check_output(
            ["nvidia-smi", "-L"],
            stdin=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            text=True,
            timeout=GPU_LIST_TIMEOUT_S,
        )
    except (OSError, subprocess.SubprocessError):
        return []
    return [str(index) for index, line in enumerate(listing.splitlines()) if line.startswith("GPU ")]
