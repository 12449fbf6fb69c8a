"""What a cluster offers to the runner: the size of its largest node, and room for many pods."""

from typing import Any, Final

from torc_framework.api import LaunchSite, Resources
from torc_k8s.cluster import Cluster, ClusterError
from torc_k8s.executor.names import EXECUTOR
from torc_k8s.pods.options import K8sOptions
from torc_k8s.pods.quantities import parse_quantity

ROOM_CPUS: Final = 2000
"""CPUs of the jobs that are given to the cluster at once: pods for which no node has room wait there, where an
autoscaler sees them."""
UNKNOWN_NODE: Final = Resources(num_cpus=1024, memory_bytes=1 << 50, num_gpus=16)
"""Stands for the largest node if the account may not list nodes: the cluster says which pods fit."""


async def find_site(cluster: Cluster, options: K8sOptions) -> LaunchSite:
    """Return what the cluster offers.

    The resources are those of the largest node, so that the runner takes no job that fits none. The number of nodes is
    larger than the real one: the scheduler of the cluster decides what runs when.
    """
    try:
        nodes, _ = await cluster.list("nodes")
    except ClusterError:
        nodes = []
    sizes = [_size(node, options.gpu_resource) for node in nodes if _is_usable(node)]
    most = [max(size[place] for size in sizes) for place in range(3)] if sizes else None
    if most is None:
        largest = UNKNOWN_NODE
    else:
        largest = Resources(num_cpus=max(1, most[0]), memory_bytes=max(1, most[1]), num_gpus=most[2])
    cpus = options.max_pods or ROOM_CPUS
    count = max(len(sizes), -(-cpus // largest.num_cpus))
    major, minor = cluster.version
    return LaunchSite(
        Resources(largest.num_cpus, largest.memory_bytes, largest.num_gpus, count),
        gpu_names=tuple(str(number) for number in range(largest.num_gpus * count)),
        kind=EXECUTOR,
        facts={"cluster": cluster.url, "namespace": cluster.namespace, "version": f"{major}.{minor}"},
    )


def _is_usable(node: dict[str, Any]) -> bool:
    return not (node.get("spec") or {}).get("unschedulable")


def _size(node: dict[str, Any], gpu: str) -> tuple[int, int, int]:
    """Return CPUs, bytes of memory and GPUs that pods can have on a node."""
    offered = (node.get("status") or {}).get("allocatable") or {}
    cpus, memory, gpus = (_whole(offered.get(name, "0")) for name in ("cpu", "memory", gpu))
    return cpus, memory, gpus


def _whole(quantity: Any) -> int:
    """Return the whole units in a quantity; none in one that cannot be read."""
    try:
        return int(parse_quantity(quantity))
    except ValueError:
        return 0
