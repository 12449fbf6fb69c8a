"""Columns of tables of partitions."""

from collections.abc import Callable, Sequence
from typing import Final

from torc_framework.models.hpc_profiles import Partition
from torc_framework.text.quantities import exact_duration_text, size_text


def node_memory_text(partition: Partition) -> str:
    """Return the memory of a node, such as ``234 GiB``, in whole units, rounded down so that a request of it fits."""
    whole_gib = partition.memory_mb // 1024 * 1024
    return size_text((whole_gib or partition.memory_mb) * 1024**2)


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
    ("Max Walltime", lambda partition: exact_duration_text(partition.max_walltime_secs)),
    ("GPUs", node_gpus_text),
    ("Shared", lambda partition: "yes" if partition.shared else "-"),
    ("Notes", notes_text),
)
