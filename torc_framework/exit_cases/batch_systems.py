"""Cases of other batch systems: LSF, PBS and TORQUE, HTCondor, AWS Batch, Grid Engine, Nextflow.

Sources: IBM Spectrum LSF, "Termination reasons displayed by bacct, bhist and bjobs"; Altair PBS
Professional, Administrator's Guide, "Job Exit Codes", and TORQUE, appendix "Diagnostics and Error
Codes"; HTCondor manual, "Job ClassAd Attributes" (HoldReasonCode, ExitBySignal, ExitSignal); AWS
Batch user guide, "Automated job retries"; Grid Engine ``qsub(1)`` (exit 99); Nextflow
documentation, "errorStrategy", with the codes that nf-core's template retries.
"""

import fnmatch
from collections.abc import Mapping
from typing import Any, Final

from torc_framework.exit_cases.case_values import CODE_NAMES, CaseError, CaseValues
from torc_framework.exits.code_signal import LAST_SIGNAL, render_exit
from torc_framework.exits.lsf_reasons import LSF_REASONS
from torc_framework.models.exits import ExitClass

_C = ExitClass

PBS_NEGATIVE: Final[Mapping[int, ExitClass]] = {
    -1: _C.LAUNCH_FAILURE,
    -2: _C.LAUNCH_FAILURE,
    -3: _C.LAUNCH_FAILURE,
    -4: _C.NODE_FAILURE,
    -5: _C.NODE_FAILURE,
    -6: _C.NODE_FAILURE,
    -7: _C.LAUNCH_FAILURE,
    -8: _C.LAUNCH_FAILURE,
    -26: _C.OOM,
    -27: _C.OOM,
    -28: _C.TIMEOUT,
    -29: _C.TIMEOUT,
}
"""Class by exit status of PBS itself; -4 to -6 follow a restart of the node's daemon."""
PBS_TRY_AGAIN: Final = frozenset({-3})
"""Exit statuses that request another attempt."""
_PBS_BASE: Final = ("base", "signal_base", "exit_status_base")
CONDOR_HOLDS: Final[Mapping[int, ExitClass]] = {
    1: _C.CANCELED,
    3: _C.CANCELED,
    6: _C.LAUNCH_FAILURE,
    7: _C.LAUNCH_FAILURE,
    8: _C.LAUNCH_FAILURE,
    9: _C.LAUNCH_FAILURE,
    10: _C.LAUNCH_FAILURE,
    11: _C.LAUNCH_FAILURE,
    12: _C.SERVICE_ERROR,
    13: _C.SERVICE_ERROR,
    14: _C.LAUNCH_FAILURE,
    26: _C.CANCELED,
    34: _C.OOM,
}
"""Class by hold reason code of HTCondor."""
CONDOR_SHADOW: Final[Mapping[int, ExitClass]] = {102: _C.CANCELED, 107: _C.EVICTED, 112: _C.UNKNOWN}
"""Class by exit code of a shadow, except 100 (the job exited)."""
AWS_REASONS: Final[tuple[tuple[str, ExitClass], ...]] = (
    ("OutOfMemoryError*", _C.OOM),
    ("CannotPull*", _C.IMAGE_PULL),
    ("CannotStartContainerError*", _C.LAUNCH_FAILURE),
    ("CannotCreateContainerError*", _C.LAUNCH_FAILURE),
    ("Task failed to start*", _C.LAUNCH_FAILURE),
    ("Host EC2*", _C.NODE_FAILURE),
    ("Job attempt duration exceeded timeout*", _C.TIMEOUT),
)
"""Class by reason or status reason of AWS Batch, with a trailing star as in its own conditions."""


def _by_code(code: int | None) -> ExitClass:
    if code is None:
        return ExitClass.UNKNOWN
    return ExitClass.USER_ERROR if code else ExitClass.SUCCESS


def _answer(named: ExitClass | None, code: Any, **more: Any) -> dict[str, Any]:
    status = "completed" if named is ExitClass.SUCCESS else "failed"
    return {"outcome": named, "status": status, "exit": code, "action": "none", **more}


