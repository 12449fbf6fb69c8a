"""The rights that torc uses in a namespace, each with the feature that needs it.

This table is the only one: the Role in ``manifests/role`` has exactly these verbs, and ``torc k8s check`` asks the
cluster for each of them.
"""

from typing import Final

from attrs import frozen


@frozen
class AccessRight:
    """The right to use some verbs on one resource.

    Attributes:
        resource: Name of the resource as Roles have it: ``pods``, ``pods/log``. All are of the core group ``""``.
        verbs: The verbs, as Roles have them.
        feature: What torc does with it, for people; it completes "torc needs this to ...".
        namespaced: The resource is in a namespace; otherwise only a ClusterRole gives the right.
        required: Nothing works without it. Without one that is not required the feature is missing.
    """

    resource: str
    verbs: tuple[str, ...]
    feature: str
    namespaced: bool = True
    required: bool = True


RIGHTS: Final = (
    AccessRight(
        "pods",
        ("create", "get", "list", "watch", "patch", "delete", "deletecollection"),
        "start pods, follow them, and remove them when their ends are stored",
    ),
    AccessRight("pods/log", ("get",), "read what jobs print"),
    AccessRight("configmaps", ("create", "get", "list", "delete"), "own what a runner started, so that it is removed"),
    AccessRight("secrets", ("create", "delete"), "pass the access to the server to pods"),
    AccessRight("events", ("list",), "say why a pod does not start", required=False),
    AccessRight("limitranges", ("list",), "keep requests within the limits of the namespace", required=False),
    AccessRight("resourcequotas", ("list",), "keep requests within the quota of the namespace", required=False),
)
"""What the Role gives."""

CLUSTER_RIGHTS: Final = (
    AccessRight(
        "nodes",
        ("get", "list"),
        "keep requests within the largest node",
        namespaced=False,
        required=False,
    ),
)
"""What the optional ClusterRole gives."""
