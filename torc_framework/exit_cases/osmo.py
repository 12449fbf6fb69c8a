"""Cases of OSMO tasks: status, code and class of a task by its pod, and the effect of exit actions on it.

Sources: NVIDIA OSMO, user guide, "Exit Codes" and "Task Lifecycle"; its backend listener (pod status) for offsets,
waiting codes and the order of the checks. The code of a pod is the largest code of its containers, each with the
offset of its kind added.
"""

import json
import re
from typing import Any, Final

from torc_framework.exit_cases.case_values import CaseError, CaseValues
from torc_framework.exit_cases.pods import conditions_of, containers_of, find_ignoring_case, is_true, phase_of, pod_of
from torc_framework.exits.kubernetes_reasons import CONTAINER_REASONS
from torc_framework.exits.osmo_codes import (
    STATUS_CODES,
    STATUSES,
    accepts_report,
    class_of,
    is_failed,
    status_of_code,
)
from torc_framework.exits.osmo_exit_actions import ACTIONS, exit_action_problems, match_exit_actions
from torc_framework.models.exits import ExitClass

_C = ExitClass

INIT_OFFSET: Final = 255
PREFLIGHT_OFFSET: Final = 1000
CONTROL_OFFSET: Final = 2000


STATUSES_WITHOUT_ACTION: Final = frozenset(
    {"FAILED_UPSTREAM", "FAILED_SERVER_ERROR", "FAILED_CANCELED", "FAILED_EXEC_TIMEOUT", "FAILED_QUEUE_TIMEOUT"}
)
"""Statuses to which exit actions do not apply."""


# --- from a pod to a task --------------------------------------------------------------------------

CONTROL: Final = "osmo-ctrl"
_PHASES: Final = {
    "Pending": "SCHEDULING",
    "Running": "RUNNING",
    "Succeeded": "COMPLETED",
    "Failed": "FAILED",
    "StartError": "FAILED_START_ERROR",
}
_WAITING_ERROR: Final = re.compile("Failed|BackOff|Error|ErrImagePull|ContainerStatusUnknown")
WAITING_CODES: Final = {
    "ImagePullBackOff": 301,
    "ErrImagePull": 302,
    "CreateContainerConfigError": 303,
    "CrashLoopBackOff": 304,
    "ContainerStatusUnknown": 305,
}
OTHER_WAITING_CODE: Final = 999
PATIENCE_MIN: Final = {"CreateContainerConfigError": 10, "ContainerStatusUnknown": 30}
"""Minutes without the pod becoming ready after which these errors are failures of the backend."""
_CREATING: Final = frozenset({"ContainerCreating", "PodInitializing"})
_POD_REASONS: Final = {
    "Evicted": "FAILED_EVICTED",
    "StartError": "FAILED_START_ERROR",
    "UnexpectedAdmissionError": "FAILED_BACKEND_ERROR",
}


def _offset(container: CaseValues) -> int:
    name = (container.text("name") or "").lower()
    if name == CONTROL:
        return CONTROL_OFFSET
    if "preflight" in name:
        return PREFLIGHT_OFFSET
    return INIT_OFFSET if name == "osmo-init" or container.flag("init") else 0


def _terminated_code(container: CaseValues) -> int | None:
    """Return the code of a failed container with its offset added; None for others."""
    ended = container.object("terminated")
    code = ended.ending()[0]
    if not ended.values or ended.get("reason") == "Completed" or code is None:
        return None
    if container.text("name") == CONTROL:
        from_message = _message_code(ended.get("message"))
        code = code if from_message is None else from_message
    return _offset(container) + code


def _message_code(message: Any) -> int | None:
    """Return the code in the JSON message of an ended control container."""
    try:
        values = json.loads(message)
    except (TypeError, ValueError, RecursionError):
        return None
    code = values.get("code") if isinstance(values, dict) else None
    return code if isinstance(code, int) and not isinstance(code, bool) else None


