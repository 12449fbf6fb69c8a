"""Reasons of Kubernetes for ended or waiting containers, failed pods and disruptions, and their exit classes.

Sources: Kubernetes documentation, "Pod Lifecycle" (container states, pod phase), "Disruptions" (pod disruption
conditions) and "Node-pressure Eviction"; the reasons in the source of its kubelet (``lifecycle/predicate.go``,
``images/types.go``), scheduler and controllers, release 1.20 and 1.34.
"""

from collections.abc import Mapping
from typing import Final

from torc_framework.models.exits import ExitClass

_C = ExitClass
DISRUPTIONS: Final[Mapping[str, ExitClass]] = {
    "PreemptionByScheduler": _C.PREEMPTED,
    "PreemptionByKubeScheduler": _C.PREEMPTED,
    "EvictionByEvictionAPI": _C.EVICTED,
    "DeletionByTaintManager": _C.EVICTED,
    "DeletionByPodGC": _C.NODE_FAILURE,
    "TerminationByKubelet": _C.EVICTED,
}
"""Class by reason of the condition ``DisruptionTarget``."""
POD_REASONS: Final[Mapping[str, ExitClass]] = {
    "Evicted": _C.EVICTED,
    "DeadlineExceeded": _C.TIMEOUT,
    "Preempting": _C.PREEMPTED,
    "Preempted": _C.PREEMPTED,
    "NodeLost": _C.NODE_FAILURE,
    "NodeShutdown": _C.EVICTED,
    "Terminated": _C.EVICTED,
    "Shutdown": _C.EVICTED,
    "UnexpectedAdmissionError": _C.NODE_FAILURE,
    "StartError": _C.LAUNCH_FAILURE,
    "NodeAffinity": _C.LAUNCH_FAILURE,
    "NodePorts": _C.LAUNCH_FAILURE,
    "TopologyAffinityError": _C.LAUNCH_FAILURE,
    "SysctlForbidden": _C.LAUNCH_FAILURE,
    "AppArmor": _C.LAUNCH_FAILURE,
    "PodOSSelectorNodeLabelDoesNotMatch": _C.LAUNCH_FAILURE,
    "PodOSNotSupported": _C.LAUNCH_FAILURE,
    "OutOfcpu": _C.LAUNCH_FAILURE,
    "OutOfmemory": _C.LAUNCH_FAILURE,
    "OutOfpods": _C.LAUNCH_FAILURE,
    "OutOfephemeral-storage": _C.LAUNCH_FAILURE,
}
"""Class by reason of a pod's status."""
POD_MARKS: Final[Mapping[str, ExitClass]] = {
    "TaintManagerEviction": _C.EVICTED,
    "NodeNotReady": _C.NODE_FAILURE,
    "DisruptionTarget": _C.EVICTED,
    "Deleted": _C.EVICTED,
}
"""Class by reason of an event about a pod, by the condition ``DisruptionTarget`` if its reason is not known, and by
``Deleted``, which stands for a deletion from outside without any reason."""
CONTAINER_REASONS: Final[Mapping[str, ExitClass]] = {
    "OOMKilled": _C.OOM,
    "ContainerCannotRun": _C.LAUNCH_FAILURE,
    "StartError": _C.LAUNCH_FAILURE,
    "CreateContainerError": _C.LAUNCH_FAILURE,
    "CreateContainerConfigError": _C.LAUNCH_FAILURE,
    "RunContainerError": _C.LAUNCH_FAILURE,
    "PreCreateHookError": _C.LAUNCH_FAILURE,
    "PreStartHookError": _C.LAUNCH_FAILURE,
    "PostStartHookError": _C.LAUNCH_FAILURE,
    "DeadlineExceeded": _C.TIMEOUT,
    "ContainerStatusUnknown": _C.NODE_FAILURE,
    "ErrImagePull": _C.IMAGE_PULL,
    "ImagePullBackOff": _C.IMAGE_PULL,
    "ErrImageNeverPull": _C.IMAGE_PULL,
    "InvalidImageName": _C.IMAGE_PULL,
    "ImageInspectError": _C.IMAGE_PULL,
    "RegistryUnavailable": _C.IMAGE_PULL,
    "SignatureValidationFailed": _C.IMAGE_PULL,
}
"""Class by reason of an ended or waiting container; for ``Error`` and ``Completed`` the code determines it."""
