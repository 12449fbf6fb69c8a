"""Removal of all that a runner has left in the cluster."""

import asyncio
from collections.abc import Collection
from typing import Any, Final

from attrs import define, field

from torc_k8s.cluster import Cluster, ClusterError
from torc_k8s.executor.deletions import FEW, delete_jobs, parts
from torc_k8s.executor.names import KEPT, is_scope, owner_name
from torc_k8s.pods.names import JOB, SCOPE, WORKFLOW, number_of, selector

AT_ONCE: Final = 16


async def remove_scope(cluster: Cluster, scope: str, *, patience_s: float, kept: bool = False) -> None:
    """Remove the pods, the Secret and the owner of a scope.

    Args:
        cluster: The cluster and namespace.
        scope: The label by which the pods are found.
        patience_s: How long each request is repeated while the cluster does not answer.
        kept: Also the pods that stay after their end is stored.

    Raises:
        ClusterError: the cluster refuses, or does not answer.
    """
    pods = await _pods_of(cluster, scope, patience_s=patience_s, kept=kept)
    if len(pods) > FEW:
        jobs = {number_of(pod["metadata"].get("labels") or {}, JOB) for pod in pods} - {None}
        for part in parts(sorted(job for job in jobs if job is not None)):
            await delete_jobs(cluster, scope, part, grace_s=0, kept=kept, patience_s=patience_s)
        pods = await _pods_of(cluster, scope, patience_s=patience_s, kept=kept)
    await remove_pods(cluster, pods, patience_s=patience_s)
    await cluster.delete("secrets", owner_name(scope), patience_s=patience_s)
    await cluster.delete("configmaps", owner_name(scope), patience_s=patience_s)


async def _pods_of(cluster: Cluster, scope: str, *, patience_s: float, kept: bool) -> list[dict[str, Any]]:
    pods, _ = await cluster.list("pods", labels=selector(scope), patience_s=patience_s)
    return [pod for pod in pods if kept or not is_kept(pod)]


async def remove_pods(cluster: Cluster, pods: Collection[dict[str, Any]], *, patience_s: float) -> None:
    """Remove pods one by one, at once, whether their processes have ended or not.

    Raises:
        ClusterError: the cluster refuses, or does not answer.
    """
    limit = asyncio.Semaphore(AT_ONCE)

    async def remove(pod: dict[str, Any]) -> None:
        metadata = pod["metadata"]
        async with limit:
            if not (metadata.get("deletionTimestamp") and metadata.get("deletionGracePeriodSeconds") == 0):
                await cluster.delete("pods", metadata["name"], grace_s=0, uid=metadata["uid"], patience_s=patience_s)
            if metadata.get("finalizers"):
                await _release(cluster, metadata["name"], patience_s)

    await asyncio.gather(*map(remove, pods))


async def _release(cluster: Cluster, name: str, patience_s: float) -> None:
    """Remove the finalizers of a pod that may be gone meanwhile."""
    try:
        await cluster.patch("pods", name, {"metadata": {"finalizers": None}}, patience_s=patience_s)
    except ClusterError as error:
        if error.status != 404:
            raise


@define
class Leftover:
    """What a runner has in the cluster.

    Attributes:
        scope: The label by which it is found.
        workflow_id: The workflow that it served; None if no label tells.
        pods: Names of its pods, without kept ones.
        kept: Names of its pods that stay after their ends are stored.
    """

    scope: str
    workflow_id: int | None = None
    pods: list[str] = field(factory=list)
    kept: list[str] = field(factory=list)


async def find_leftovers(cluster: Cluster, workflow_id: int | None) -> list[Leftover]:
    """Return what runners have in the namespace: those of a workflow, or all.

    Raises:
        ClusterError: the cluster refuses, or does not answer.
    """
    found: dict[str, Leftover] = {}
    for kind in ("configmaps", "pods"):
        listed, _ = await cluster.list(kind, labels=selector(workflow_id=workflow_id))
        for each in listed:
            metadata = each["metadata"]
            labels = metadata.get("labels") or {}
            if not is_scope(labels.get(SCOPE)):
                continue
            entry = found.setdefault(labels[SCOPE], Leftover(labels[SCOPE], number_of(labels, WORKFLOW)))
            if kind == "pods":
                (entry.kept if is_kept(each) else entry.pods).append(metadata["name"])
    return sorted(found.values(), key=lambda each: (each.workflow_id or 0, each.scope))


def is_kept(pod: dict[str, Any]) -> bool:
    """Return whether a pod stays after its end is stored, because the options of its runner said so."""
    return KEPT in (pod["metadata"].get("labels") or {})