def _conditions(pod: CaseValues) -> list[CaseValues]:
    return [each for each in conditions_of(pod) if is_true(each)]


def _minutes_not_ready(pod: CaseValues) -> float:
    """Return the minutes for which a pod has not been ready, from any of the accepted forms."""
    places = [pod]
    for condition in conditions_of(pod):
        if condition.get("type") == "Ready" and str(condition.get("status")).lower() == "false":
            places.append(condition)
    for place in places:
        for key, written in place.values.items():
            value = int(written) if isinstance(written, str) and written.isdecimal() and len(written) < 9 else written
            if isinstance(value, (int, float)) and not isinstance(value, bool):
                if re.search(r"min", key):
                    return float(value)
                if re.search(r"sec|_s$", key):
                    return value / 60
            elif isinstance(value, str) and (match := re.fullmatch(r"now-([0-9]{1,6})([smh])", value)):
                return int(match[1]) * {"s": 1 / 60, "m": 1.0, "h": 60.0}[match[2]]
    return 0.0


def task_of_pod(pod: CaseValues) -> tuple[str, int | None, ExitClass | None]:
    """Return status, code and class of a task by its pod; code and class are None before its end."""
    if any(each.get("reason") == "PreemptionByScheduler" for each in _conditions(pod)):
        return "FAILED_PREEMPTED", 3006, ExitClass.PREEMPTED
    containers = containers_of(pod)
    reasons = {each.object("terminated").get("reason") for each in containers}
    status, code = _by_phase(pod, containers)
    ran_out = status == "FAILED_EVICTED" and "OOMKilled" in reasons
    status, code = _by_waiting(pod, containers, status, code)
    override: str | None = find_ignoring_case(_POD_REASONS, pod.get("pod_reason", "podReason", "reason"))
    if override is None and any(each.get("type") == "DisruptionTarget" for each in _conditions(pod)):
        override = "FAILED_BACKEND_ERROR"
    if override is not None:
        status, code = override, STATUS_CODES[override]
    if ran_out and status == "FAILED_EVICTED":
        return status, code, ExitClass.OOM
    if status == "FAILED" and any(_terminated_code(each) == code and _was_not_started(each) for each in containers):
        return status, code, ExitClass.LAUNCH_FAILURE
    return status, code, class_of(status, code)


def _by_phase(pod: CaseValues, containers: list[CaseValues]) -> tuple[str, int | None]:
    phase = phase_of(pod) or ""
    status = _PHASES.get(phase, "RUNNING" if phase == "Unknown" else "SCHEDULING")
    if any(each.flag("init") and each.object("waiting").get("reason") in _CREATING for each in containers):
        status = "INITIALIZING"
    codes = [code for each in containers if (code := _terminated_code(each)) is not None]
    if status == "RUNNING":
        broken = any(_breaks_running(each) for each in containers)
        return ("FAILED", max(codes, default=4000)) if broken else (status, None)
    if status == "COMPLETED":
        return status, 0
    if not is_failed(status):
        return status, None
    if any(each.object("terminated").get("reason") == "OOMKilled" for each in containers):
        return "FAILED_EVICTED", 3004
    return status, max(codes, default=4000)


def _was_not_started(container: CaseValues) -> bool:
    """Return whether the reason of an ended container says that its program was never started."""
    named: ExitClass | None = find_ignoring_case(CONTAINER_REASONS, container.object("terminated").get("reason"))
    return named is ExitClass.LAUNCH_FAILURE


def _breaks_running(container: CaseValues) -> bool:
    ended = container.object("terminated")
    reason = ended.get("reason")
    return reason == "StartError" or (container.text("name") == CONTROL and _terminated_code(container) is not None)


