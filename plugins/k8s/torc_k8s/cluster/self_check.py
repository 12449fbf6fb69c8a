"""What a cluster says about torc's account: its rights, the limits of its namespace, and a pod on trial."""

import asyncio
from typing import Any, Final

from attrs import field, frozen

from torc_k8s.cluster.client import Cluster
from torc_k8s.cluster.errors import ClusterError, ClusterUnreachable
from torc_k8s.cluster.rights import CLUSTER_RIGHTS, RIGHTS, AccessRight

TESTED_VERSION: Final = (1, 20)
"""The oldest version of Kubernetes with which torc is tested."""
_PROBE: Final = "torc-check"


@frozen
class RightAnswer:
    """What the cluster says about one right.

    Args:
        right: The right.
        missing: The verbs that the account may not use.
    """

    right: AccessRight
    missing: list[str]


@frozen
class ClusterReport:
    """What the cluster says about the account.

    Args:
        url: The API server.
        version: Its version.
        account: The account, as the cluster or the kubeconfig names it.
        namespace: The namespace.
        rights: Each right.
        quotas: The ResourceQuotas, with name, hard and used values.
        limits: The LimitRanges, with name and limits.
        problems: What keeps torc from working, one sentence for each.
        notes: What torc does without, one sentence for each.
    """

    url: str
    version: tuple[int, int]
    account: str
    namespace: str
    rights: list[RightAnswer]
    quotas: list[dict[str, Any]]
    limits: list[dict[str, Any]]
    problems: list[str] = field(factory=list)
    notes: list[str] = field(factory=list)


async def check_cluster(cluster: Cluster, pod: dict[str, Any]) -> ClusterReport:
    """Ask a cluster what torc's account may do there; nothing is changed.

    Args:
        cluster: The cluster.
        pod: A pod as a job would have it, which the cluster examines without storing it.

    Raises:
        ClusterError: the cluster answers no question about rights.
        ClusterUnreachable: it does not answer.
    """
    account, rights = await asyncio.gather(
        _account(cluster), asyncio.gather(*(_answer(cluster, right) for right in (*RIGHTS, *CLUSTER_RIGHTS)))
    )
    quotas, limits = await asyncio.gather(_listed(cluster, "resourcequotas"), _listed(cluster, "limitranges"))
    report = ClusterReport(
        cluster.url,
        cluster.version,
        account,
        cluster.namespace,
        list(rights),
        [
            {"name": _name(each), **{key: (each.get("status") or {}).get(key) or {} for key in ("hard", "used")}}
            for each in quotas
        ],
        [{"name": _name(each), "limits": (each.get("spec") or {}).get("limits") or []} for each in limits],
    )
    for answer in report.rights:
        if answer.missing:
            _note_missing(report, answer)
    if not any("create" in answer.missing and answer.right.resource == "pods" for answer in report.rights):
        await _try_pod(cluster, pod, report)
    if cluster.version < TESTED_VERSION:
        report.notes.append(
            f"Kubernetes {_version_text(cluster.version)} is older than {_version_text(TESTED_VERSION)}, the oldest "
            "version with which torc is tested"
        )
    return report


def probe_pod(image: str) -> dict[str, Any]:
    """Return a pod with an image as that of a plain job."""
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": _PROBE, "labels": {"app.kubernetes.io/managed-by": "torc"}},
        "spec": {
            "restartPolicy": "Never",
            "automountServiceAccountToken": False,
            "containers": [{"name": "main", "image": image, "command": ["true"]}],
        },
    }


def _note_missing(report: ClusterReport, answer: RightAnswer) -> None:
    right = answer.right
    role = "Role" if right.namespaced else "ClusterRole"
    manifest = "role" if right.namespaced else "nodes-role"
    sentence = (
        f"the account may not {', '.join(answer.missing)} {right.resource}; torc needs this to {right.feature}: "
        f"the {role} in 'torc k8s manifests {manifest}' grants it"
    )
    (report.problems if right.required else report.notes).append(sentence)


async def _try_pod(cluster: Cluster, pod: dict[str, Any], report: ClusterReport) -> None:
    try:
        await cluster.create("pods", pod, dry_run=True)
    except ClusterUnreachable:
        raise
    except ClusterError as error:
        if error.status != 409:  # a pod of this name exists, so that the namespace accepts pods
            report.problems.append(f"a pod was refused in a trial: {error}")


async def _answer(cluster: Cluster, right: AccessRight) -> RightAnswer:
    allowed = await asyncio.gather(*(_is_allowed(cluster, right, verb) for verb in right.verbs))
    return RightAnswer(right, [verb for verb, is_allowed in zip(right.verbs, allowed, strict=True) if not is_allowed])


async def _is_allowed(cluster: Cluster, right: AccessRight, verb: str) -> bool:
    resource, _slash, subresource = right.resource.partition("/")
    asked = {"verb": verb, "resource": resource, "subresource": subresource}
    if right.namespaced:
        asked["namespace"] = cluster.namespace
    review = {
        "apiVersion": "authorization.k8s.io/v1",
        "kind": "SelfSubjectAccessReview",
        "spec": {"resourceAttributes": asked},
    }
    answer = await cluster.create("selfsubjectaccessreviews", review)
    return bool((answer.get("status") or {}).get("allowed"))


async def _account(cluster: Cluster) -> str:
    """Return the name of the account; clusters before 1.28 do not tell it."""
    review = {"apiVersion": "authentication.k8s.io/v1", "kind": "SelfSubjectReview"}
    try:
        answer = await cluster.create("selfsubjectreviews", review)
        return str(answer["status"]["userInfo"]["username"])
    except (ClusterError, KeyError, TypeError):
        return cluster.account


async def _listed(cluster: Cluster, kind: str) -> list[dict[str, Any]]:
    """Return the objects of a kind; none where the account may not list them."""
    try:
        return (await cluster.list(kind))[0]
    except ClusterUnreachable:
        raise
    except ClusterError:
        return []


def _name(found: dict[str, Any]) -> str:
    return str((found.get("metadata") or {}).get("name", ""))


def _version_text(version: tuple[int, int]) -> str:
    return ".".join(map(str, version))
