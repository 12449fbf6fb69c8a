"""Access to the API of a cluster: configuration, requests, watches, errors. `kubernetes` is imported when used."""

from typing import Final

from torc_framework.api import LoopThread
from torc_k8s.cluster.address import ClusterAddress
from torc_k8s.cluster.client import Cluster, patiently
from torc_k8s.cluster.errors import ClusterError, ClusterUnreachable, Expired, NotStarted
from torc_k8s.cluster.pod_watch import PodWatch

loop_thread: Final = LoopThread("torc-k8s")
"""All requests of a process to clusters."""

__all__ = [
    "Cluster",
    "ClusterAddress",
    "ClusterError",
    "ClusterUnreachable",
    "Expired",
    "NotStarted",
    "PodWatch",
    "loop_thread",
    "patiently",
]
