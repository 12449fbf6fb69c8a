"""The executor plugin ``k8s``: attempts as pods of a Kubernetes cluster, and pods in which runners work."""

from collections.abc import Sequence

from torc_framework.api import Executor, hookimpl

__version__ = "0.1.0"


@hookimpl
def torc_executors() -> Sequence[type[Executor]]:
    """Offer the executor ``k8s``."""
    from torc_k8s.executor.k8s_executor import K8sExecutor

    return [K8sExecutor]
