"""Kubernetes: check the cluster, start pods that run jobs, remove what is left."""

from torc_framework.api.commands import CommandGroup
from torc_k8s.commands import check, clean, groups, manifests, profile, schedule_nodes

app = CommandGroup(
    """Kubernetes: check the cluster, start pods that run jobs, remove what is left.

    Examples:
        torc k8s check
        torc k8s groups 42
        torc k8s clean 42
        torc k8s schedule-nodes 12 --num 4
    """
)
check.register(app)
clean.register(app)
groups.register(app)
schedule_nodes.register(app)
profile.register(app)
manifests.register(app)
