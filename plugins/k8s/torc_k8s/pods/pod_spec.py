"""The Pod of an attempt, as it is sent to the cluster.

Sources: Kubernetes API reference, "Pod"; Kubernetes documentation, "Owners and Dependents" and "Finalizers".
"""

import json
import math
import os
from collections.abc import Iterator, Mapping
from typing import Any, Final

from attrs import field, frozen

from torc_framework.api import Attempt, ConfigError, LaunchError, size_text
from torc_k8s.container import MOUNTS, VOLUMES, ContainerJob, escape, program_arguments
from torc_k8s.pods.merge import merge
from torc_k8s.pods.names import FINALIZER, JOB_NAME, MAIN, STDERR, STDOUT, pod_labels, pod_name
from torc_k8s.pods.option_parts import DEFAULTS, mounts, placement_fields, resource_fields, secret_variables, volumes
from torc_k8s.pods.pod_options import PodOptions
from torc_k8s.pods.template import PodTemplate

MAX_POD_BYTES: Final = 1536 * 1024 - 64 * 1024
"""The store of Kubernetes refuses objects above 1.5 MiB; the status of the pod needs some of it."""
MAX_VARIABLE_BYTES: Final = 128 * 1024 - 1
"""Linux starts no program with a longer argument or variable (``MAX_ARG_STRLEN``)."""
_OF_OTHER_MACHINES: Final = frozenset({"CUDA_VISIBLE_DEVICES"})
"""Variables that the runner sets for processes of its own machine: in a pod the device plugin chooses the GPUs."""

_OF_LOST_NODES: Final = ("node.kubernetes.io/not-ready", "node.kubernetes.io/unreachable")
"""Taints that the cluster gives to nodes that do not report; the second one to nodes that are cut off."""
_EXECUTE: Final = "NoExecute"


@frozen(kw_only=True)
class PodPlan:
    """Everything that determines the pod of an attempt.

    Attributes:
        scope: Identifies the runner; part of the pod's name.
        workflow_id: The workflow.
        namespace: Namespace of the pod.
        attempt: The attempt.
        options: What the run's options say about pods (`K8sOptions.pod_options`).
        template: The Pod into which this one is merged; None if there is none.
        owner: Owner reference of the object that removes what is left of the runner; None if there is none.
        secret: Name of the Secret whose keys become variables of the job; empty if there is none.
        secret_names: Names of variables that are in this Secret; they are left out of the pod.
        environment: Further variables, such as those of a group's member.
        command: Command instead of that of the attempt, for a member of a group; None is the attempt's.
        limit_s: Run time after which the container ends the job; None is no limit.
        headroom_s: Seconds from SIGTERM to SIGKILL at the limit.
        lost_after_s: After this time the cluster deletes the pod from a node that is not ready; None: after 300.
        log_wait_s: Longest time that the container waits at its end until its output has been read.
        waits_for_go: The command begins when the launcher writes the addresses of all members.
        member: Rank within the attempt's group.
        retry: How often this member was started again within the attempt.
    """

    scope: str
    workflow_id: int
    namespace: str
    attempt: Attempt
    options: PodOptions = field(factory=PodOptions)
    template: PodTemplate | None = None
    owner: Mapping[str, Any] | None = None
    secret: str = ""
    secret_names: frozenset[str] = frozenset()
    environment: Mapping[str, str] = field(factory=dict)
    command: str | None = None
    limit_s: float | None = None
    headroom_s: float = 30.0
    lost_after_s: float | None = None
    log_wait_s: float = 60.0
    waits_for_go: bool = False
    member: int = 0
    retry: int = 0


def options_of(attempt: Attempt, run: PodOptions) -> PodOptions:
    """Return the options of an attempt's pod: those of the job, its short form ``container``, then those of the run.

    Raises:
        LaunchError: the job's container is no name of an image.
    """
    try:
        named = PodOptions(image=attempt.container or None)
    except ConfigError as error:
        raise LaunchError(f"container: {error}") from None
    own = attempt.options if isinstance(attempt.options, PodOptions) else PodOptions()
    return own.over(named.over(run))


def build_pod(plan: PodPlan) -> dict[str, Any]:
    """Return the Pod of an attempt as JSON values; the same plan gives the same pod.

    Raises:
        LaunchError: the job names no image, or the pod is too large for Kubernetes.
    """
    options = options_of(plan.attempt, plan.options)
    ours = {"metadata": _metadata(plan, options), "spec": _spec(plan, options)}
    pod = merge(DEFAULTS, merge(plan.template.pod, ours) if plan.template is not None else ours)
    if plan.lost_after_s is not None:
        _leave_lost_nodes(pod["spec"], plan.lost_after_s)
    main = pod["spec"]["containers"][0]
    if not main.get("image"):
        raise LaunchError(
            "the job names no container image: give 'container: IMAGE' of the job, --image of the run, or image in "
            "section [executor.k8s] of the configuration"
        )
    _check_sizes(pod, main)
    return {"apiVersion": "v1", "kind": "Pod", **pod}


