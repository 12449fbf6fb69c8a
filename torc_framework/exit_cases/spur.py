"""Cases of Spur: the end of a job by its nodes and steps, and whether the job is queued again.

Sources: Spur (ROCm/spur), "close exit-code reporting gap" (pull request 274), checked there against Slurm 25.11; its
job life cycle and time limits (change 680). A job's exit is the raw status of the batch process on its first node;
``DerivedExitCode`` is the largest code of its steps.
"""

import re
from collections.abc import Mapping
from typing import Any, Final

from attrs import frozen

from torc_framework.exit_cases.case_values import CODE_NAMES, CaseError, CaseValues
from torc_framework.exits.code_signal import parse_exit, render_end_reason, render_exit
from torc_framework.exits.slurm_states import STATES, class_of, normal_state
from torc_framework.models.exits import ExitClass

FIRST_RESERVED_STEP: Final = 0xFFFF_FFF0
"""First id of Slurm's own steps (batch, extern, interactive), which are ignored."""
OOM_BIT: Final = 0x1000
"""Bit of a reported signal: lack of memory."""
UNSEEN: Final = (-1, 0)
"""Exit of a job whose end was not observed: lost node, cancellation, preemption, kill by the watchdog."""
MAX_REQUEUES: Final = 5
_RESERVED_NAMES: Final = frozenset({"batch", "extern", "interactive"})


@frozen
class ControllerEvent:
    """An event of the controller that ends a job: the resulting state, reason and class, and the words for it."""

    state: str
    reason: str
    exit_class: ExitClass | None
    pattern: re.Pattern[str]


def _words(pattern: str) -> re.Pattern[str]:
    return re.compile(pattern)


_C = ExitClass
CONTROLLER_EVENTS: Final[Mapping[str, ControllerEvent]] = {
    "admin_requeue": ControllerEvent("PENDING", "None", None, _words(r"admin|scontrol|manual|operator")),
    "preempted": ControllerEvent("PREEMPTED", "Preempted", _C.PREEMPTED, _words(r"preempt")),
    "node_down": ControllerEvent(
        "NODE_FAIL", "NodeDown", _C.NODE_FAILURE, _words(r"node_?(down|fail|lost|loss)|agent_lost")
    ),
    "out_of_memory": ControllerEvent("OUT_OF_MEMORY", "OutOfMemory", _C.OOM, _words(r"oom|out_of_memory|memory")),
    "boot_failure": ControllerEvent("BOOT_FAIL", "BootFailure", _C.NODE_FAILURE, _words(r"boot")),
    "launch_failure": ControllerEvent(
        "FAILED", "JobLaunchFailure", _C.LAUNCH_FAILURE, _words(r"launch|dispatch|start_fail|prolog")
    ),
    "timeout": ControllerEvent("TIMEOUT", "TimeLimit", _C.TIMEOUT, _words(r"time_?out|time_?limit|watchdog|walltime")),
    "deadline": ControllerEvent("DEADLINE", "DeadLine", _C.TIMEOUT, _words(r"deadline")),
    "canceled": ControllerEvent("CANCELLED", "None", _C.CANCELED, _words(r"cancel")),
}
"""Events of the controller, in the order in which their patterns are tried."""


_TOO_LATE: Final = re.compile(r"after_(the_)?(end|exit|completion)|late_")
"""Words of events after the end of a job, which have no effect."""


def _controller_event(word: str | None) -> str | None:
    if word is None:
        return None
    written = word.strip().lower().replace(" ", "_").replace("-", "_")
    if _TOO_LATE.search(written):
        return None
    return next((name for name, known in CONTROLLER_EVENTS.items() if known.pattern.search(written)), None)


# --- end of a job ----------------------------------------------------------------------------------


@frozen
class NodeExit:
    """How the batch process of one node ended."""

    code: int
    signal: int
    ran_out_of_memory: bool

    @property
    def is_failure(self) -> bool:
        """Whether code or signal is not 0."""
        return bool(self.code or self.signal)


