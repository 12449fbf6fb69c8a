"""The executor plugin ``k8s``: attempts as pods of a Kubernetes cluster, and pods in which runners work."""

__version__ = "0.1.0"