def classify_lsf(seen: CaseValues) -> dict[str, Any]:
    """Return the end of a job of LSF by its termination reason, else by its code."""
    answer = _lsf_ending(seen)
    return answer | {"status": "DONE" if answer["outcome"] is ExitClass.SUCCESS else "EXIT"}


def _lsf_ending(seen: CaseValues) -> dict[str, Any]:
    code, signal = seen.ending()
    reason = seen.get("term_reason", "termination_reason", "exit_reason", "reason", "scheduler_reason", "term")
    word = str(reason).strip().upper() if reason is not None else ""
    by_number = {str(number): name for name, (number, _) in LSF_REASONS.items()}
    word = by_number.get(word, word if not word or word.startswith("TERM_") else f"TERM_{word}")
    if word in LSF_REASONS:
        return _answer(LSF_REASONS[word][1], code, reason=word)
    if signal:
        return _answer(ExitClass.SIGNALED, code)
    return _answer(_by_code(code) if reason is None or code else ExitClass.UNKNOWN, code, reason=reason)


def classify_pbs(seen: CaseValues, policy: CaseValues) -> dict[str, Any]:
    """Return the end of a job of PBS by its exit status, which above a base is base and signal."""
    return _pbs_ending(seen, policy) | {"status": "F"}


def classify_torque(seen: CaseValues, policy: CaseValues) -> dict[str, Any]:
    """Return the end of a job of TORQUE, whose exit statuses are those of PBS."""
    return _pbs_ending(seen, policy) | {"status": "C"}


def _pbs_ending(seen: CaseValues, policy: CaseValues) -> dict[str, Any]:
    status, signal = seen.ending("exit_status", *CODE_NAMES)
    if status is None:
        return _answer(ExitClass.SIGNALED, None, signal=signal) if signal else _answer(ExitClass.UNKNOWN, None)
    if status < 0:
        named = PBS_NEGATIVE.get(status, ExitClass.UNKNOWN)
        return _answer(named, status) | {"action": "retry" if status in PBS_TRY_AGAIN else "none"}
    base = seen.integer(*_PBS_BASE) or policy.integer(*_PBS_BASE) or (256 if status >= 256 else 128)
    if base < status <= base + LAST_SIGNAL:
        return _answer(ExitClass.SIGNALED, status, signal=status - base)
    return _answer(_by_code(status), status)


def classify_condor(seen: CaseValues) -> dict[str, Any]:
    """Return the end of a job of HTCondor by the reason of a hold, else by code or signal.

    Its status Completed means only that the job has ended.
    """
    hold = seen.integer("hold_reason_code", "HoldReasonCode", "hold_code")
    by_signal = seen.flag("exit_by_signal", "ExitBySignal")
    signal = seen.signal("exit_signal", "ExitSignal", "signal") or 0
    code = seen.ending()[0]
    pair = None if code is None and not signal else render_exit(0 if by_signal else code or 0, signal)
    if hold is not None:
        return _answer(CONDOR_HOLDS.get(hold, ExitClass.UNKNOWN), pair) | {"status": "Held"}
    shadow = seen.integer("shadow_exit_code", "shadow")
    if shadow is not None and shadow in CONDOR_SHADOW:
        return _answer(CONDOR_SHADOW[shadow], pair)
    if by_signal or signal:
        return _answer(ExitClass.SIGNALED, pair) | {"status": "Completed"}
    return _answer(_by_code(code), pair) | {"status": "Completed"}


def classify_aws(seen: CaseValues) -> dict[str, Any]:
    """Return the end of a job of AWS Batch by its reasons, else by its code."""
    if isinstance(seen.get("container"), dict):
        seen = CaseValues(seen.name, {**seen.object("container").values, **seen.values})
    code = seen.ending()[0]
    for text in (seen.text("reason", "container_reason"), seen.text("status_reason", "statusReason")):
        for pattern, named in AWS_REASONS:
            if text is not None and fnmatch.fnmatchcase(text, pattern):
                return _answer(named, code) | {"status": "FAILED"}
    named = _by_code(code)
    return _answer(named, code) | {"status": "SUCCEEDED" if named is ExitClass.SUCCESS else "FAILED"}