_OOM: Final = re.compile("oom")
_LIMIT: Final = re.compile(r"^(?!.*(after|late)).*(limit|timeout|timed_out)")
_WATCHDOG: Final = re.compile("watchdog")


def _exit(seen: CaseValues) -> NodeExit:
    code, signal = seen.ending("exit", *CODE_NAMES)
    code, signal = code or 0, signal or 0
    return NodeExit(code, signal & ~OOM_BIT, seen.has_true_key(_OOM) or bool(signal & OOM_BIT))


def _nodes(seen: CaseValues) -> dict[str, NodeExit]:
    nodes = seen.get("nodes")
    if isinstance(nodes, list):
        return {_name(node, index): _exit(_node(node, index)) for index, node in enumerate(nodes)}
    return {name: _exit(_node(node, name)) for name, node in seen.object("nodes").values.items()}


def _name(node: Any, index: int) -> str:
    return str(node.get("name") or node.get("node") or index) if isinstance(node, dict) else str(index)


def _node(node: Any, name: str | int) -> CaseValues:
    """Return the values of a node: an object, or its exit alone."""
    return CaseValues(f"observation.nodes.{name}", node if isinstance(node, dict) else {"exit": node})


def derived_code(seen: CaseValues) -> int:
    """Return the largest code of a job's own steps; a step ended by signal n counts as 128+n."""
    return max(map(_step_code, seen.items("steps")), default=0)


def _step_code(step: Any) -> int:
    if isinstance(step, int) and not isinstance(step, bool):
        return step
    if isinstance(step, str):
        code, signal = parse_exit(step)
        return 128 + signal if signal else code
    if not isinstance(step, dict):
        raise CaseError(f"step {step!r} is neither a code nor an object")
    facts = CaseValues("observation.steps", step)
    number = facts.get("id", "step_id", "step")
    is_reserved = str(number).isdecimal() and int(number) >= FIRST_RESERVED_STEP
    if is_reserved or str(number) in _RESERVED_NAMES or facts.get("name") in _RESERVED_NAMES:
        return 0
    seen = _exit(facts)
    return 128 + seen.signal if seen.signal else seen.code


def _job_exit(nodes: Mapping[str, NodeExit], primary: str | None) -> NodeExit:
    """Return the exit of the primary node, else the worst exit of the nodes that failed."""
    if primary in nodes:
        return nodes[primary or ""]
    failing = [node for node in nodes.values() if node.is_failure]
    return max(failing, key=lambda node: (node.signal > 0, node.code, node.signal), default=NodeExit(0, 0, False))


def _hit_limit(seen: CaseValues) -> bool:
    """Return whether the time limit was signalled while the job ran."""
    return seen.has_true_key(_LIMIT)


def classify_completion(seen: CaseValues) -> dict[str, Any]:
    """Return the end of a job: state, exit, derived exit, reason."""
    nodes = _nodes(seen)
    state = seen.text("state", "scheduler_state")
    event = _controller_event(seen.text("event")) or _watchdog(seen)
    if nodes:
        primary = str(seen.get("primary")) if seen.has("primary") else next(iter(nodes))
        ended = _job_exit(nodes, primary)
    elif event or not seen.has(*CODE_NAMES, "signal", "wait_status", "raw_status"):
        ended = NodeExit(*UNSEEN, ran_out_of_memory=False) if event else NodeExit(0, 0, False)
    else:
        ended = _exit(seen)
    answer = {"derived_exit": render_exit(derived_code(seen)), "action": "none"}
    if state and (name := normal_state(state)) and STATES[name].exit_class is None:
        return {**answer, "outcome": None, "status": name, "exit": None, "reason": "None"}
    flagged = any(
        value and str(value).lower() != "false" and "oom" in key.lower() for key, value in seen.values.items()
    )
    ran_out = flagged or ended.ran_out_of_memory or any(node.ran_out_of_memory for node in nodes.values())
    if ran_out:
        verdict = "OUT_OF_MEMORY", "OutOfMemory", ExitClass.OOM
    elif _hit_limit(seen):
        verdict = "TIMEOUT", "TimeLimit", ExitClass.TIMEOUT
    elif event:
        known = CONTROLLER_EVENTS[event]
        verdict = known.state, known.reason, known.exit_class or ExitClass.CANCELED
    elif ended.signal:
        verdict = "FAILED", render_end_reason("RaisedSignal", ended.signal), ExitClass.SIGNALED
    elif ended.code:
        verdict = "FAILED", "NonZeroExitCode", ExitClass.USER_ERROR
    else:
        verdict = "COMPLETED", "None", ExitClass.SUCCESS
    status, reason, exit_class = verdict
    shown = seen.text("description", "state_desc") or reason  # a description in free text has precedence
    return {
        **answer,
        "outcome": exit_class,
        "status": status,
        "exit": render_exit(ended.code, ended.signal),
        "reason": shown,
    }


