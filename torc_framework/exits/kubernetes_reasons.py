"""Reasons of Kubernetes for ended or waiting containers, failed pods and disruptions, and their exit classes.

Sources: Kubernetes documentation, "Pod Lifecycle" (container states, pod phase), "Disruptions" (pod disruption
conditions) and "Node-pressure Eviction".
"""

from collections.abc import Mapping
from typing import Final

from torc_framework.models.exits import ExitClass

_C = ExitClass
DISRUPTIONS: Final[Mapping[str, ExitClass]] = {
    "PreemptionByScheduler": _C.PREEMPTED,
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
    "OutOfcpu": _C.LAUNCH_FAILURE,
    "OutOfmemory": _C.LAUNCH_FAILURE,
    "OutOfpods": _C.LAUNCH_FAILURE,
}
"""Class by reason of a pod's status."""
CONTAINER_REASONS: Final[Mapping[str, ExitClass]] = {
    "OOMKilled": _C.OOM,
    "ContainerCannotRun": _C.LAUNCH_FAILURE,
    "StartError": _C.LAUNCH_FAILURE,
    "CreateContainerError": _C.LAUNCH_FAILURE,
    "CreateContainerConfigError": _C.LAUNCH_FAILURE,
    "RunContainerError": _C.LAUNCH_FAILURE,
    "DeadlineExceeded": _C.TIMEOUT,
    "ContainerStatusUnknown": _C.NODE_FAILURE,
    "ErrImagePull": _C.IMAGE_PULL,
    "ImagePullBackOff": _C.IMAGE_PULL,
    "ErrImageNeverPull": _C.IMAGE_PULL,
    "InvalidImageName": _C.IMAGE_PULL,
    "ImageInspectError": _C.IMAGE_PULL,
    "RegistryUnavailable": _C.IMAGE_PULL,
}
"""Class by reason of an ended or waiting container; for ``Error`` and ``Completed`` the code determines it."""
