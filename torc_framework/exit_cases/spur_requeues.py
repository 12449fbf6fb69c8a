"""Cases of Spur's job life cycle: whether a job is queued again, and the reports that its agents may make.

Source: Spur (ROCm/spur), controller: life cycle of jobs and ``[controller]`` settings. A lost node or a time-out queues
a job again if it asks for that, within a budget; a preemption or an administrator does so without using the budget;
the launch of a job is repeated with growing pauses.
"""

from collections.abc import Callable, Mapping
from typing import Any, Final

from torc_framework.exit_cases.case_values import CODE_NAMES, CaseError, CaseValues
from torc_framework.exit_cases.spur import UNSEEN
from torc_framework.exit_cases.spur_events import CONTROLLER_EVENTS, controller_event, event_reason, required_event
from torc_framework.exits.code_signal import render_exit
from torc_framework.exits.slurm_states import class_of, normal_state

MAX_REQUEUES: Final = 5
BACKOFF_CAP_S: Final = 300
_INTERVAL_KEYS: Final = ("scheduler_interval_s", "scheduler_interval", "interval_s", "interval")
_REQUEUED_WHEN_ASKED: Final = frozenset({"TIMEOUT", "NODE_FAIL"})


def launch_backoff_s(interval_s: int, requeue_count: int, cap_s: int = BACKOFF_CAP_S) -> int:
    """Return the seconds before the next launch of a job that could not be launched; the pause doubles each time."""
    return max(min(max(2 * interval_s + 3, 5) << min(max(requeue_count, 0), 16), cap_s), 0)


def decide_requeue(seen: CaseValues, policy: CaseValues) -> dict[str, Any]:
    """Return whether a job is queued again: after lost nodes and time-outs within a budget, never after failures.

    Raises:
        CaseError: the observation has no known event, state or pause.
    """
    event, state = _event_and_state(seen, policy)
    code, signal = seen.ending("exit", *CODE_NAMES)
    pair = None if code is None and signal is None else render_exit(code or 0, signal or 0)
    count = seen.integer("requeue_count") or 0
    answer: dict[str, Any] = {"status": state, "action": "none", "requeue_count": count, "exit": pair}
    if event is None:
        answer["outcome"] = class_of(state, code, signal) if state else None
        return answer
    answer |= {"outcome": CONTROLLER_EVENTS[event].exit_class, "reason": event_reason(event, seen)}
    if event in _EFFECTS:
        return answer | _EFFECTS[event](seen, policy)
    is_asked_for = policy.flag("requeue") or seen.flag("requeue")
    return answer | (_by_budget(count, policy) if state in _REQUEUED_WHEN_ASKED and is_asked_for else {})


def _event_and_state(seen: CaseValues, policy: CaseValues) -> tuple[str | None, str | None]:
    """Return the event and the state it leads to; the pause before a launch implies that the launch failed."""
    word, state = seen.text("event"), seen.text("state", "scheduler_state")
    if word is not None and normal_state(word) is not None:
        word, state = None, word
    if word is not None and (event := required_event(word)):
        return event, CONTROLLER_EVENTS[event].state
    if state is not None:
        name = normal_state(state)
        if name is None:
            raise CaseError(f"observation.state is {state!r}; expected a state of a job, such as NODE_FAIL")
        return controller_event(name), name
    if word is None and not (seen.has(*_INTERVAL_KEYS) or policy.has(*_INTERVAL_KEYS)):
        raise CaseError(f"observation has no event; known: {', '.join(CONTROLLER_EVENTS)}")
    return (None, None) if word is not None else ("launch_failure", CONTROLLER_EVENTS["launch_failure"].state)


_REQUEUED: Final = {"status": "PENDING", "action": "retry"}


def _hold(_seen: CaseValues, _policy: CaseValues) -> dict[str, Any]:
    return {"action": "hold", "priority": 0}


def _requeue(_seen: CaseValues, _policy: CaseValues) -> dict[str, Any]:
    return _REQUEUED


def _stop(seen: CaseValues, _policy: CaseValues) -> dict[str, Any]:
    """Return the exit of a job that the controller stopped; it is that of an unseen end, unless one was seen."""
    return {} if seen.has("exit", *CODE_NAMES, "signal") else {"exit": render_exit(*UNSEEN)}


def _preemption(seen: CaseValues, policy: CaseValues) -> dict[str, Any]:
    """Return the effect of a preemption by its mode; without a mode, by the job's own wish."""
    words = (seen.text("mode", "preempt_mode"), policy.text("preempt_mode", "preemption", "mode"), seen.text("event"))
    modes = (mode for word in words if word for mode in ("requeue", "cancel", "suspend") if mode in word.lower())
    mode = next(modes, "requeue" if policy.flag("requeue") or seen.flag("requeue") else "cancel")
    if mode == "suspend":
        return {"outcome": None, "status": "SUSPENDED"}
    return _REQUEUED if mode == "requeue" else _stop(seen, policy)


def _relaunch(seen: CaseValues, policy: CaseValues) -> dict[str, Any]:
    """Return the pause before the next launch, and whether the budget allows it."""
    count = seen.integer("requeue_count") or 0
    interval_s = seen.integer(*_INTERVAL_KEYS) or policy.integer(*_INTERVAL_KEYS) or 1
    cap_s = policy.integer("max_launch_backoff_secs", "max_launch_backoff_s")
    pause_s = launch_backoff_s(interval_s, count, BACKOFF_CAP_S if cap_s is None else cap_s)
    is_limited = seen.has("event", "state", "scheduler_state") or policy.has("max_batch_requeue")
    allowed = _by_budget(count, policy) if is_limited else _REQUEUED | {"requeue_count": count + 1}
    return {**allowed, "backoff_seconds": pause_s, "delay_s": pause_s} if allowed["action"] == "retry" else allowed


_EFFECTS: Final[Mapping[str, Callable[[CaseValues, CaseValues], dict[str, Any]]]] = {
    "held_by_user": _hold,
    "held_by_admin": _hold,
    "admin_requeue": _requeue,
    "preempted": _preemption,
    "canceled": _stop,
    "launch_failure": _relaunch,
}
"""Effect of those events whose result does not depend on the job's wish to be queued again alone."""


def _by_budget(count: int, policy: CaseValues) -> dict[str, Any]:
    most = policy.integer("max_batch_requeue")
    if count < (MAX_REQUEUES if most is None else most):
        return _REQUEUED | {"requeue_count": count + 1}
    return {"status": "PENDING", "action": "hold", "reason": "JobHoldMaxRequeue", "priority": 0}


def check_report(seen: CaseValues) -> str | None:
    """Return the problem of an agent's report, None if there is none: COMPLETED requires code 0, FAILED another."""
    state = (seen.text("reported_state", "state") or "").strip().upper()
    code = seen.ending()[0] or 0
    if state not in {"COMPLETED", "FAILED"}:
        return f"an agent reports COMPLETED or FAILED, not {state or 'nothing'}"
    expected = "FAILED" if code else "COMPLETED"
    return None if state == expected else f"{state} does not go with exit code {code}; expected {expected}"
