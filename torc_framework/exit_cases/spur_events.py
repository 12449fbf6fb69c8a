"""Events of Spur's controller that end a job or put it back into the queue, and the words for them."""

import re
from collections.abc import Mapping
from typing import Final

from attrs import frozen

from torc_framework.exit_cases.case_values import CaseError, CaseValues
from torc_framework.models.exits import ExitClass


@frozen
class ControllerEvent:
    """An event of the controller: the resulting state, reason and class, and the words for it."""

    state: str
    reason: str
    exit_class: ExitClass | None
    pattern: re.Pattern[str]


def _event(state: str, reason: str, exit_class: ExitClass | None, pattern: str) -> ControllerEvent:
    return ControllerEvent(state, reason, exit_class, re.compile(pattern))


_C = ExitClass
CONTROLLER_EVENTS: Final[Mapping[str, ControllerEvent]] = {
    "held_by_user": _event("PENDING", "JobHeldUser", None, r"(held?|hold)_?(by_)?user|user_?(held?|hold)"),
    "held_by_admin": _event("PENDING", "JobHeldAdmin", None, r"(held?|hold)_?(by_)?admin|admin_?(held?|hold)"),
    "admin_requeue": _event("PENDING", "None", None, r"admin|scontrol|manual|operator|^requeued?$"),
    "preempted": _event("PREEMPTED", "Preempted", _C.PREEMPTED, r"preempt"),
    "node_down": _event("NODE_FAIL", "NodeDown", _C.NODE_FAILURE, r"node_?(down|fail|lost|loss)|agent_lost"),
    "out_of_memory": _event("OUT_OF_MEMORY", "OutOfMemory", _C.OOM, r"oom|out_of_memory|memory"),
    "boot_failure": _event("BOOT_FAIL", "BootFailure", _C.NODE_FAILURE, r"boot"),
    "launch_failure": _event("FAILED", "JobLaunchFailure", _C.LAUNCH_FAILURE, r"launch|dispatch|start_fail|prolog"),
    "timeout": _event("TIMEOUT", "TimeLimit", _C.TIMEOUT, r"time_?out|time_?limit|watchdog|walltime"),
    "deadline": _event("DEADLINE", "DeadLine", _C.TIMEOUT, r"deadline"),
    "canceled": _event("CANCELLED", "None", _C.CANCELED, r"cancel"),
}
"""Events of the controller, in the order in which their patterns are tried."""
_TOO_LATE: Final = re.compile(r"after_(the_)?(end|exit|completion)|late_")
"""Words of events after the end of a job, which have no effect."""


def controller_event(word: str | None) -> str | None:
    """Return the name of an event in `CONTROLLER_EVENTS`; None for other words and for events after the end."""
    if word is None or is_too_late(word):
        return None
    written = _plain(word)
    return next((name for name, known in CONTROLLER_EVENTS.items() if known.pattern.search(written)), None)


def required_event(word: str) -> str | None:
    """Return the name of an event; None for an event after the end.

    Raises:
        CaseError: the word names no event.
    """
    name = controller_event(word)
    if name is None and not is_too_late(word):
        raise CaseError(f"observation.event is {word!r}; known: {', '.join(CONTROLLER_EVENTS)}")
    return name


def is_too_late(word: str) -> bool:
    """Return whether a word names an event after the end of a job."""
    return _TOO_LATE.search(_plain(word)) is not None


def _plain(word: str) -> str:
    return word.strip().lower().replace(" ", "_").replace("-", "_")


def event_reason(name: str, seen: CaseValues) -> str:
    """Return the reason that is shown for an event: for a preemption, the job that took the place, if it is known."""
    by = seen.get("by", "preempted_by", "preemptor")
    if name != "preempted" or by is None:
        return CONTROLLER_EVENTS[name].reason
    qos = seen.text("qos", "preemptor_qos")
    return f"preempted by job {by}" + (f" (QOS: {qos})" if qos else "")
