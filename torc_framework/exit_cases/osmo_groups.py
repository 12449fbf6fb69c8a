"""Cases of OSMO groups and workflows: their statuses, and the effect of one task's or group's end on others.

Sources: NVIDIA OSMO, user guide, "Groups" and "Task Lifecycle"; the service's aggregation of statuses and its group
update for what the guide does not define. A group has one lead task; by default failures of its other tasks are
ignored.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final

from attrs import frozen

from torc_framework.exit_cases.case_values import CaseError, CaseValues
from torc_framework.exit_cases.osmo import STATUSES_WITHOUT_ACTION, decide_action, status_word
from torc_framework.exits.osmo_codes import STATUS_CODES, accepts_report, class_of, is_failed, is_finished

_ANY_TASK: Final = ("FAILED_UPSTREAM", "FAILED_SERVER_ERROR", "FAILED_PREEMPTED")
"""Statuses that a group takes from any of its tasks; an earlier one has precedence."""
_WORKFLOW: Final = ("FAILED_CANCELED", "FAILED_SERVER_ERROR", "FAILED_EXEC_TIMEOUT", "FAILED_QUEUE_TIMEOUT")
"""Statuses that a workflow takes from any of its groups; an earlier one has precedence."""
_UPSTREAM_FAILED: Final = "FAILED_UPSTREAM"


@frozen
class OsmoTask:
    """The newest attempt of one task of a group."""

    status: str
    is_lead: bool


def _tasks(seen: CaseValues) -> list[OsmoTask]:
    newest: dict[str, CaseValues] = {}
    for index, task in enumerate(_described(seen, "tasks", "status")):
        name = str(task.get("name", "task") or index)
        known = newest.get(name)
        if known is None or (task.integer("retry_id") or 0) >= (known.integer("retry_id") or 0):
            newest[name] = task
    tasks = [OsmoTask(status_word(task) or "WAITING", task.flag("lead")) for task in newest.values()]
    return [OsmoTask(tasks[0].status, True)] if len(tasks) == 1 else tasks


def _described(seen: CaseValues, key: str, meaning: str) -> list[CaseValues]:
    """Return the objects of a list; a text stands for an object with this value under the key ``meaning``."""
    values = [{meaning: value} if isinstance(value, str) else value for value in seen.items(key)]
    return CaseValues(seen.name, {key: values}).objects(key)


def check_group(seen: CaseValues) -> str | None:
    """Return the problem of a group's tasks, None if there is none: exactly one must be the lead task."""
    tasks = seen.objects("tasks")
    leads = sum(task.flag("lead") for task in tasks)
    if not tasks:
        return "a group has at least one task"
    return None if leads == 1 or (len(tasks) == 1 and not leads) else f"a group has one lead task, not {leads}"


# --- statuses --------------------------------------------------------------------------------------


def group_status(tasks: Sequence[OsmoTask], *, ignore_nonlead_status: bool = True) -> str:
    """Return the status of a group with these tasks."""
    statuses = [task.status for task in tasks]
    if not all(map(is_finished, statuses)):
        return "RUNNING" if any(one == "RUNNING" or is_finished(one) for one in statuses) else "INITIALIZING"
    for named in _ANY_TASK:
        if named in statuses:
            return named
    considered = [task.status for task in tasks if task.is_lead or not ignore_nonlead_status] or statuses
    if "FAILED_EVICTED" in considered:
        return "FAILED_EVICTED"
    return "FAILED" if any(map(is_failed, considered)) else "COMPLETED"


def workflow_status(groups: Iterable[str]) -> str:
    """Return the status of a workflow with groups of these statuses."""
    statuses = list(groups)
    if not all(map(is_finished, statuses)):
        return "RUNNING" if "RUNNING" in statuses else "PENDING"
    for named in _WORKFLOW:
        if named in statuses:
            return named
    failures = {one for one in statuses if is_failed(one)}
    reasons = failures - {_UPSTREAM_FAILED}
    if len(reasons) == 1:
        return reasons.pop()
    return "FAILED" if failures else "COMPLETED"


# --- answers ---------------------------------------------------------------------------------------


def answer(seen: CaseValues, policy: CaseValues) -> dict[str, Any]:
    """Return the status of a group or workflow, and the effect on other tasks and groups.

    Raises:
        CaseError: the observation describes neither tasks, nor groups, nor an event or a report.
    """
    if seen.has("reported"):
        return _after_report(seen)
    if seen.has("event"):
        return _after_event(seen, policy)
    if seen.has("group_statuses", "groups"):
        key = "group_statuses" if seen.has("group_statuses") else "groups"
        statuses = [status_word(group) or "WAITING" for group in _described(seen, key, "status")]
        return _status(workflow_status(statuses))
    status = status_word(seen, "group_status")
    if status is None:
        tasks = _tasks(seen)
        if not tasks:
            raise CaseError(
                "observation describes no group; expected one of tasks, group_statuses, group_status, event, reported"
            )
        status = group_status(tasks, ignore_nonlead_status=_ignores_others(policy))
    return _status(status) | _successors(seen, status)