def _watchdog(seen: CaseValues) -> str | None:
    return "timeout" if seen.has_true_key(_WATCHDOG) else None


# --- requeueing ------------------------------------------------------------------------------------

BACKOFF_CAP_S: Final = 300


def launch_backoff_s(interval_s: int, requeue_count: int) -> int:
    """Return the seconds before the next launch of a job that could not be launched."""
    return min(max(2 * interval_s + 3, 5) << min(max(requeue_count, 0), 16), BACKOFF_CAP_S)


def decide_requeue(seen: CaseValues, policy: CaseValues) -> dict[str, Any]:
    """Return whether a job is queued again: after lost nodes and time-outs within a budget, never after failures."""
    written = seen.text("event") or seen.text("state", "scheduler_state") or ""
    event = _controller_event(written)
    state = CONTROLLER_EVENTS[event].state if event else (normal_state(written) or written)
    count = seen.integer("requeue_count") or 0
    code, signal = seen.ending("exit", *CODE_NAMES)
    pair = None if code is None and signal is None else render_exit(code or 0, signal or 0)
    answer: dict[str, Any] = {"status": state, "action": "none", "requeue_count": count, "exit": pair}
    if event:
        answer |= {"outcome": CONTROLLER_EVENTS[event].exit_class, "reason": CONTROLLER_EVENTS[event].reason}
    else:
        answer["outcome"] = class_of(state, code, signal)
    if event == "admin_requeue" or (event == "preempted" and _preemption_requeues(written, policy)):
        return answer | {"status": "PENDING", "action": "retry"}
    if event in {"preempted", "canceled"}:
        return answer | {"exit": pair or render_exit(*UNSEEN)}
    if event == "launch_failure":
        answer["delay_s"] = launch_backoff_s(policy.integer("scheduler_interval", "interval", "interval_s") or 1, count)
        return answer | _by_budget(count, policy)
    if state in {"TIMEOUT", "NODE_FAIL"} and policy.flag("requeue"):
        return answer | _by_budget(count, policy)
    return answer


def _preemption_requeues(written: str, policy: CaseValues) -> bool:
    mode = (policy.text("preempt_mode", "preemption") or written).lower()
    if "requeue" in mode or "cancel" in mode:
        return "requeue" in mode
    return policy.flag("requeue")


def _by_budget(count: int, policy: CaseValues) -> dict[str, Any]:
    most = policy.integer("max_batch_requeue")
    if count < (MAX_REQUEUES if most is None else most):
        return {"status": "PENDING", "action": "retry", "requeue_count": count + 1}
    return {"status": "PENDING", "action": "hold", "reason": "JobHoldMaxRequeue", "priority": 0}


def check_report(seen: CaseValues) -> str | None:
    """Return the problem of an agent's report, None if there is none: COMPLETED requires code 0, FAILED another."""
    state = (seen.text("reported_state", "state") or "").strip().upper()
    code = seen.ending()[0] or 0
    if state not in {"COMPLETED", "FAILED"}:
        return f"an agent reports COMPLETED or FAILED, not {state or 'nothing'}"
    expected = "FAILED" if code else "COMPLETED"
    return None if state == expected else f"{state} does not go with exit code {code}; expected {expected}"
