"""The built-in HPC profiles: Kestrel, the cluster of NREL.

Partitions ending in ``l`` and ``s`` are the long and short ones of the same nodes, as the cluster's pages name them:
https://nrel.github.io/HPC/Documentation/Systems/Kestrel/Running/
"""

from collections.abc import Sequence
from typing import Any, Final

from torc_framework.api import HpcProfile, Partition, hookimpl

_GIB: Final = 1024
_HOUR: Final = 3_600
_SHORT, _STANDARD, _LONG = 4 * _HOUR, 48 * _HOUR, 240 * _HOUR


def _cpu(name: str, walltime_s: int, description: str, *, memory_gib: int = 240, **facts: Any) -> Partition:
    return Partition(name, 104, memory_gib * _GIB, walltime_s, description, **facts)


def _gpu(name: str, walltime_s: int, description: str) -> Partition:
    return Partition(name, 128, 240 * _GIB, walltime_s, description, gpus_per_node=4, gpu_type="H100", gpu_memory_gb=80)


KESTREL: Final = HpcProfile(
    "kestrel",
    display_name="NREL Kestrel",
    description="CPU and GPU nodes of NREL's Kestrel",
    detect_env_var="NREL_CLUSTER=kestrel",
    charge_factor_cpu=10.0,
    charge_factor_gpu=100.0,
    partitions=(
        _cpu("debug", _HOUR, "quick tests"),
        _cpu("short", _SHORT, "short jobs"),
        _cpu("standard", _STANDARD, "general work"),
        _cpu("long", _LONG, "long jobs"),
        _cpu("medmem", _STANDARD, "medium memory", memory_gib=480),
        _cpu("bigmem", _STANDARD, "large memory", memory_gib=2_048),
        _cpu("bigmeml", _LONG, "large memory, long jobs", memory_gib=2_048),
        _cpu("shared", _STANDARD, "parts of nodes", shared=True),
        _cpu("sharedl", _LONG, "parts of nodes, long jobs", shared=True),
        _cpu("hbw", _STANDARD, "high bandwidth", min_nodes=10),
        _cpu("hbwl", _LONG, "high bandwidth, long jobs", min_nodes=10),
        _cpu("nvme", _STANDARD, "local NVMe storage"),
        _gpu("gpu-h100s", _SHORT, "GPUs, short jobs"),
        _gpu("gpu-h100", _STANDARD, "GPUs"),
        _gpu("gpu-h100l", _LONG, "GPUs, long jobs"),
    ),
)
"""Memory of nodes is what jobs may use. GPU nodes are given the least memory that is said of them."""


@hookimpl(trylast=True)
def torc_hpc_profiles() -> Sequence[HpcProfile]:
    """Offer Kestrel."""
    return [KESTREL]
