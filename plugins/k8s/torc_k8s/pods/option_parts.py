"""The parts of a Pod that follow from the options alone, for pods of attempts and of workers."""

from collections.abc import Iterator
from typing import Any, Final

from torc_framework.api import Resources
from torc_k8s.pods.pod_options import PodOptions
from torc_k8s.pods.quantities import bytes_quantity, size_quantity
from torc_k8s.pods.template import OWN_VOLUMES

GPU: Final = "nvidia.com/gpu"
SHM: Final = OWN_VOLUMES + "shm"
NO_MEMORY_BYTES: Final = 1024**2
"""A job that requests this much memory or less has not stated any: it is the default of resource requirements."""
DEFAULTS: Final = {"spec": {"enableServiceLinks": False, "automountServiceAccountToken": False}}
"""What a pod of torc has where neither the options nor the template say otherwise."""


def placement_fields(options: PodOptions) -> dict[str, Any]:
    """Return the fields of a Pod's spec on where it runs, under which account, and how it ends."""
    found: dict[str, Any] = {
        "terminationGracePeriodSeconds": options.grace_s,
        "serviceAccountName": options.service_account,
        "automountServiceAccountToken": True if options.service_account else None,
        "priorityClassName": options.priority_class,
        "nodeSelector": options.node_selector or None,
        "affinity": options.affinity or None,
        "tolerations": [each.as_dict() for each in options.tolerations or ()],
        "imagePullSecrets": [{"name": name} for name in options.pull_secrets or ()],
    }
    return {name: value for name, value in found.items() if value not in (None, [])}


def volumes(options: PodOptions) -> list[dict[str, Any]]:
    """Return the volumes of a Pod."""
    named = ({"name": _volume_name(place), **each.source()} for place, each in enumerate(options.volumes or ()))
    shared = {"name": SHM, "emptyDir": {"medium": "Memory", "sizeLimit": size_quantity(options.shm_size or "1")}}
    return [*named, *([shared] if options.shm_size else [])]


def mounts(options: PodOptions) -> list[dict[str, Any]]:
    """Return where a container has the volumes."""
    named = [each.mounted(_volume_name(place)) for place, each in enumerate(options.volumes or ())]
    return [*named, *([{"name": SHM, "mountPath": "/dev/shm"}] if options.shm_size else [])]


def _volume_name(place: int) -> str:
    return f"{OWN_VOLUMES}volume-{place}"


def secret_variables(options: PodOptions) -> Iterator[dict[str, Any]]:
    """Yield the variables whose values are in Secrets."""
    for name, reference in (options.env_from_secrets or {}).items():
        secret, _, key = reference.partition("/")
        yield {"name": name, "valueFrom": {"secretKeyRef": {"name": secret, "key": key}}}


def resource_fields(resources: Resources, options: PodOptions) -> dict[str, Any]:
    """Return requests and limits. A job without resource requirements, which have a run time, requests nothing."""
    requests: dict[str, str] = {}
    limits: dict[str, str] = {}
    if resources.runtime_s is not None:
        requests["cpu"] = str(resources.num_cpus)
        if options.cpu_limit != "none" and resources.num_cpus:
            limits["cpu"] = requests["cpu"]
        if resources.memory_bytes > NO_MEMORY_BYTES:
            requests["memory"] = limits["memory"] = bytes_quantity(resources.memory_bytes)
        if resources.num_gpus:
            limits[options.gpu_resource or GPU] = str(resources.num_gpus)
    if options.ephemeral_storage:
        limits["ephemeral-storage"] = size_quantity(options.ephemeral_storage)
        requests["ephemeral-storage"] = limits["ephemeral-storage"]
    return {name: value for name, value in (("requests", requests), ("limits", limits)) if value}