def decide_aws(seen: CaseValues, policy: CaseValues) -> dict[str, Any]:
    """Return the action of a retry strategy of AWS Batch: of the first condition that fits, else a retry."""
    answer = classify_aws(seen)
    attempt = seen.integer("attempt", "attempt_id", "attempts") or 1
    if policy.has("retry_strategy", "retryStrategy"):
        policy = CaseValues(policy.name, {**policy.object("retry_strategy", "retryStrategy").values, **policy.values})
    most = policy.integer("attempts") or 1
    texts = {
        "exit_code": "" if answer["exit"] is None else str(answer["exit"]),
        "reason": seen.text("reason", "container_reason") or "",
        "status_reason": seen.text("status_reason", "statusReason") or "",
    }
    if answer["outcome"] is ExitClass.SUCCESS:
        return answer
    action = "RETRY"
    for index, rule in enumerate(policy.objects("evaluate_on_exit", "evaluateOnExit")):
        if _aws_fits(rule, texts):
            action, answer["rule_index"] = str(rule.get("action")).upper(), index
            break
    return answer | {"action": "retry" if action == "RETRY" and attempt < most else "fail"}


def _aws_fits(rule: CaseValues, texts: Mapping[str, str]) -> bool:
    names = {
        "exit_code": ("on_exit_code", "onExitCode"),
        "reason": ("on_reason", "onReason"),
        "status_reason": ("on_status_reason", "onStatusReason"),
    }
    wanted = {what: str(rule.get(*keys)) for what, keys in names.items() if rule.has(*keys)}
    return bool(wanted) and all(_star(texts[what], pattern) for what, pattern in wanted.items())


def _star(text: str, pattern: str) -> bool:
    return text.startswith(pattern[:-1]) if pattern.endswith("*") else text == pattern


SGE_REQUEUE: Final = 99
SGE_ERROR: Final = 100


def classify_plain(seen: CaseValues) -> dict[str, Any]:
    """Return the end of a job by code or signal, for systems without reasons of their own."""
    code, signal = seen.ending()
    return _answer(ExitClass.SIGNALED if signal else _by_code(code), 128 + signal if signal else code)


def decide_sge(seen: CaseValues, _policy: CaseValues) -> dict[str, Any]:
    """Return the action of Grid Engine by a job script's code: 99 queues the job again, 100 holds it."""
    answer = classify_plain(seen)
    return answer | {"action": {SGE_REQUEUE: "retry", SGE_ERROR: "hold"}.get(answer["exit"] or 0, "none")}


NEXTFLOW_RETRIED: Final = frozenset({104, *range(130, 146)})
"""Codes after which nf-core's template requests more resources."""


def decide_nextflow(seen: CaseValues, policy: CaseValues) -> dict[str, Any]:
    """Return the action of an error strategy; nf-core's default is one retry on `NEXTFLOW_RETRIED`, else finish."""
    answer = classify_plain(seen)
    if answer["outcome"] is ExitClass.SUCCESS:
        return answer
    attempt = seen.integer("attempt", "attempt_id") or 1
    most = policy.integer("max_retries", "maxRetries")
    listed = [
        int(code) for code in map(str, policy.items("retry_codes", "codes")) if code.isdecimal()
    ] or NEXTFLOW_RETRIED
    default = "retry" if answer["exit"] in listed else "finish"
    strategy = (policy.text("error_strategy", "errorStrategy", "strategy") or default).lower()
    if strategy not in {"retry", "finish", "terminate", "ignore"}:
        raise CaseError(f"error strategy is {strategy!r}; expected terminate, finish, ignore or retry")
    if strategy == "retry":
        return answer | {"action": "retry" if attempt <= (1 if most is None else most) else "fail"}
    return answer | {"action": "complete" if strategy == "ignore" else "fail"}
