"""Job states and end reasons of Slurm, and their exit classes.

Sources: Slurm, "squeue" (section JOB STATE CODES), "sacct" (JOB STATE CODES) and "Job Exit Codes".
"""

import re
from collections.abc import Mapping
from typing import Final

from attrs import frozen

from torc_framework.exits.code_signal import OOM_MARK, render_end_reason
from torc_framework.models.exits import ExitClass, ExitObservation


@frozen
class SlurmState:
    """One job state: its short code, its exit class, and the reason shown for it.

    ``exit_class`` is None for states that are not final. The class of ``FAILED`` depends on the exit code.
    """

    code: str
    exit_class: ExitClass | None
    meaning: str
    reason: str = "None"


_C = ExitClass
STATES: Final[Mapping[str, SlurmState]] = {
    "COMPLETED": SlurmState("CD", _C.SUCCESS, "ended with code 0"),
    "FAILED": SlurmState("F", _C.UNKNOWN, "ended with another code or by a signal"),
    "CANCELLED": SlurmState("CA", _C.CANCELED, "canceled by its user or an administrator"),
    "TIMEOUT": SlurmState("TO", _C.TIMEOUT, "reached its time limit", "TimeLimit"),
    "DEADLINE": SlurmState("DL", _C.TIMEOUT, "reached its deadline", "DeadLine"),
    "OUT_OF_MEMORY": SlurmState("OOM", _C.OOM, "ran out of memory", "OutOfMemory"),
    "NODE_FAIL": SlurmState("NF", _C.NODE_FAILURE, "one of its nodes failed", "NodeDown"),
    "BOOT_FAIL": SlurmState("BF", _C.NODE_FAILURE, "its node did not start", "BootFailure"),
    "PREEMPTED": SlurmState("PR", _C.PREEMPTED, "made way for another job", "Preempted"),
    "REVOKED": SlurmState("RV", _C.CANCELED, "another cluster of the federation took it"),
    "PENDING": SlurmState("PD", None, "waits"),
    "RUNNING": SlurmState("R", None, "runs"),
    "SUSPENDED": SlurmState("S", None, "is suspended"),
    "COMPLETING": SlurmState("CG", None, "is ending"),
    "CONFIGURING": SlurmState("CF", None, "its nodes are getting ready"),
    "STOPPED": SlurmState("ST", None, "is stopped and keeps its CPUs"),
    "SPECIAL_EXIT": SlurmState("SE", None, "was requeued in a special state"),
    "RESIZING": SlurmState("RS", None, "changes its size"),
    "SIGNALING": SlurmState("SI", None, "is being signaled"),
    "STAGE_OUT": SlurmState("SO", None, "stages files out"),
    "REQUEUED": SlurmState("RQ", None, "is requeued"),
    "REQUEUE_HOLD": SlurmState("RH", None, "is requeued and held"),
    "REQUEUE_FED": SlurmState("RF", None, "is requeued by a federation"),
    "RESV_DEL_HOLD": SlurmState("RD", None, "is held: its reservation was deleted"),
}
_BY_CODE: Final = {state.code: name for name, state in STATES.items()}
_LONG_NAMES: Final = {"NODE_FAILED": "NODE_FAIL", "CANCELED": "CANCELLED"}

REASONS: Final[Mapping[str, ExitClass | None]] = {
    "None": None,
    "NonZeroExitCode": _C.USER_ERROR,
    "RaisedSignal": _C.SIGNALED,
    "OutOfMemory": _C.OOM,
    "TimeLimit": _C.TIMEOUT,
    "DeadLine": _C.TIMEOUT,
    "NodeDown": _C.NODE_FAILURE,
    "BootFailure": _C.NODE_FAILURE,
    "JobLaunchFailure": _C.LAUNCH_FAILURE,
    "Preempted": _C.PREEMPTED,
    "JobHoldMaxRequeue": None,
    "JobHeldUser": None,
    "JobHeldAdmin": None,
}
"""Class by end reason; None if the reason does not determine it."""


def normal_state(text: str) -> str | None:
    """Return the name of a printed state: truncated (``CANCELLED+``), with a user, or short; None if unknown."""
    words = text.split()
    if not words:
        return None
    word = words[0].upper()
    if word.endswith("+"):
        found = [name for name in STATES if name.startswith(word[:-1])]
        return found[0] if len(found) == 1 else None
    word = _LONG_NAMES.get(word, word)
    return word if word in STATES else _BY_CODE.get(word)


SENTENCES: Final[tuple[tuple[re.Pattern[str], ExitClass], ...]] = (
    (re.compile(r"\bNode failure on \S|\bDUE TO NODE FAILURE\b"), _C.NODE_FAILURE),
    (re.compile(r"\bDUE TO TIME LIMIT\b"), _C.TIMEOUT),
    (re.compile(r"\bDUE TO PREEMPTION\b"), _C.PREEMPTED),
    (re.compile(r"\bOut Of Memory\b|\boom-kill event"), _C.OOM),
)
"""Messages of ``srun`` and ``slurmstepd`` on a step (in ``step_launch.c``, ``task_state.c`` and ``mgr.c`` of Slurm)."""


def class_of_sentence(text: str) -> ExitClass | None:
    """Return the class for a message of Slurm on a step; None if the message does not determine it."""
    return next((named for pattern, named in SENTENCES if pattern.search(text)), None)


def is_uncanceled_step(seen: ExitObservation) -> bool:
    """Return whether a step with the state CANCELLED was not canceled, but failed by itself.

    Slurm's accounting gives that state, without ``by`` and a user, to every step that ended by a signal.
    """
    state = (seen.scheduler_state or "").strip()
    return state == "CANCELLED" and "step" in seen.raw and bool(seen.signal or seen.exit_code)


def class_of(state: str, code: int | None = None, signal: int | None = None) -> ExitClass | None:
    """Return the class of an ending in a state; None for a state that is not final, ``unknown`` for an unknown one."""
    name = normal_state(state)
    if name is None:
        return ExitClass.UNKNOWN
    if name != "FAILED":
        return STATES[name].exit_class
    if signal and signal != OOM_MARK:
        return ExitClass.SIGNALED
    return ExitClass.USER_ERROR if code else ExitClass.UNKNOWN


def reason_of(state: str, code: int = 0, signal: int = 0) -> str:
    """Return the end reason for a state and its exit code."""
    name = normal_state(state)
    if name != "FAILED":
        return STATES[name].reason if name else "None"
    if signal and signal != OOM_MARK:
        return render_end_reason("RaisedSignal", signal)
    return "NonZeroExitCode" if code else "None"
