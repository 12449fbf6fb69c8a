"""A cluster as an HPC profile, so that requests of jobs can be planned, and recovery stays within what it offers."""

import re
from collections.abc import Sequence
from typing import Final

from torc_framework.api import AllocationError, HpcProfile, Partition
from torc_k8s.survey.cluster_survey import ClusterSurvey, NodeOffer

UNLIMITED_S: Final = 365 * 86_400
"""Longest walltime in the profile, as a partition requires a number: one year. Kubernetes limits no pod's time."""
_MIB: Final = 1024**2


def profile_of(survey: ClusterSurvey, host: str) -> HpcProfile:
    """Return the profile of a namespace: one partition of the nodes without GPUs, one of those with.

    Args:
        survey: What the cluster offers.
        host: Name of the API server's host, for people.

    Raises:
        AllocationError: neither the nodes nor limits of the namespace are known, or no node takes the pods.
    """
    nodes = survey.nodes
    if nodes is None:
        found = [_partition("pods", survey, ())]
    else:
        with_gpus = [each for each in nodes if each.amounts.gpus]
        plain = [each for each in nodes if not each.amounts.gpus]
        groups = (("nodes", plain), ("gpu-nodes", with_gpus))
        found = [_partition(name, survey, several) for name, several in groups if several]
    partitions = tuple(each for each in found if each is not None)
    if not partitions:
        why = survey.unknown or ("no node admits the pods: see node_selector and tolerations",)
        raise AllocationError(
            f"what namespace {survey.namespace} of the cluster offers cannot be found out: {'; '.join(why)}"
        )
    return HpcProfile(
        f"k8s-{re.sub('[^A-Za-z0-9_.-]', '-', survey.namespace)}",
        display_name=f"namespace {survey.namespace} of {host}",
        partitions=partitions,
    )


def _partition(name: str, survey: ClusterSurvey, nodes: Sequence[NodeOffer]) -> Partition | None:
    """Return the partition of some nodes; None if its size is not known."""
    largest = survey.largest_of(nodes)
    if largest.cpus is None or largest.memory_bytes is None:
        return None
    kinds = sorted({each.gpu_type for each in nodes if each.gpu_type})
    return Partition(
        name=name,
        cpus_per_node=max(1, int(largest.cpus)),
        memory_mb=max(1, largest.memory_bytes // _MIB),
        max_walltime_secs=UNLIMITED_S,
        description="pods of any size up to that of the largest node, the limits and the quota",
        gpus_per_node=largest.gpus or 0,
        gpu_type="/".join(kinds) or None,
        shared=True,
        max_nodes=len(nodes) or None,
    )
