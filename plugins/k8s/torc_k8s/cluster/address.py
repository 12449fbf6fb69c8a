"""Which cluster, by which account, and in which namespace."""

from attrs import frozen


@frozen
class ClusterAddress:
    """How to reach a cluster.

    Args:
        kubeconfig: Path of a kubeconfig; empty for the files of ``KUBECONFIG``, else ``~/.kube/config``, else the
            account of the pod in which the process runs.
        context: The context in the kubeconfig; empty for its current one.
        namespace: The namespace; empty for that of the context or of the pod's account, else ``default``.
    """

    kubeconfig: str = ""
    context: str = ""
    namespace: str = ""