def _ignores_others(policy: CaseValues) -> bool:
    return policy.flag("ignore_nonlead_status", "ignoreNonleadStatus", default=True)


def _status(status: str, code: int | None = None) -> dict[str, Any]:
    return {"outcome": class_of(status, code), "status": status, "action": "none"}


def _successors(seen: CaseValues, status: str) -> dict[str, Any]:
    """Return the effect of a group's status on the groups that need it."""
    groups = [each.text("group", "name") for each in _described(seen, "downstream", "group")]
    if is_failed(status):
        code = STATUS_CODES[_UPSTREAM_FAILED]
        found: dict[str, Any] = {"successor_status": _UPSTREAM_FAILED, "successor_exit": code}
        effect = {"status": _UPSTREAM_FAILED, "exit_code": code}
        action = {"action": "fail"} if groups else {}
        return found | action | ({"downstream": dict.fromkeys(map(str, groups), effect)} if groups else {})
    effect = {"status": "PROCESSING" if status == "COMPLETED" else "WAITING", "exit_code": None}
    return {"downstream": dict.fromkeys(map(str, groups), effect)} if groups else {}


def _after_report(seen: CaseValues) -> dict[str, Any]:
    """Return the status of a task or group after a report; a report that comes too late changes nothing."""
    current, reported = status_word(seen, "current_status", "status") or "WAITING", status_word(seen, "reported") or ""
    if not accepts_report(current, reported):
        return _status(current) | {"exit": None, "message": f"{reported} does not follow {current} and is dropped"}
    code = seen.ending()[0]
    return _status(reported, code) | {"exit": code}


def _after_event(seen: CaseValues, policy: CaseValues) -> dict[str, Any]:
    """Return the status of a group and the effect on its other tasks, after one of its tasks changed its status."""
    event, ignores_others = seen.object("event"), _ignores_others(policy)
    name = _name(event)
    described = _described(seen, "others" if seen.has("others") else "tasks", "task")
    others = {_name(task): status_word(task) or "RUNNING" for task in described if _name(task) != name}
    leads = {_name(task) for task in described if task.flag("lead")}
    is_lead = event.flag("lead", default=not others)
    decided = decide_action(event, policy)
    status, code = str(decided["status"]), decided["exit"]
    live = [other for other, now in others.items() if not is_finished(now)]
    if status == "RESCHEDULED":
        restarted = live if is_lead or not ignores_others else []
        return _effect("RUNNING", None, others, restarted) | {
            "action": "reschedule",
            "recreated": {name: (event.integer("retry_id") or 0) + 1},
            "restarted": restarted,
        }
    sibling_status, sibling_code = _sibling_status(event, status, is_lead=is_lead, ignores_others=ignores_others)
    changed = live if sibling_status else []
    after = others | dict.fromkeys(changed, sibling_status or "")
    tasks = [OsmoTask(status, is_lead), *(OsmoTask(now, other in leads) for other, now in after.items())]
    ends_all = status in STATUSES_WITHOUT_ACTION
    whole = status if ends_all else group_status(tasks, ignore_nonlead_status=ignores_others)
    action = ("complete" if sibling_status == "COMPLETED" else "fail") if changed else "none"
    siblings = {other: {"status": sibling_status, "exit_code": sibling_code} for other in changed}
    effect = _effect(whole, code, others, changed)
    return effect | {"outcome": class_of(status, code), "exit": code, "action": action, "siblings": siblings}


def _effect(status: str, code: int | None, others: Mapping[str, str], changed: Sequence[str]) -> dict[str, Any]:
    return _status(status, code) | {"untouched": [name for name in others if name not in changed]}


def _sibling_status(
    event: CaseValues, status: str, *, is_lead: bool, ignores_others: bool
) -> tuple[str | None, int | None]:
    """Return the status and code that the other live tasks of a group get; no status if they stay as they are."""
    if status in STATUSES_WITHOUT_ACTION:  # these concern the group as a whole
        code = event.ending()[0]
        return status, STATUS_CODES.get(status) if code is None else code
    if is_lead and is_finished(status):
        return ("FAILED" if is_failed(status) else "COMPLETED"), None
    return ("FAILED" if is_failed(status) and not ignores_others else None), None


def _name(task: CaseValues) -> str:
    name = task.text("task", "name")
    if not name:
        raise CaseError(f"{task.name} has no task; expected the name of a task")
    return name
