"""Deletions of pods: those that are ordered together are one request to the cluster."""

import asyncio
from collections.abc import Awaitable, Callable, Collection, Coroutine, Sequence
from contextlib import suppress
from functools import partial
from typing import Any, Final, TypeVar

from attrs import define, field

from torc_k8s.cluster import Cluster, ClusterError
from torc_k8s.executor.names import KEPT
from torc_k8s.pods.names import JOB, selector

T = TypeVar("T")

GATHER_S: Final = 0.02
"""Deletions that are ordered within this time are one request."""
FEW: Final = 8
"""So many pods are deleted one by one: a request for more reads all pods of the namespace."""
JOBS_IN_A_REQUEST: Final = 200
"""Jobs that one request names: bounds its address, the time until its answer, and the size of that."""

Settle = Callable[[Callable[[], Awaitable[Any]]], Awaitable[Any]]
"""Repeats a request until the cluster has answered it."""


async def delete_jobs(
    cluster: Cluster,
    scope: str,
    jobs: Collection[int],
    *,
    grace_s: int | None,
    kept: bool = False,
    patience_s: float = 0.0,
) -> None:
    """Delete the pods of jobs by one request.

    Args:
        cluster: The cluster and namespace.
        scope: The runner.
        jobs: Ids of the jobs, at most `JOBS_IN_A_REQUEST`.
        grace_s: Grace period; None for those of the pods.
        kept: Also the pods that stay after their end is stored.
        patience_s: How long the request is repeated while the cluster does not answer.

    Raises:
        ClusterError: the cluster refuses, or does not answer; it may have deleted some.
    """
    labels = f"{selector(scope)},{JOB} in ({','.join(map(str, sorted(set(jobs))))})" + ("" if kept else f",!{KEPT}")
    await cluster.delete_all("pods", labels=labels, grace_s=grace_s, patience_s=patience_s)


def parts(pods: Sequence[T]) -> list[Sequence[T]]:
    """Return pods in parts, of which each is one request."""
    return [pods[start : start + JOBS_IN_A_REQUEST] for start in range(0, len(pods), JOBS_IN_A_REQUEST)]


@define(eq=False)
class Deletions:
    """The deletions of pods of one scope.

    Args:
        cluster: The cluster and namespace.
        scope: The label by which the pods are found.
        settle: Repeats a request until it is answered.
        spawn: Runs a coroutine beside others.
    """

    _cluster: Cluster
    _scope: str
    _settle: Settle
    _spawn: Callable[[Coroutine[Any, Any, None]], object]
    _ordered: dict[int | None, dict[str, int]] = field(factory=dict, init=False)
    """Names of pods and ids of their jobs, by grace period."""

    def order(self, name: str, job_id: int | None, grace_s: int | None) -> None:
        """Have a pod deleted; what the cluster refuses is ignored.

        Args:
            name: The pod.
            job_id: Its job, if all pods of the job may be deleted.
            grace_s: Grace period; None for that of the pod.
        """
        if job_id is None:
            self._spawn(self._delete(grace_s, name))
            return
        ordered = self._ordered.setdefault(grace_s, {})
        ordered[name] = job_id
        if len(ordered) == 1:
            self._spawn(self._gather(grace_s))

    async def _gather(self, grace_s: int | None) -> None:
        await asyncio.sleep(GATHER_S)
        ordered = self._ordered.pop(grace_s)
        await asyncio.gather(*(self._delete_together(part, grace_s) for part in parts(list(ordered.items()))))

    async def _delete_together(self, pods: Sequence[tuple[str, int]], grace_s: int | None) -> None:
        if len(pods) > FEW:
            jobs = [job for _, job in pods]
            with suppress(ClusterError):  # one of them was refused: each is deleted by itself
                await self._settle(partial(delete_jobs, self._cluster, self._scope, jobs, grace_s=grace_s))
                return
        await asyncio.gather(*(self._delete(grace_s, name) for name, _ in pods))

    async def _delete(self, grace_s: int | None, name: str) -> None:
        with suppress(ClusterError):  # the next stop tries again
            await self._settle(partial(self._cluster.delete, "pods", name, grace_s=grace_s))
