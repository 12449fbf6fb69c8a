"""What a cluster offers, from its nodes, LimitRanges and quotas."""

from decimal import Decimal
from typing import Any

import pytest
from torc_k8s.pods.pod_options import PodOptions, Toleration
from torc_k8s.survey.cluster_survey import PodAmounts, survey_of
from torc_k8s.survey.profile import profile_of

from torc_framework.api import AllocationError, Resources

GIB = 1024**3


def node(name: str, cpu: str, memory: str, *, gpus: str | None = None, **more: Any) -> dict[str, Any]:
    """Return a node as the API has it."""
    allocatable = {"cpu": cpu, "memory": memory, "pods": "110", **({"nvidia.com/gpu": gpus} if gpus else {})}
    labels = more.pop("labels", {})
    return {"metadata": {"name": name, "labels": labels}, "spec": more, "status": {"allocatable": allocatable}}


def limit_range(kind: str, **most: str) -> dict[str, Any]:
    return {"spec": {"limits": [{"type": kind, "max": most}]}}


def quota(hard: dict[str, str], **more: Any) -> dict[str, Any]:
    return {"spec": {"hard": hard, **more}}


SMALL = node("small", "1930m", "7Gi")
LARGE = node("large", "64", "256Gi")


def largest(*nodes: dict[str, Any], ranges: Any = (), quotas: Any = (), **options: Any) -> Resources | None:
    return survey_of("lab", nodes, ranges, quotas, PodOptions(**options)).largest_pod()


def test_the_largest_node_counts() -> None:
    """CPUs are whole: a pod of 2 CPUs does not fit 1930m."""
    assert largest(SMALL) == Resources(1, 7 * GIB, num_nodes=1)
    assert largest(SMALL, LARGE) == Resources(64, 256 * GIB, num_nodes=2)


@pytest.mark.parametrize("kind", ["Container", "Pod"])
def test_limit_ranges_are_kept(kind: str) -> None:
    """Those of volume claims are about something else."""
    assert largest(LARGE, ranges=[limit_range(kind, cpu="8", memory="16Gi")]) == Resources(8, 16 * GIB, num_nodes=1)
    assert largest(LARGE, ranges=[limit_range("PersistentVolumeClaim", memory="1Gi")]) == largest(LARGE)


@pytest.mark.parametrize("prefix", ["", "requests.", "limits."])
def test_quotas_are_kept(prefix: str) -> None:
    """One pod can have the whole quota at most; a quota with scopes is not about every pod."""
    hard = {f"{prefix}cpu": "4", f"{prefix}memory": "8Gi"}
    assert largest(LARGE, quotas=[quota(hard)]) == Resources(4, 8 * GIB, num_nodes=1)
    assert largest(LARGE, quotas=[quota(hard, scopes=["BestEffort"])]) == largest(LARGE)
    assert largest(LARGE, quotas=[quota({"pods": "7"})]) == largest(LARGE)


def test_nodes_that_take_no_such_pods_do_not_count() -> None:
    """By label, by taint, cordoned."""
    tainted = node("tainted", "64", "256Gi", taints=[{"key": "gpu", "value": "yes", "effect": "NoSchedule"}])
    cordoned = node(
        "cordoned", "64", "256Gi", taints=[{"key": "node.kubernetes.io/unschedulable", "effect": "NoSchedule"}]
    )
    assert largest(SMALL, tainted, cordoned) == largest(SMALL)
    assert largest(SMALL, LARGE, node_selector={"disk": "ssd"}) is None
    assert largest(SMALL, node("ssd", "4", "8Gi", labels={"disk": "ssd"}), node_selector={"disk": "ssd"}) == Resources(
        4, 8 * GIB, num_nodes=1
    )
    for tolerated in (Toleration(key="gpu"), Toleration(key="gpu", value="yes"), Toleration(key="")):
        assert largest(SMALL, tainted, tolerations=[tolerated]) == Resources(64, 256 * GIB, num_nodes=2)
    assert largest(SMALL, tainted, tolerations=[Toleration(key="gpu", value="no")]) == largest(SMALL)


def test_a_node_that_is_not_ready_now_counts() -> None:
    """It is expected back, and only preferences repel nothing."""
    away = node("away", "64", "256Gi", taints=[{"key": "node.kubernetes.io/not-ready", "effect": "NoExecute"}])
    soft = node("soft", "64", "256Gi", taints=[{"key": "x", "effect": "PreferNoSchedule"}])
    assert largest(away) == largest(soft) == largest(LARGE)


def test_gpus() -> None:
    """The resource may have another name."""
    box = node("box", "32", "64Gi", gpus="4", labels={"nvidia.com/gpu.product": "A100"})
    assert largest(SMALL, box) == Resources(32, 64 * GIB, num_gpus=4, num_nodes=2)
    assert largest(box, gpu_resource="amd.com/gpu") == Resources(32, 64 * GIB, num_nodes=1)
    profile = profile_of(survey_of("lab", [SMALL, box], (), (), PodOptions()), "api.example.org")
    assert [(each.name, each.gpus_per_node, each.gpu_type) for each in profile.partitions] == [
        ("nodes", 0, None),
        ("gpu-nodes", 4, "A100"),
    ]


def test_without_the_right_to_see_nodes_the_limits_count() -> None:
    """With neither there is no profile, and the message says why."""
    limited = survey_of("lab", None, [limit_range("Container", cpu="8", memory="16Gi")], (), PodOptions())
    assert limited.largest_pod() == Resources(8, 16 * GIB, num_nodes=1)
    (partition,) = profile_of(limited, "api").partitions
    assert (partition.cpus_per_node, partition.memory_mb, partition.max_nodes) == (8, 16 * 1024, None)
    nothing = survey_of("lab", None, (), (), PodOptions())
    assert nothing.largest_pod() is None
    with pytest.raises(AllocationError, match="cannot be found out"):
        profile_of(nothing, "api")


def test_malformed_objects_are_left_out() -> None:
    """The objects come from elsewhere: nothing in them raises."""
    strange = [{}, {"spec": None, "status": 3, "metadata": []}, node("odd", "many", "-", taints=[None, 3])]
    found = survey_of("lab", strange, [{"spec": {"limits": [None, 7]}}, {}], [{"spec": []}], PodOptions())
    assert found.nodes is not None
    assert all(each.amounts == PodAmounts() for each in found.nodes)
    assert found.largest_of(found.nodes).cpus == Decimal(0)