def _metadata(plan: PodPlan, options: PodOptions) -> dict[str, Any]:
    attempt = plan.attempt
    labels = pod_labels(plan.scope, plan.workflow_id, attempt.key, plan.member, plan.retry)
    annotations = {JOB_NAME: attempt.job_name, STDOUT: attempt.stdout_path, STDERR: attempt.stderr_path}
    found: dict[str, Any] = {
        "name": pod_name(plan.scope, attempt.key, plan.member, plan.retry),
        "namespace": plan.namespace,
        "labels": {**(options.labels or {}), **labels},
        "annotations": {**(options.annotations or {}), **annotations},
        "finalizers": [FINALIZER],
    }
    return found | ({"ownerReferences": [dict(plan.owner)]} if plan.owner is not None else {})


def _spec(plan: PodPlan, options: PodOptions) -> dict[str, Any]:
    return {
        "restartPolicy": "Never",
        "containers": [_container(plan, options)],
        "volumes": [*VOLUMES, *volumes(options)],
        **placement_fields(options),
    }


def _container(plan: PodPlan, options: PodOptions) -> dict[str, Any]:
    attempt = plan.attempt
    job = ContainerJob(
        command=attempt.command if plan.command is None else plan.command,
        shell=attempt.shell,
        working_dir=options.working_dir or "",
        outputs=attempt.outputs,
        limit_s=plan.limit_s,
        headroom_s=plan.headroom_s,
        log_wait_s=plan.log_wait_s,
        waits_for_go=plan.waits_for_go,
        rank=plan.member,
        keeps_stdout=attempt.stdout_path != os.devnull,
        keeps_stderr=attempt.stderr_path != os.devnull,
        joins_streams=attempt.stderr_path == attempt.stdout_path,
    )
    found: dict[str, Any] = {
        "name": MAIN,
        "image": options.image,
        "imagePullPolicy": options.pull_policy,
        "command": program_arguments(job),
        "env": list(_environment(plan, options)),
        "envFrom": [{"secretRef": {"name": plan.secret}}] if plan.secret else None,
        "resources": resource_fields(attempt.resources, options) or None,
        "volumeMounts": [*MOUNTS, *mounts(options)],
    }
    return {name: value for name, value in found.items() if value is not None}


def _environment(plan: PodPlan, options: PodOptions) -> Iterator[dict[str, Any]]:
    """Yield the variables: those of torc, then those of the options. `escape` keeps their values as they are."""
    left_out = plan.secret_names | _OF_OTHER_MACHINES
    given = {name: text for name, text in plan.attempt.environment.items() if name not in left_out}
    for name, text in {**given, **(options.env or {}), **plan.environment}.items():
        yield {"name": name, "value": escape(text)}
    yield from secret_variables(options)


def _leave_lost_nodes(spec: dict[str, Any], lost_after_s: float) -> None:
    """Have the cluster delete the pod from a node that has not been ready for this time.

    Tolerations of the options and of the template that concern these taints stay as they are; Kubernetes itself adds
    its 300 seconds by the same rule (admission plugin DefaultTolerationSeconds).
    """
    given = spec.get("tolerations") or []
    for key in _OF_LOST_NODES:
        if not any(each.get("key") in (None, "", key) and each.get("effect") in (None, "", _EXECUTE) for each in given):
            limit = {"key": key, "operator": "Exists", "effect": _EXECUTE, "tolerationSeconds": math.ceil(lost_after_s)}
            given = [*given, limit]
    spec["tolerations"] = given


def _check_sizes(pod: Mapping[str, Any], main: Mapping[str, Any]) -> None:
    for variable in main.get("env", ()):
        size = len(variable["name"].encode()) + len(str(variable.get("value", "")).encode(errors="surrogateescape")) + 1
        if size > MAX_VARIABLE_BYTES:
            raise LaunchError(
                f"the variable {variable['name']} has {size_text(size)}, and Linux starts no program with one above "
                f"{size_text(MAX_VARIABLE_BYTES)}: pass the value in a file"
            )
    size = len(json.dumps(pod, ensure_ascii=False).encode(errors="surrogateescape"))
    if size > MAX_POD_BYTES:
        raise LaunchError(
            f"the pod has {size_text(size)}, and Kubernetes stores at most {size_text(MAX_POD_BYTES)}: put the command "
            "into a script on a volume or in the image"
        )
