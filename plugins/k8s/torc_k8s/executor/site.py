"""What a cluster offers to the runner: the size of its largest node, and room for many pods."""

from typing import Final

from torc_framework.api import LaunchSite, Resources
from torc_k8s.cluster import Cluster, ClusterUnreachable
from torc_k8s.executor.names import EXECUTOR
from torc_k8s.pods.options import K8sOptions
from torc_k8s.pods.pod_options import PodOptions, Toleration
from torc_k8s.survey.cluster_survey import ClusterSurvey, query_survey

ROOM_CPUS: Final = 2000
"""CPUs of the jobs that are given to the cluster at once: pods for which no node has room wait there, where an
autoscaler sees them."""
ROOM_NODES: Final = 32
"""Nodes of one job, at least: its pods may share nodes, and an autoscaler may add some."""
UNKNOWN_NODE: Final = Resources(num_cpus=256, memory_bytes=1 << 50, num_gpus=16)
"""Stands for the largest node where the account may not list nodes: the cluster says which pods fit. With `ROOM_NODES`
its CPUs limit what is given to the cluster at once."""


async def find_site(cluster: Cluster, options: K8sOptions) -> LaunchSite:
    """Return what the cluster offers.

    The resources are those of the largest pod that nodes, LimitRanges and quotas admit, so that the runner takes no job
    that never fits, and recovery raises no request above it. Labels and taints of nodes do not count here: a job may
    name its own selector and tolerations. The number of nodes is larger than the real one: the scheduler of the cluster
    decides what runs when.
    """
    every = PodOptions(gpu_resource=options.gpu_resource, tolerations=[Toleration()])
    try:
        survey = await query_survey(cluster, every)
    except ClusterUnreachable:
        survey = ClusterSurvey(cluster.namespace)
    largest = survey.largest_pod(UNKNOWN_NODE) or UNKNOWN_NODE
    cpus = options.max_pods or ROOM_CPUS
    nodes = min(options.max_pods or ROOM_NODES, ROOM_NODES)
    count = max(largest.num_nodes, -(-cpus // largest.num_cpus), nodes)
    major, minor = cluster.version
    return LaunchSite(
        Resources(largest.num_cpus, largest.memory_bytes, largest.num_gpus, count),
        gpu_names=tuple(str(number) for number in range(largest.num_gpus * count)),
        kind=EXECUTOR,
        facts={"cluster": cluster.url, "namespace": cluster.namespace, "version": f"{major}.{minor}"},
    )
