"""What a cluster offers to the pods of a namespace: its nodes, LimitRanges and quotas.

Sources: Kubernetes, "Assigning Pods to Nodes", "Taints and Tolerations", "Limit Ranges", "Resource Quotas".
"""

import asyncio
from collections.abc import Iterable, Mapping, Sequence
from decimal import Decimal
from typing import Any, Final

from attrs import evolve, field, frozen

from torc_framework.api import Resources
from torc_k8s.cluster.client import Cluster
from torc_k8s.cluster.errors import ClusterError, ClusterUnreachable
from torc_k8s.pods.option_parts import GPU
from torc_k8s.pods.pod_options import PodOptions, Toleration
from torc_k8s.pods.quantities import parse_quantity

_BLOCKING_EFFECTS: Final = ("NoSchedule", "NoExecute")
_PASSING_TAINT: Final = "node.kubernetes.io/"
"""Taints that Kubernetes sets for the time in which a node is not ready, or lacks memory or disk."""


@frozen
class PodAmounts:
    """CPUs, memory and GPUs; None is not limited, or not known.

    Attributes:
        cpus: CPUs, also fractions.
        memory_bytes: Memory.
        gpus: GPUs.
    """

    cpus: Decimal | None = None
    memory_bytes: int | None = None
    gpus: int | None = None

    def within(self, other: "PodAmounts") -> "PodAmounts":
        """Return the smaller of each amount."""
        return PodAmounts(
            _smaller(self.cpus, other.cpus),
            _smaller(self.memory_bytes, other.memory_bytes),
            _smaller(self.gpus, other.gpus),
        )


@frozen
class NodeOffer:
    """A node on which pods of these options may run.

    Attributes:
        name: Its name.
        amounts: What it offers to pods (``status.allocatable``).
        gpu_type: Model of its GPUs, if a label names it.
    """

    name: str
    amounts: PodAmounts
    gpu_type: str | None = None


@frozen
class ClusterSurvey:
    """What a cluster offers to the pods of a namespace.

    Attributes:
        namespace: The namespace.
        nodes: The nodes on which pods may run; None if this account may not list nodes.
        limits: The most that LimitRanges admit for one pod.
        quota: The most that quotas admit for all pods of the namespace together.
        unknown: What could not be found out, one sentence each.
    """

    namespace: str
    nodes: tuple[NodeOffer, ...] | None = None
    limits: PodAmounts = field(factory=PodAmounts)
    quota: PodAmounts = field(factory=PodAmounts)
    unknown: tuple[str, ...] = ()

    def largest_pod(self, unknown: Resources | None = None) -> Resources | None:
        """Return the largest request of a pod for each resource, and the number of nodes.

        Args:
            unknown: Stands for a node of which nothing is known: where neither nodes nor limits are known. Without it,
                unknown CPUs or memory give None, and unknown GPUs are 0.
        """
        found = self.largest_of(self.nodes or ())
        if not self.nodes and unknown is not None:
            most = PodAmounts(Decimal(unknown.num_cpus), unknown.memory_bytes, unknown.num_gpus)
            found = found.within(most)
        if found.cpus is None or found.memory_bytes is None:
            return None
        return Resources(
            num_cpus=max(1, int(found.cpus)),
            memory_bytes=max(1, found.memory_bytes),
            num_gpus=found.gpus or 0,
            num_nodes=max(1, len(self.nodes or ())),
        )

    def largest_of(self, nodes: Sequence[NodeOffer]) -> PodAmounts:
        """Return the most that a pod may request on any of these nodes, within limits and quota."""
        largest = PodAmounts()
        if nodes:
            largest = PodAmounts(
                max((each.amounts.cpus or Decimal(0)) for each in nodes),
                max((each.amounts.memory_bytes or 0) for each in nodes),
                max((each.amounts.gpus or 0) for each in nodes),
            )
        return largest.within(self.limits).within(self.quota)


def _smaller(one: Any, other: Any) -> Any:
    return min((each for each in (one, other) if each is not None), default=None)


async def query_survey(cluster: Cluster, options: PodOptions) -> ClusterSurvey:
    """Return what the cluster offers to pods with these options, with one request for each kind of objects.

    What the account may not list is unknown.

    Raises:
        ClusterUnreachable: the cluster does not answer.
    """
    unknown: list[str] = []

    async def listed(kind: str) -> list[dict[str, Any]] | None:
        try:
            return (await cluster.list(kind))[0]
        except ClusterUnreachable:
            raise
        except ClusterError as error:
            unknown.append(str(error))
            return None

    nodes, ranges, quotas = await asyncio.gather(listed("nodes"), listed("limitranges"), listed("resourcequotas"))
    return evolve(survey_of(cluster.namespace, nodes, ranges or (), quotas or (), options), unknown=tuple(unknown))


