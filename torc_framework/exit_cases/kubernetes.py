"""Cases of Kubernetes: the end of a pod, and whether its Job creates another one.

Sources: Kubernetes documentation, "Pod Lifecycle", "Disruptions" and "Jobs" (backoff limit, active deadline, pod
failure policy). A condition or reason of the cluster has precedence over exit codes; code 137 without the reason
``OOMKilled`` does not prove lack of memory.
"""

from collections.abc import Mapping, Sequence
from typing import Any, Final

from torc_framework.exit_cases.case_values import CaseValues
from torc_framework.exit_cases.pods import (
    conditions_of,
    containers_of,
    find_ignoring_case,
    implied_container,
    is_true,
    phase_of,
    pod_of,
)
from torc_framework.exits.kubernetes_reasons import CONTAINER_REASONS, DISRUPTIONS, POD_REASONS
from torc_framework.models.exits import ExitClass

_C = ExitClass
JOB_REASONS: Final[Mapping[str, ExitClass | None]] = {
    "DeadlineExceeded": _C.TIMEOUT,
    "BackoffLimitExceeded": None,
    "PodFailurePolicy": None,
    "FailedIndexes": None,
    "MaxFailedIndexesExceeded": None,
}
"""Class by reason of a Job's condition ``Failed``; None if its pods determine the class."""
JOB_STATUSES: Final[Mapping[str, str]] = {
    "Complete": "Complete",
    "SuccessCriteriaMet": "Complete",
    "Failed": "Failed",
    "FailureTarget": "Failed",
    "Suspended": "Suspended",
}
"""Status of a Job by its true condition."""
DEFAULT_BACKOFF_LIMIT: Final = 6
_STRONGEST_FIRST: Final = (_C.OOM, _C.TIMEOUT, _C.IMAGE_PULL, _C.LAUNCH_FAILURE, _C.NODE_FAILURE)


def _by_conditions(seen: CaseValues) -> ExitClass | None:
    conditions = [each for each in conditions_of(seen) if is_true(each)]
    for each in conditions:
        if each.get("type") == "DisruptionTarget":
            named: ExitClass | None = find_ignoring_case(DISRUPTIONS, each.get("reason"))
            return named or ExitClass.EVICTED
    for each in [*conditions, *_job_conditions(seen)]:
        if each.get("type") in ("Failed", "FailureTarget") and (
            why := find_ignoring_case(JOB_REASONS, each.get("reason"))
        ):
            by_job: ExitClass = why
            return by_job
    return None


def _job_conditions(seen: CaseValues) -> list[CaseValues]:
    """Return the true conditions of the pod's Job: from a list, or type and reason of a single one."""
    listed = conditions_of(seen, "job_conditions")
    if isinstance(seen.get("job_condition"), str):
        single = {"type": seen.get("job_condition"), "reason": seen.get("job_reason"), "status": "True"}
        listed = [*listed, CaseValues(f"{seen.name}.job_condition", single)]
    elif seen.has("job_condition"):
        listed = [*listed, CaseValues("job_condition", {"status": "True", **seen.object("job_condition").values})]
    return [each for each in listed if is_true(each)]


def _by_containers(containers: Sequence[CaseValues]) -> tuple[ExitClass | None, int | None]:
    """Return the class by the containers' reasons and codes, and the code that belongs to it."""
    named: dict[ExitClass, int | None] = {}
    codes: list[int] = []
    for each in containers:
        ended = each.object("terminated")
        code, signal = ended.ending()
        reason = str(ended.get("reason") or each.object("waiting").get("reason") or "")
        found: ExitClass | None = find_ignoring_case(CONTAINER_REASONS, reason)
        if found is None and (code or signal):
            found = ExitClass.LAUNCH_FAILURE if each.flag("init") else ExitClass.USER_ERROR
            found = ExitClass.SIGNALED if signal else found
        if found is not None:
            named[found] = max(named.get(found) or 0, code) if code is not None else named.get(found)
        if code is not None:
            codes.append(code)
    for strong in (*_STRONGEST_FIRST, ExitClass.SIGNALED, ExitClass.USER_ERROR):
        if strong in named:
            return strong, named[strong]
    return None, max(codes, default=None)


def classify(seen: CaseValues) -> dict[str, Any]:
    """Return the end of a pod: by its conditions, else by its reason, else by its containers."""
    seen = pod_of(seen)
    phase = phase_of(seen)
    by_containers, code = _by_containers(containers_of(seen) or [implied_container(seen)])
    if code is None:
        code = seen.ending()[0]
    by_reason: ExitClass | None = find_ignoring_case(POD_REASONS, seen.get("pod_reason", "podReason", "reason"))
    types = (str(each.get("type")) for each in _job_conditions(seen))
    of_job: str | None = next(filter(None, (find_ignoring_case(JOB_STATUSES, type_) for type_ in types)), None)
    named = _by_conditions(seen) or by_reason or by_containers or _by_phase(phase or of_job, code)
    return {"outcome": named, "status": phase or of_job, "exit": code, "action": "none"}


def _by_phase(phase: str | None, code: int | None) -> ExitClass | None:
    if phase in ("Succeeded", "Complete") or (phase in (None, "Failed") and code == 0):
        return ExitClass.SUCCESS
    if phase in ("Pending", "Running", "Suspended"):
        return None
    return ExitClass.NODE_FAILURE if phase == "Unknown" else ExitClass.UNKNOWN


# --- pod failure policy of a Job -------------------------------------------------------------------

_RULE_ACTIONS: Final = {"failjob": "fail", "failindex": "fail", "ignore": "retry", "count": None}


def decide_retry(seen: CaseValues, policy: CaseValues) -> dict[str, Any]:
    """Return the action of a Job after a failed pod: by its failure policy, else by its backoff limit."""
    answer = classify(seen)
    answer["rule_index"] = None
    if answer["outcome"] in (None, ExitClass.SUCCESS):
        return answer
    failed_before = seen.integer("failures", "failed", "retry_count", "retries") or 0
    limit = policy.integer("backoff_limit", "backoffLimit")
    for index, rule in enumerate(_rules(policy)):
        if _rule_matches(rule, seen, answer["exit"]):
            answer["rule_index"] = index
            action = _RULE_ACTIONS.get(str(rule.get("action")).lower())
            if action is not None:
                return answer | {"action": action}
            break
    is_within = failed_before < (DEFAULT_BACKOFF_LIMIT if limit is None else limit)
    return answer | {"action": "retry" if is_within else "fail"}


def _rules(policy: CaseValues) -> list[CaseValues]:
    written = policy.get("pod_failure_policy", "podFailurePolicy")
    holder = policy.object("pod_failure_policy", "podFailurePolicy") if isinstance(written, dict) else policy
    return holder.objects("rules", "pod_failure_policy", "podFailurePolicy")


def _rule_matches(rule: CaseValues, seen: CaseValues, code: int | None) -> bool:
    listed = rule.get("on_exit_codes", "onExitCodes")
    codes = (
        CaseValues(rule.name, {"values": listed})
        if isinstance(listed, list)
        else rule.object("on_exit_codes", "onExitCodes")
    )
    if codes.values:
        is_listed = str(code) in map(str, codes.items("values"))
        return code not in (None, 0) and is_listed == (str(codes.get("operator")).lower() != "notin")
    wanted = rule.objects("on_pod_conditions", "onPodConditions")
    there = {(each.get("type"), str(each.get("status")).lower()) for each in conditions_of(pod_of(seen))}
    return any((each.get("type"), str(each.get("status") or "True").lower()) in there for each in wanted)
