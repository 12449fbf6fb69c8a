"""Words of Kubernetes: why containers wait or ended, why pods failed, why they were disrupted.

Sources: Kubernetes documentation, "Pod Lifecycle" (container states, pod phase), "Disruptions"
(pod disruption conditions), "Node-pressure Eviction", "Jobs" (backoff limit, active deadline, pod
failure policy). A condition or reason is the cluster's own word and outweighs any code; a code of
137 without the reason ``OOMKilled`` proves nothing.
"""

from collections.abc import Mapping, Sequence
from typing import Any, Final

from torc_framework.exits.facts import Facts
from torc_framework.models.exits import ExitClass

_C = ExitClass
DISRUPTIONS: Final[Mapping[str, ExitClass]] = {
    "PreemptionByScheduler": _C.PREEMPTED,
    "EvictionByEvictionAPI": _C.EVICTED,
    "DeletionByTaintManager": _C.EVICTED,
    "DeletionByPodGC": _C.NODE_FAILURE,
    "TerminationByKubelet": _C.EVICTED,
}
"""Reasons of the condition ``DisruptionTarget``."""
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
"""Reasons of a pod's status."""
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
"""Reasons for which containers end or wait; ``Error`` and ``Completed`` leave it to the code."""
JOB_REASONS: Final[Mapping[str, ExitClass | None]] = {
    "DeadlineExceeded": _C.TIMEOUT,
    "BackoffLimitExceeded": None,
    "PodFailurePolicy": None,
}
"""Reasons of a Job's condition ``Failed``; None leaves it to the pods."""
DEFAULT_BACKOFF_LIMIT: Final = 6
_STRONGEST_FIRST: Final = (_C.OOM, _C.TIMEOUT, _C.IMAGE_PULL, _C.LAUNCH_FAILURE, _C.NODE_FAILURE)


def _is_true(condition: Facts) -> bool:
    return condition.get("status") in ("True", True)


def _by_conditions(seen: Facts) -> ExitClass | None:
    conditions = [each for each in seen.objects("conditions", "pod_conditions") if _is_true(each)]
    for each in conditions:
        if each.get("type") == "DisruptionTarget":
            return DISRUPTIONS.get(str(each.get("reason")), ExitClass.EVICTED)
    for each in [*conditions, *(one for one in seen.objects("job_conditions") if _is_true(one))]:
        if each.get("type") in ("Failed", "FailureTarget") and (named := JOB_REASONS.get(str(each.get("reason")))):
            return named
    return None


def _containers(seen: Facts) -> list[Facts]:
    first = [Facts(each.name, {**each.values, "init": True}) for each in seen.objects("init_containers")]
    return [*seen.objects("containers"), *first]


def _by_containers(containers: Sequence[Facts]) -> tuple[ExitClass | None, int | None]:
    """Return what the containers' reasons and codes say, and the code that goes with it."""
    named: dict[ExitClass, int | None] = {}
    codes: list[int] = []
    for each in containers:
        ended = each.object("terminated")
        code = ended.integer("exit_code", "exitCode")
        reason = str(ended.get("reason") or each.object("waiting").get("reason") or "")
        found = CONTAINER_REASONS.get(reason)
        if found is None and code:
            found = ExitClass.LAUNCH_FAILURE if each.flag("init") else ExitClass.USER_ERROR
            found = ExitClass.SIGNALED if ended.integer("signal") else found
        if found is not None:
            named[found] = max(named.get(found) or 0, code) if code is not None else named.get(found)
        if code is not None:
            codes.append(code)
    for strong in (*_STRONGEST_FIRST, ExitClass.SIGNALED, ExitClass.USER_ERROR):
        if strong in named:
            return strong, named[strong]
    return None, max(codes, default=None)


def classify(seen: Facts) -> dict[str, Any]:
    """Answer what a pod's ending was: conditions, then the pod's reason, then its containers."""
    phase = seen.text("pod_phase", "phase")
    by_containers, code = _by_containers(_containers(seen))
    if code is None:
        code = seen.integer("exit_code")
        if by_containers is None and code:
            by_containers = CONTAINER_REASONS.get(str(seen.get("reason")), ExitClass.USER_ERROR)
    by_reason = POD_REASONS.get(str(seen.get("pod_reason")))
    named = _by_conditions(seen) or by_reason or by_containers or _by_phase(phase, code)
    job_failed = any(each.get("type") == "Failed" for each in seen.objects("job_conditions"))
    return {"outcome": named, "status": phase or ("Failed" if job_failed else None), "exit": code, "action": "none"}


def _by_phase(phase: str | None, code: int | None) -> ExitClass | None:
    if phase == "Succeeded" or (phase in (None, "Failed") and code == 0):
        return ExitClass.SUCCESS
    if phase in ("Pending", "Running"):
        return None
    return ExitClass.NODE_FAILURE if phase == "Unknown" else ExitClass.UNKNOWN


# --- what a Job does next --------------------------------------------------------------------------

_RULE_ACTIONS: Final = {"FailJob": "fail", "FailIndex": "fail", "Ignore": "retry", "Count": None}


def decide_retry(seen: Facts, policy: Facts) -> dict[str, Any]:
    """Answer what a Job does about a failed pod: its failure policy in order, then its backoff limit."""
    answer = classify(seen)
    answer["rule_index"] = None
    if answer["outcome"] in (None, ExitClass.SUCCESS):
        return answer
    failed_before = seen.integer("failures", "failed", "retry_count", "retries") or 0
    limit = policy.integer("backoff_limit", "backoffLimit")
    for index, rule in enumerate(_rules(policy)):
        if _rule_matches(rule, seen, answer["exit"]):
            answer["rule_index"] = index
            action = _RULE_ACTIONS.get(str(rule.get("action")))
            if action is not None:
                return answer | {"action": action}
            break
    is_within = failed_before < (DEFAULT_BACKOFF_LIMIT if limit is None else limit)
    return answer | {"action": "retry" if is_within else "fail"}


def _rules(policy: Facts) -> list[Facts]:
    written = policy.get("pod_failure_policy", "podFailurePolicy")
    holder = policy.object("pod_failure_policy", "podFailurePolicy") if isinstance(written, dict) else policy
    return holder.objects("rules", "pod_failure_policy", "podFailurePolicy")


def _rule_matches(rule: Facts, seen: Facts, code: int | None) -> bool:
    codes = rule.object("on_exit_codes", "onExitCodes")
    if codes.values:
        is_listed = code in codes.items("values")
        return code not in (None, 0) and is_listed == (codes.get("operator") != "NotIn")
    wanted = rule.objects("on_pod_conditions", "onPodConditions")
    there = {(each.get("type"), str(each.get("status"))) for each in seen.objects("conditions", "pod_conditions")}
    return any((each.get("type"), str(each.get("status") or "True")) in there for each in wanted)
