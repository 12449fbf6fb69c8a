"""Cases of Torc's own jobs: the end of an attempt.

The observation has facts, and words for the cause of a stop, such as ``killed_by: memory_monitor``, ``sigterm_sent:
true`` and ``canceled: true``.
"""

import re
from collections.abc import Mapping
from typing import Any, Final

from torc_framework.exit_cases.case_values import CaseValues
from torc_framework.exit_cases.slurm import state_and_reason
from torc_framework.exits.classifier import classify_exit, exit_return_code, status_of
from torc_framework.exits.code_signal import OOM_MARK
from torc_framework.models.exits import (
    OOM_RETURN_CODE,
    ORPHANED_RETURN_CODE,
    TIMEOUT_RETURN_CODE,
    ExitClass,
    ExitObservation,
    StopReason,
)

STOP_WORDS: Final[tuple[tuple[StopReason, re.Pattern[str]], ...]] = (
    (StopReason.CANCELED, re.compile(r"(?<!sc)cancel")),
    (
        StopReason.MEMORY_LIMIT,
        re.compile(r"oom|memory_?-?\s?(limit|watch)|out_of_memory|monitor(?!ed|ing)"),
    ),
    (StopReason.RUNTIME_LIMIT, re.compile(r"runtime_?limit|job_timeout")),
    (StopReason.SHUTDOWN, re.compile(r"shut_?down|runner_?(end|stop|interrupt)|sigint|sighup")),
)
"""Words for the reason for which the runner stopped an attempt; an earlier entry has precedence."""
_WARNING_WORDS: Final = re.compile(
    r"time_?-?\s?limit|time_?out|end_?time|end_reached|limit_reached|wall_?time|sigterm|terminat|by_runner|deadline"
)
"""Words for a warning before the attempt's own limit; code 0 after it is a success."""
_LOST_WORDS: Final = re.compile(r"orphan|runner_?(gone|lost|dead|died|vanished|crashed|killed)|^lost$|node_lost")
_LAUNCH_WORDS: Final = re.compile(r"launch_?(fail|error)|spawn_?(fail|error)|not_started")
_KILL_WORDS: Final = re.compile(r"sigkill|forced|killed_after|had_to_be_killed")
_NO_WORDS_OF_STOPPING: Final = frozenset(
    {
        "scheduler_state",
        "scheduler_reason",
        "state",
        "exit",
        "executor",
        "command",
        "name",
        "message",
        "memory_limit",
        "runtime_limit",
        "supports_termination",
        "signal_name",
        "stderr",
    }
)


def observe(seen: CaseValues, policy: CaseValues, executor: str) -> ExitObservation:
    """Return the observation that a case describes.

    Raises:
        CaseError: a value has an invalid form.
    """
    stops = CaseValues(
        seen.name, {key: value for key, value in seen.values.items() if key not in _NO_WORDS_OF_STOPPING}
    )
    words = list(stops.words())
    code, signal = seen.ending()
    was_marked = signal == OOM_MARK
    if was_marked:
        signal, code = None, code or None
    lost = code == ORPHANED_RETURN_CODE or any(map(_LOST_WORDS.search, words))
    if code is not None and code < 0:  # the form of Python for the end by a signal
        signal = signal if lost else signal or -code
        code = None
    signal = signal or None
    peak, limit = _peak(seen), _limit(seen)
    reason = next((why for why, pattern in STOP_WORDS if any(map(pattern.search, words))), None)
    is_warned = reason is None and any(map(_WARNING_WORDS.search, words))
    reason = StopReason.RUNTIME_LIMIT if is_warned else reason
    if reason is None and signal == 9 and peak and limit and peak > limit and policy.flag("limit_resources"):
        reason = StopReason.MEMORY_LIMIT
    forced = signal == 9 or any(map(_KILL_WORDS.search, words))
    missing = seen.get("outputs_missing", "missing_outputs")
    missing = [missing] if isinstance(missing, str) and missing.lower() not in {"true", "false", ""} else missing
    state, given_reason = state_and_reason(seen, "scheduler_state", "step_state", "state")
    launch_error = seen.get("launch_error", "spawn_error") or next(filter(_LAUNCH_WORDS.search, words), None)
    return ExitObservation(
        executor=executor,
        exit_code=None if signal and not code else code,
        signal=9 if forced and signal is None and code is None and reason else signal,
        stop_reason=reason,
        stop_forced=forced and reason is not None,
        clean_exit="completed" if is_warned else "auto",
        launch_error=None if launch_error is None else str(launch_error),
        lost=lost,
        missing_outputs=tuple(map(str, missing)) if isinstance(missing, list) else ("",) * int(bool(missing)),
        scheduler_state=state,
        scheduler_reason=seen.text("scheduler_reason") or given_reason or ("OutOfMemory" if was_marked else None),
        peak_memory_bytes=peak,
        memory_limit_bytes=limit,
        oom_kills=seen.integer("oom_kills", "cgroup_oom_kills"),
    )


def _peak(seen: CaseValues) -> int | None:
    kib = seen.get("max_rss_kib")
    if isinstance(kib, (int, float)) or (isinstance(kib, str) and kib.strip().isdecimal()):
        return (seen.integer("max_rss_kib") or 0) * 1024
    return seen.size("max_rss_kib", "peak_memory_bytes", "max_rss", "MaxRSS", "peak_memory")


def _limit(seen: CaseValues) -> int | None:
    return seen.size("memory_limit", "memory_limit_bytes")


def answer(seen: CaseValues, policy: CaseValues, executor: str) -> dict[str, Any]:
    """Return class, status and return code of an ending."""
    observation = observe(seen, policy, executor)
    verdict = classify_exit(observation)
    status = status_of(verdict, observation.stop_reason)
    code: int | None = exit_return_code(
        observation,
        verdict,
        oom_exit_code=policy.integer("oom_exit_code") or OOM_RETURN_CODE,
        timeout_exit_code=policy.integer("timeout_exit_code") or TIMEOUT_RETURN_CODE,
    )
    if observation.exit_code is None and observation.stop_reason is StopReason.CANCELED:
        code = None  # an attempt without a code of its own gets none
    is_warned = observation.stop_reason is StopReason.SHUTDOWN or observation.clean_exit == "completed"
    if is_warned and observation.signal and not observation.stop_forced:
        code = 128 + observation.signal  # the warning ended it, without SIGKILL
    return {
        "outcome": verdict.exit_class,
        "status": status.label,
        "exit": code,
        "action": "none",
        "reason": verdict.reason,
        "confidence": verdict.confidence,
        "evidence": list(verdict.evidence),
        "signal": observation.signal,
    }


_BY_CODE: Final[Mapping[int, ExitClass]] = {
    0: ExitClass.SUCCESS,
    TIMEOUT_RETURN_CODE: ExitClass.TIMEOUT,
    ORPHANED_RETURN_CODE: ExitClass.ORPHANED,
}
_BY_STATUS: Final[Mapping[str, ExitClass]] = {
    "completed": ExitClass.SUCCESS,
    "canceled": ExitClass.CANCELED,
    "terminated": ExitClass.TIMEOUT,
}


def class_of_result(code: int | None, status: str | None) -> ExitClass:
    """Return the class of a result by its return code and status alone."""
    if status is not None and status in _BY_STATUS:
        return _BY_STATUS[status]
    if code is None:
        return ExitClass.UNKNOWN
    return _BY_CODE.get(code, ExitClass.USER_ERROR if code else ExitClass.SUCCESS)
