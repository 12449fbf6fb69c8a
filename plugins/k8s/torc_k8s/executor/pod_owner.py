"""The ConfigMap that owns all that a runner creates, so that one deletion removes it, and the Secret of its pods."""

from typing import Any

from torc_framework.api import RunnerContext
from torc_k8s.cluster import Cluster, ClusterError
from torc_k8s.executor.names import new_scope, owner_name
from torc_k8s.pods.names import MANAGED_BY, SCOPE, WORKFLOW


def owner_body(scope: str, context: RunnerContext) -> dict[str, Any]:
    """Return the ConfigMap: what it says is for people who look at the cluster."""
    return {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": owner_name(scope), "labels": _labels(scope, context)},
        "data": {"runner-host": context.hostname, "output-dir": context.output_dir, "run": str(context.run_id)},
    }


def secret_body(scope: str, context: RunnerContext, owner: dict[str, Any]) -> dict[str, Any]:
    """Return the Secret with the variables by which jobs reach the server."""
    return {
        "apiVersion": "v1",
        "kind": "Secret",
        "metadata": {
            "name": owner_name(scope),
            "labels": _labels(scope, context),
            "ownerReferences": [owner_reference(owner)],
        },
        "stringData": dict(context.server_environment),
    }


def owner_reference(owner: dict[str, Any]) -> dict[str, Any]:
    """Return the reference to an owner that exists."""
    metadata = owner["metadata"]
    return {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "name": metadata["name"],
        "uid": metadata["uid"],
        "blockOwnerDeletion": False,
    }


async def require_owner_right(cluster: Cluster) -> None:
    """Ask whether the account may create an owner; nothing is created.

    Raises:
        ClusterUnreachable: the cluster does not answer.
        ClusterError: it refuses.
    """
    document = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": owner_name(new_scope())}}
    await cluster.create("configmaps", document, dry_run=True)


def _labels(scope: str, context: RunnerContext) -> dict[str, str]:
    return {MANAGED_BY: "torc", SCOPE: scope, WORKFLOW: str(context.workflow_id)}


async def create_owner(cluster: Cluster, scope: str, context: RunnerContext) -> dict[str, Any]:
    """Create the owner and the Secret, or take those that an earlier request has created; return the owner.

    Raises:
        ClusterUnreachable: the cluster does not answer; the call can be repeated.
        ClusterError: it refuses.
    """
    try:
        owner = await cluster.create("configmaps", owner_body(scope, context))
    except ClusterError as error:
        if error.status != 409:
            raise
        owner = await cluster.get("configmaps", owner_name(scope))
    if context.server_environment:
        try:
            await cluster.create("secrets", secret_body(scope, context, owner))
        except ClusterError as error:
            if error.status != 409:
                raise
    return owner
