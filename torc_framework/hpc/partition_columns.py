"""Columns of tables of partitions."""

from collections.abc import Callable, Sequence
from typing import Final

from torc_framework.hpc.walltimes import walltime_text
from torc_framework.models.hpc_profiles import Partition


def node_memory_text(partition: Partition) -> str:
    """Return the memory of a node, such as ``240 GB``, in a unit that gives a whole number."""
    for divisor in (1_000, 1_024):
        if partition.memory_mb % divisor == 0:
            return f"{partition.memory_mb // divisor} GB"
    return f"{partition.memory_mb} MB"


def node_gpus_text(partition: Partition) -> str:
    """Return the number and the type of a node's GPUs, such as ``4 (H100)``."""
    kind = f" ({partition.gpu_type})" if partition.gpu_type else ""
    return f"{partition.gpus_per_node}{kind}" if partition.gpus_per_node else "-"


def notes_text(partition: Partition) -> str:
    """Return a partition's description and its conditions."""
    found = [partition.description] if partition.description else []
    if partition.requires_explicit_request:
        found.append("only when named")
    if partition.min_nodes > 1:
        found.append(f"at least {partition.min_nodes} nodes")
    if partition.max_nodes is not None:
        found.append(f"at most {partition.max_nodes} nodes")
    return "; ".join(found)


PARTITION_COLUMNS: Final[Sequence[tuple[str, Callable[[Partition], object]]]] = (
    ("Name", lambda partition: partition.name),
    ("CPUs/Node", lambda partition: partition.cpus_per_node),
    ("Mem/Node", node_memory_text),
    ("Max Walltime", lambda partition: walltime_text(partition.max_walltime_secs)),
    ("GPUs", node_gpus_text),
    ("Shared", lambda partition: "yes" if partition.shared else "-"),
    ("Notes", notes_text),
)
