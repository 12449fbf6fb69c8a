"""The pods in which runners work: names, specifications and Secrets."""

import hashlib
from collections.abc import Mapping
from typing import Any, Final

from attrs import evolve, frozen

from torc_framework.api import ALLOCATION_VARIABLE, AllocationRequest
from torc_k8s.container.program import escape
from torc_k8s.pods.merge import merge
from torc_k8s.pods.names import MAIN, MANAGED_BY, WORKFLOW
from torc_k8s.pods.option_parts import (
    DEFAULTS,
    mounts,
    placement_fields,
    resource_fields,
    secret_variables,
    volumes,
)
from torc_k8s.pods.pod_options import PodOptions
from torc_k8s.pods.template import OWN_VOLUMES, PodTemplate
from torc_k8s.workers.worker_options import FOLDER, STOP_S, WorkerShape

REQUEST: Final = "torc-request"
"""Label of worker pods: the request that they came of. Names of requests are no values of labels, their digests are."""
_WORK: Final = OWN_VOLUMES + "work"
_RESERVED: Final = frozenset({ALLOCATION_VARIABLE, "HOME"})


def request_label(name: str) -> str:
    """Return the value of `REQUEST` for a request."""
    return hashlib.sha256(name.encode()).hexdigest()[:16]


def selector(workflow_id: int) -> str:
    """Return the label selector of a workflow's worker pods."""
    return f"{MANAGED_BY}=torc,{WORKFLOW}={workflow_id},{REQUEST}"


@frozen
class WorkerPlan:
    """Everything that determines the worker pods of a request.

    Attributes:
        workflow_id: The workflow.
        namespace: Namespace of the pods.
        request: The request.
        shape: Size and image.
        options: What the run's options say about pods.
        template: The Pod into which these are merged; None if there is none.
    """

    workflow_id: int
    namespace: str
    request: AllocationRequest
    shape: WorkerShape
    options: PodOptions
    template: PodTemplate | None = None

    def name(self, number: int) -> str:
        """Return the name of a pod, which is the same whenever it is asked for.

        Args:
            number: Number of the pod within the request, from 1.
        """
        return f"torc-worker-wf{self.workflow_id}-{request_label(self.request.name)[:10]}-{number}"

    @property
    def labels(self) -> dict[str, str]:
        """The labels by which the pods are found again."""
        return {MANAGED_BY: "torc", WORKFLOW: str(self.workflow_id), REQUEST: request_label(self.request.name)}

    def pod(self, number: int) -> dict[str, Any]:
        """Return a pod as it is sent to the cluster."""
        options = evolve(self.options, grace_s=max(self.options.grace_s or 0, STOP_S))
        spec: dict[str, Any] = {
            "restartPolicy": "Never",
            "containers": [self._container(number)],
            "volumes": [{"name": _WORK, "emptyDir": {}}, *volumes(options)],
            **placement_fields(options),
        }
        if self.shape.deadline_s is not None:
            spec["activeDeadlineSeconds"] = self.shape.deadline_s
        metadata = {
            "name": self.name(number),
            "namespace": self.namespace,
            "labels": {**(options.labels or {}), **self.labels},
            "annotations": dict(options.annotations or {}),
        }
        ours = {"metadata": metadata, "spec": spec}
        pod = merge(DEFAULTS, ours if self.template is None else merge(self.template.pod, ours))
        return {"apiVersion": "v1", "kind": "Pod", **pod}

    def _container(self, number: int) -> dict[str, Any]:
        options = self.options
        variables = {"HOME": FOLDER, **(options.env or {}), ALLOCATION_VARIABLE: f"k8s:{self.name(number)}"}
        found: dict[str, Any] = {
            "name": MAIN,
            "image": self.shape.image,
            "imagePullPolicy": options.pull_policy,
            "command": [escape(word) for word in self.request.runner_command],
            "workingDir": options.working_dir or FOLDER,
            "env": [
                *({"name": name, "value": escape(value)} for name, value in variables.items()),
                *secret_variables(options),
            ],
            "resources": resource_fields(self.shape.resources, options),
            "volumeMounts": [{"name": _WORK, "mountPath": FOLDER}, *mounts(options)],
        }
        if self.request.environment:
            found["envFrom"] = [{"secretRef": {"name": self.name(number)}}]
        return {name: value for name, value in found.items() if value is not None}

    def secret(self, pod: Mapping[str, Any]) -> dict[str, Any]:
        """Return the Secret with the variables of a pod's runner; it goes when the pod is deleted.

        Args:
            pod: The pod as the cluster stored it.
        """
        metadata = pod["metadata"]
        owner = {"apiVersion": "v1", "kind": "Pod", "name": metadata["name"], "uid": metadata["uid"]}
        variables = {name: text for name, text in self.request.environment.items() if name not in _RESERVED}
        if self.shape.server_url:
            variables["TORC_API_URL"] = self.shape.server_url
        return {
            "apiVersion": "v1",
            "kind": "Secret",
            "metadata": {"name": metadata["name"], "labels": self.labels, "ownerReferences": [owner]},
            "stringData": variables,
        }
