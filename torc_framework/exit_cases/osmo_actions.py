"""Effect of OSMO's exit actions on a task that ended, for cases."""

from typing import Any

from torc_framework.exit_cases.case_values import CaseError, CaseValues
from torc_framework.exit_cases.osmo import STATUSES_WITHOUT_ACTION
from torc_framework.exits import osmo_codes
from torc_framework.exits.osmo_exit_actions import ACTIONS, exit_action_problems, match_exit_actions


def decide(seen: CaseValues, policy: CaseValues) -> dict[str, Any]:
    """Return the action after a task that ended with a code."""
    code = seen.ending()[0]
    status = (seen.text("status") or osmo_codes.status_of_code(code)).upper()
    answer: dict[str, Any] = {"exit": code, "action": "none", "status": status, "next_retry_id": None}
    present = (seen.text("current_status", "previous_status", "task_status") or "").upper()
    if status == "FAILED_START_TIMEOUT" and present == "RUNNING":
        return answer | {"outcome": None, "status": present, "message": "it runs already"}
    answer["outcome"] = osmo_codes.class_of(status, code)
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
        return {"message": f"retry limit of {limit} is reached"}
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