def _by_waiting(pod: CaseValues, containers: list[CaseValues], status: str, code: int | None) -> tuple[str, int | None]:
    waiting: dict[str, int] = {}
    for each in containers:
        reason = each.object("waiting").text("reason") or ""
        if _WAITING_ERROR.search(reason):
            waiting[reason] = max(waiting.get(reason, 0), _offset(each) + WAITING_CODES.get(reason, OTHER_WAITING_CODE))
    if not waiting:
        return status, code
    if waiting.keys() & {"ErrImagePull", "ImagePullBackOff"}:
        return "FAILED_IMAGE_PULL", max(waiting.values())
    patient = waiting.keys() & PATIENCE_MIN.keys()
    if patient:
        is_over = any(_minutes_not_ready(pod) > PATIENCE_MIN[reason] for reason in patient)
        return ("FAILED_BACKEND_ERROR", 3001) if is_over else ("SCHEDULING", None)
    return "FAILED", max(waiting.values())


_POD_KEYS: Final = ("pod_phase", "phase", "pod_reason", "containers", "containerStatuses", "conditions")
"""Keys of pods."""


def classify(seen: CaseValues) -> dict[str, Any]:
    """Return the end of a task: by its pod, else by its status and code."""
    pod = pod_of(seen)
    if pod.has(*_POD_KEYS):
        status, code, named = task_of_pod(pod)
    else:
        code = seen.ending()[0]
        status = (seen.text("status") or status_of_code(code)).upper()
        code = STATUS_CODES.get(status) if code is None else code
        named = class_of(status, code)
    return {"outcome": named, "status": status, "exit": code, "action": "none"}


def status_word(seen: CaseValues, *names: str) -> str | None:
    """Return a status in upper case.

    Args:
        seen: The values.
        names: Its keys; ``status`` if there are none.

    Raises:
        CaseError: it is no status of a task, group or workflow.
    """
    names = names or ("status",)
    word = seen.text(*names)
    if word is None:
        return None
    status = word.strip().upper()
    if status not in STATUSES and not is_failed(status):
        raise CaseError(f"{seen.name}.{names[0]} is {word!r}; known: {', '.join(STATUSES)}")
    return status


# --- exit actions ----------------------------------------------------------------------------------


def decide_action(seen: CaseValues, policy: CaseValues) -> dict[str, Any]:
    """Return the action after a task that ended with a code."""
    code = seen.ending()[0]
    status = status_word(seen) or status_of_code(code)
    answer: dict[str, Any] = {"exit": code, "action": "none", "status": status, "next_retry_id": None}
    present = status_word(seen, "current_status", "previous_status", "task_status")
    if present and not accepts_report(present, status):
        dropped = f"{status} does not follow {present} and is dropped"
        return answer | {"outcome": class_of(present, None), "status": present, "message": dropped}
    answer["outcome"] = class_of(status, code)
    if code is None or status in STATUSES_WITHOUT_ACTION:
        return answer
    action = _matching(policy, code)
    if action is None:
        return answer | {"status": "COMPLETED" if code == 0 else status}
    if action == "RESCHEDULE":
        return answer | _reschedule(seen.integer("retry_id") or 0, policy.integer("max_retry_per_task") or 0)
    changes = ACTIONS[action] != status
    return answer | ({"status": ACTIONS[action], "action": action.lower()} if changes else {})


def _reschedule(retry: int, limit: int) -> dict[str, Any]:
    """Return the next attempt of a task, within the service's limit; the first run has retry 0."""
    if retry >= limit:
        return {"message": f"the retry limit of {limit} is reached", "message_mentions": "retry limit"}
    return {"status": "RESCHEDULED", "action": "reschedule", "next_retry_id": retry + 1}


def _matching(policy: CaseValues, code: int) -> str | None:
    """Return the action for a code by the task's map, else by its pool's."""
    for facts in (
        policy.object("exit_actions", "exitActions"),
        policy.object("pool_default_exit_actions", "poolDefaultExitActions"),
    ):
        if problems := exit_action_problems(facts.values, facts.name):
            raise CaseError("; ".join(problems))
        if action := match_exit_actions(facts.values, code):
            return action
    return None
