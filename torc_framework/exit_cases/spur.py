"""Cases of Spur: the end of a job by its nodes and steps.

Source: Spur (ROCm/spur), "close exit-code reporting gap" (pull request 274), checked there against Slurm 25.11. A
job's exit is the raw status of the batch process on its first node; ``DerivedExitCode`` is the largest code of its
steps.
"""

import re
from collections.abc import Mapping
from typing import Any, Final

from attrs import frozen

from torc_framework.exit_cases.case_values import CODE_NAMES, CaseError, CaseValues
from torc_framework.exit_cases.spur_events import CONTROLLER_EVENTS, controller_event, event_reason, required_event
from torc_framework.exits.code_signal import parse_exit, render_end_reason, render_exit
from torc_framework.exits.slurm_states import STATES, normal_state
from torc_framework.models.exits import ExitClass

FIRST_RESERVED_STEP: Final = 0xFFFF_FFF0
"""First id of Slurm's own steps (batch, extern, interactive), which are ignored."""
OOM_BIT: Final = 0x1000
"""Bit of a reported signal: lack of memory."""
UNSEEN: Final = (-1, 0)
"""Exit of a job whose end was not observed: lost node, cancellation, preemption, kill by the watchdog."""
_RESERVED_NAMES: Final = frozenset({"batch", "extern", "interactive"})


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
    word = seen.text("event")
    event = (required_event(word) if word else None) or controller_event(state) or _watchdog(seen)
    ended = _ended(seen, nodes, is_stopped=event is not None)
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
        verdict = known.state, event_reason(event, seen), known.exit_class or ExitClass.CANCELED
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


def _ended(seen: CaseValues, nodes: Mapping[str, NodeExit], *, is_stopped: bool) -> NodeExit:
    """Return the exit of a job.

    Raises:
        CaseError: the observation holds neither an exit nor another fact on the job's end.
    """
    if nodes:
        return _job_exit(nodes, str(seen.get("primary")) if seen.has("primary") else next(iter(nodes)))
    if seen.has("exit", *CODE_NAMES, "signal", "wait_status", "raw_status"):
        return _exit(seen)
    if is_stopped:
        return NodeExit(*UNSEEN, ran_out_of_memory=False)
    if not seen.values:
        raise CaseError("observation is empty; expected nodes, exit, event or state")
    return NodeExit(0, 0, ran_out_of_memory=False)


def _watchdog(seen: CaseValues) -> str | None:
    return "timeout" if seen.has_true_key(_WATCHDOG) else None