def survey_of(
    namespace: str,
    nodes: Iterable[Mapping[str, Any]] | None,
    ranges: Iterable[Mapping[str, Any]],
    quotas: Iterable[Mapping[str, Any]],
    options: PodOptions,
) -> ClusterSurvey:
    """Return the survey that these objects of the API describe; malformed ones are left out.

    Args:
        namespace: The namespace.
        nodes: All nodes; None if they are not known.
        ranges: The LimitRanges of the namespace.
        quotas: Its ResourceQuotas.
        options: The options of the pods.
    """
    gpu = options.gpu_resource or GPU
    offers = None if nodes is None else tuple(_offer(each, gpu) for each in nodes if _admits(each, options))
    limits = PodAmounts()
    for each in ranges:
        for limit in _mapping(each, "spec").get("limits") or ():
            if isinstance(limit, dict) and limit.get("type") in ("Container", "Pod"):
                limits = limits.within(amounts_of(_mapping(limit, "max"), gpu))
    quota = PodAmounts()
    for each in quotas:
        spec = _mapping(each, "spec")
        if not spec.get("scopes") and not spec.get("scopeSelector"):  # one with scopes is not about every pod
            quota = quota.within(_quota(_mapping(spec, "hard"), gpu))
    return ClusterSurvey(namespace, offers, limits, quota)


def amounts_of(resources: Mapping[str, Any], gpu: str, prefix: str = "") -> PodAmounts:
    """Return CPUs, memory and GPUs of a map of quantities by resource name.

    Args:
        resources: The quantities; malformed ones count as missing.
        gpu: Name of the resource that is a GPU.
        prefix: What the names begin with, such as ``requests.``.
    """
    cpus, memory, gpus = (_quantity(resources.get(prefix + name)) for name in ("cpu", "memory", gpu))
    return PodAmounts(cpus, None if memory is None else int(memory), None if gpus is None else int(gpus))


def _quota(hard: Mapping[str, Any], gpu: str) -> PodAmounts:
    """Return the smallest of the amounts that a quota has for requests and for limits; torc's pods have both equal."""
    found = PodAmounts()
    for prefix in ("", "requests.", "limits."):
        found = found.within(amounts_of(hard, gpu, prefix))
    return found


def _quantity(value: Any) -> Decimal | None:
    try:
        return None if value is None else parse_quantity(value)
    except ValueError:
        return None


def _mapping(values: Mapping[str, Any], key: str) -> Mapping[str, Any]:
    found = values.get(key)
    return found if isinstance(found, dict) else {}


def _offer(node: Mapping[str, Any], gpu: str) -> NodeOffer:
    metadata, amounts = _mapping(node, "metadata"), amounts_of(_mapping(_mapping(node, "status"), "allocatable"), gpu)
    kind = _mapping(metadata, "labels").get("nvidia.com/gpu.product") if amounts.gpus else None
    return NodeOffer(str(metadata.get("name", "")), amounts, None if kind is None else str(kind))


def _admits(node: Mapping[str, Any], options: PodOptions) -> bool:
    """Return whether the scheduler may place pods with these options on a node, once it is ready.

    ``nodeName``, affinity and what a pod template says are not considered.
    """
    spec, labels = _mapping(node, "spec"), _mapping(_mapping(node, "metadata"), "labels")
    if any(labels.get(key) != value for key, value in (options.node_selector or {}).items()):
        return False
    taints = [each for each in spec.get("taints") or () if isinstance(each, dict)]
    return not any(_repels(taint, options.tolerations or ()) for taint in taints)


def _repels(taint: Mapping[str, Any], tolerations: Sequence[Toleration]) -> bool:
    if taint.get("effect") not in _BLOCKING_EFFECTS:
        return False
    key = str(taint.get("key", ""))
    if key.startswith(_PASSING_TAINT) and key != f"{_PASSING_TAINT}unschedulable":
        return False
    return not any(_tolerates(each, taint) for each in tolerations)


def _tolerates(toleration: Toleration, taint: Mapping[str, Any]) -> bool:
    """Return whether a toleration matches a taint: an empty key or effect matches all, no value matches any."""
    return (
        toleration.key in ("", taint.get("key"))
        and toleration.effect in ("", taint.get("effect"))
        and (toleration.value is None or toleration.value == taint.get("value", ""))
    )
