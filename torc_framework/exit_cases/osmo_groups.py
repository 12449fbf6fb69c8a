"""Cases of OSMO groups and workflows: their statuses by those of their tasks.

Source: NVIDIA OSMO, user guide, "Groups" and "Task Lifecycle"; the service's aggregation of statuses for precedence. A
group has one lead task; by default failures of its other tasks are ignored.
"""

import re
from collections.abc import Iterable, Sequence
from typing import Any, Final

from attrs import frozen

from torc_framework.exit_cases.case_values import CaseValues
from torc_framework.exits.osmo_codes import is_failed, is_finished

_ANY_TASK: Final = ("FAILED_UPSTREAM", "FAILED_SERVER_ERROR", "FAILED_PREEMPTED")
"""Statuses that a group takes from any of its tasks; an earlier one has precedence."""
_WORKFLOW: Final = ("FAILED_CANCELED", "FAILED_SERVER_ERROR", "FAILED_EXEC_TIMEOUT", "FAILED_QUEUE_TIMEOUT")
"""Statuses that a workflow takes from any of its groups; an earlier one has precedence."""


@frozen
class OsmoTask:
    """The newest attempt of one task of a group."""

    status: str
    is_lead: bool


def _tasks(seen: CaseValues) -> list[OsmoTask]:
    newest: dict[str, CaseValues] = {}
    for index, task in enumerate(_described(seen)):
        name = str(task.get("name") or index)
        known = newest.get(name)
        if known is None or (task.integer("retry_id") or 0) >= (known.integer("retry_id") or 0):
            newest[name] = task
    tasks = [OsmoTask((task.text("status") or "WAITING").upper(), task.flag("lead")) for task in newest.values()]
    return [OsmoTask(tasks[0].status, True)] if len(tasks) == 1 else tasks


def _described(seen: CaseValues) -> list[CaseValues]:
    """Return the values of the tasks; a text stands for a task with this status."""
    tasks = [{"status": task} if isinstance(task, str) else task for task in seen.items("tasks")]
    return CaseValues(seen.name, {"tasks": tasks}).objects("tasks")


def check_group(seen: CaseValues) -> str | None:
    """Return the problem of a group's tasks, None if there is none: exactly one must be the lead task."""
    tasks = seen.objects("tasks")
    leads = sum(task.flag("lead") for task in tasks)
    if not tasks:
        return "a group has at least one task"
    return None if leads == 1 or (len(tasks) == 1 and not leads) else f"a group has one lead task, not {leads}"


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
        return "RUNNING" if any(one == "RUNNING" or is_finished(one) for one in statuses) else "PENDING"
    for named in _WORKFLOW:
        if named in statuses:
            return named
    failures = {one for one in statuses if is_failed(one)} - {"FAILED_UPSTREAM"}
    if len(failures) == 1:
        return failures.pop()
    return "FAILED" if any(map(is_failed, statuses)) else "COMPLETED"


def answer(seen: CaseValues, policy: CaseValues) -> dict[str, Any]:
    """Return the status of a group or workflow, and the effect on its other tasks and its successors."""
    if seen.has("groups"):
        statuses = [_status_in(one) for one in seen.items("groups")]
        return {"status": workflow_status(statuses), "action": "none"}
    ignores = policy.flag("ignore_nonlead_status", "ignoreNonleadStatus", default=True)
    status = group_status(_tasks(seen), ignore_nonlead_status=ignores)
    found: dict[str, Any] = {"status": status, "action": "none"}
    if is_failed(status):
        found |= {"successor_status": "FAILED_UPSTREAM", "successor_exit": 3000}
    if event := seen.text("event"):
        found |= _siblings(event.lower(), ignores_others=ignores)
    return found


def _status_in(group: Any) -> str:
    return str(group.get("status") if isinstance(group, dict) else group).upper()


def _siblings(event: str, *, ignores_others: bool) -> dict[str, str | None]:
    """Return the effect of an event of one task on the other tasks."""
    is_lead = "lead" in event and not re.search(r"non_?-?lead", event)
    if "resched" in event:
        return {"siblings": "restart" if is_lead or not ignores_others else "none"}
    if is_lead:
        return {"siblings": "COMPLETED" if "complete" in event else "FAILED"}
    return {"siblings": "none" if ignores_others or "fail" not in event else "FAILED"}
