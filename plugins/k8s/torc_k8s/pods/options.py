"""The options of the executor ``k8s``."""

from typing import Any, Final

from attrs import define

from torc_framework.api import ConfigError, option
from torc_k8s.pods.names import name_problem
from torc_k8s.pods.option_texts import affinity, items, named, pairs, require_choice, tolerations, volumes
from torc_k8s.pods.pod_options import CPU_LIMITS, PULL_POLICIES, PodOptions
from torc_k8s.pods.template import load_template

KEEP_PODS: Final = ("none", "failed", "all")
_POSITIVE: Final = ("start_limit_s", "unschedulable_limit_s", "lost_after_s")
_TEXTS: Final = ("image", "service_account", "priority_class", "gpu_resource", "ephemeral_storage", "shm_size")
_PARSERS: Final[dict[str, Any]] = {
    "pull_secrets": items,
    "node_selector": pairs,
    "tolerations": tolerations,
    "affinity": affinity,
    "labels": pairs,
    "annotations": pairs,
    "volumes": volumes,
    "env": pairs,
    "env_from_secrets": pairs,
}


@define
class K8sOptions:
    """Which cluster runs jobs, what their pods are, and how long they may wait."""

    kubeconfig: str = option(
        "",
        "File that describes the cluster; without it: KUBECONFIG, ~/.kube/config, or the account of the pod in which "
        "torc runs.",
        metavar="FILE",
    )
    context: str = option("", "Context of the kubeconfig; its current one unless given.", metavar="NAME")
    namespace: str = option("", "Namespace of the pods; that of the context unless given.", metavar="NAME")
    image: str = option(
        "", "Container image of jobs that name none, such as python:3.12. It needs a /bin/sh.", metavar="IMAGE"
    )
    pull_policy: str = option(
        "",
        "When images are pulled: Always, IfNotPresent or Never; Kubernetes' own rule unless given.",
        metavar="POLICY",
    )
    pull_secrets: str = option("", "Secrets with which images are pulled, separated by commas.", metavar="NAMES")
    service_account: str = option(
        "", "Service account of the pods; its token is mounted only if this is given.", metavar="NAME"
    )
    node_selector: str = option("", "Labels that nodes must have, such as disk=ssd,zone=a.", metavar="LABELS")
    tolerations: str = option(
        "",
        "Taints of nodes that pods tolerate: KEY[=VALUE][:EFFECT[:SECONDS]], separated by commas; * is all of them.",
        metavar="TAINTS",
    )
    affinity: str = option(
        "", "Rules on nodes and other pods: the JSON of a Pod's spec.affinity in Kubernetes.", metavar="JSON"
    )
    priority_class: str = option("", "Priority class of the pods.", metavar="NAME")
    gpu_resource: str = option("nvidia.com/gpu", "Name of the resource that is a GPU.", metavar="NAME")
    cpu_limit: str = option(
        "request",
        "request: a job cannot use more CPUs than it requests; none: it may use idle ones.",
        metavar="MODE",
    )
    ephemeral_storage: str = option(
        "",
        "Disk for files in the container and in empty volumes, such as 20Gi; not limited unless given.",
        metavar="SIZE",
    )
    shm_size: str = option("", "Size of /dev/shm, such as 2Gi; it counts as memory of the job.", metavar="SIZE")
    working_dir: str = option(
        "", "Folder in the container in which commands begin; the image's own unless given.", metavar="DIR"
    )
    volumes: str = option(
        "",
        "Volumes, separated by commas: claim:NAME:/data, nfs:SERVER:/export:/data, host:/path:/data, empty:5Gi:/tmp, "
        "secret:NAME:/keys or config_map:NAME:/etc/app, each with :ro for reading only.",
        metavar="VOLUMES",
    )
    env: str = option("", "Variables of jobs, such as OMP_NUM_THREADS=4, separated by commas.", metavar="VARIABLES")
    env_from_secrets: str = option(
        "", "Variables from Secrets: NAME=SECRET/KEY, separated by commas.", metavar="VARIABLES"
    )
    labels: str = option("", "Further labels of the pods, such as team=blue.", metavar="LABELS")
    annotations: str = option("", "Further annotations of the pods, such as example.com/a=b.", metavar="ANNOTATIONS")
    pod_template: str = option(
        "", "File with a Pod in YAML into which each pod is merged: for everything that has no option.", metavar="FILE"
    )
    shell: str = option(
        "",
        "Shell in the container for jobs and workflows that name none, such as sh or 'bash -e'; bash unless given, sh "
        "where the image has no bash.",
        metavar="SHELL",
    )
    grace_s: int | None = option(
        None,
        "Seconds between SIGTERM and SIGKILL if the cluster or a person deletes a pod; Kubernetes' 30 unless given.",
        metavar="SECONDS",
    )
    keep_pods: str = option(
        "none", "Pods that stay in the cluster after their end is stored: none, failed or all.", metavar="WHICH"
    )
    max_pods: int = option(0, "Most pods that exist at once; 0 is no limit.", metavar="NUMBER")
    start_limit_s: float = option(
        600.0,
        "End a pod that cannot start by itself, such as for a missing image, after this time.",
        metavar="SECONDS",
    )
    unschedulable_limit_s: float = option(
        3600.0, "End a pod for which no node has room after this time.", metavar="SECONDS"
    )
    lost_after_s: float = option(
        300.0,
        "A node that is not ready for this time has lost its jobs: they run again on other nodes.",
        metavar="SECONDS",
    )
    log_wait_s: float = option(
        60.0,
        "Longest time for which a container with much output waits at its end until it has been read.",
        metavar="SECONDS",
    )
    worker_image: str = option(
        "", "Image of worker pods, in which runners run many jobs each; it has torc.", metavar="IMAGE"
    )
    worker_cpus: int = option(1, "CPUs of a worker pod.", metavar="N")
    worker_memory: str = option("2g", "Memory of a worker pod; its runner keeps 256 MiB of it.", metavar="SIZE")
    worker_gpus: int = option(0, "GPUs of a worker pod.", metavar="N")
    worker_walltime: str = option(
        "", "Longest life of a worker pod, ISO 8601, such as PT4H; not limited unless given.", metavar="TIME"
    )
    worker_output_dir: str = option(
        "",
        "Folder for logs in a worker pod, such as one on a volume; unless given, a folder that ends with the pod.",
        metavar="DIR",
    )
    worker_server_url: str = option(
        "", "URL at which worker pods reach the server, if it is another there than here.", metavar="URL"
    )

    def __attrs_post_init__(self) -> None:
        """Raise `ConfigError` for invalid values, before any request to the cluster."""
        require_choice("keep_pods", self.keep_pods, KEEP_PODS)
        require_choice("pull_policy", self.pull_policy, ("", *PULL_POLICIES))
        require_choice("cpu_limit", self.cpu_limit, CPU_LIMITS)
        for name in _POSITIVE:
            if not getattr(self, name) > 0:
                raise ConfigError(f"{name} of executor k8s is {getattr(self, name):g}; it must be greater than 0")
        for name in ("max_pods", "log_wait_s"):
            if not getattr(self, name) >= 0:
                raise ConfigError(f"{name} of executor k8s is {getattr(self, name):g}; it must not be below 0")
        if self.namespace and (problem := name_problem(self.namespace)):
            raise ConfigError(f"namespace of executor k8s: {problem}")
        self.pod_options()
        if self.pod_template:
            load_template(self.pod_template)

    def pod_options(self) -> PodOptions:
        """Return what the options say about pods, in the form in which jobs say it.

        Raises:
            ConfigError: a text is malformed.
        """
        values = {name: named(name, parse, getattr(self, name)) for name, parse in _PARSERS.items()}
        texts: dict[str, Any] = {
            name: getattr(self, name) or None
            for name in (*_TEXTS, "working_dir", "pod_template", "pull_policy", "cpu_limit")
        }
        try:
            return PodOptions(grace_s=self.grace_s, **values, **texts)
        except ConfigError as error:
            raise ConfigError(f"option of executor k8s: {error}") from None
