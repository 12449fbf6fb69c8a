"""The executor ``k8s``."""

from typing import ClassVar

from torc_framework.api import Capabilities
from torc_k8s.executor.launcher import PodLauncher
from torc_k8s.workers.allocator import WorkerAllocator


class K8sExecutor(PodLauncher, WorkerAllocator):
    """Runs attempts as pods of a Kubernetes cluster, and starts pods in which runners work."""

    description: ClassVar[str] = "Pods of a Kubernetes cluster"
    capabilities: Capabilities = Capabilities(
        can_launch=True,
        can_allocate=True,
        survives_runner=True,
        limits_runtime=True,
        runs_containers=True,
        checks_outputs=True,
    )
