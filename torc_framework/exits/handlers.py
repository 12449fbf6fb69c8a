"""Failure handlers: which rule answers a failure, and whether its budget allows another attempt.

Source: Torc documentation, "Failure Handlers" (tutorial and design) and "Failure Handler Rules".
Rules that list the code come first, catch-alls after them. ``max_retries: N`` allows N attempts in
all; the count is the job's, not the rule's.
"""

from collections.abc import Mapping, Sequence
from typing import Any, Final

from torc_framework.exits.facts import CODE_NAMES, CaseError, CaseValues
from torc_framework.exits.torc import class_of_result
from torc_framework.models.exits import ExitClass
from torc_framework.models.failures import DEFAULT_MAX_DELAY_S, DEFAULT_MAX_RETRIES, FailureRule

HANDLED: Final = frozenset({"failed", "terminated"})
"""Statuses that failure rules may answer."""
_I32: Final = 2**31
_HUGE: Final = 1e300


def rules_in_order(rules: Sequence[FailureRule], return_code: int) -> list[FailureRule]:
    """Return rules in the order in which they are asked: as written, catch-alls after those that are specific."""

    def is_catch_all(rule: FailureRule) -> bool:
        codes = rule.get("exit_codes")
        names_it = isinstance(codes, list) and return_code in codes
        return bool(rule.get("match_all_exit_codes")) and not names_it

    return sorted(rules, key=is_catch_all)


def lists(rule: FailureRule, return_code: int) -> bool:
    """Say whether a rule covers a return code by its own keys."""
    codes = rule.get("exit_codes")
    return bool(rule.get("match_all_exit_codes")) or (isinstance(codes, list) and return_code in codes)


def attempts_allowed(rule: FailureRule) -> int:
    """Return the attempts in all that a rule allows."""
    limit = rule.get("max_retries", DEFAULT_MAX_RETRIES)
    return limit if isinstance(limit, int) and not isinstance(limit, bool) else DEFAULT_MAX_RETRIES


def retry_delay_s(rule: FailureRule, attempt_id: int, spread: float) -> float:
    """Return how long a rule lets the attempt after ``attempt_id`` wait, seconds.

    Args:
        spread: -1 to 1: where in the range of the jitter.
    """
    first = _number(rule, "delay_seconds", 0.0)
    most = _number(rule, "max_delay_seconds", DEFAULT_MAX_DELAY_S)
    factor, jitter = _number(rule, "delay_factor", 1.0), min(_number(rule, "delay_jitter", 0.0), 1.0)
    if first <= 0:
        return 0.0
    try:
        wait = min(first * max(factor, 1.0) ** (attempt_id - 1), most)
    except OverflowError:
        wait = most
    return min(wait * (1 + jitter * spread), most)


def _number(rule: FailureRule, key: str, default: float) -> float:
    """Return a number of a rule; what others stored may be none, and then counts as absent."""
    value = rule.get(key)
    if isinstance(value, (int, float)) and not isinstance(value, bool) and 0 <= value < _HUGE:
        return float(value)
    return default


def problems_of(rule: Any) -> list[str]:
    """Return what is wrong with one rule of Torc's own keys."""
    if not isinstance(rule, Mapping):
        return [f"a rule is {rule!r}; expected an object such as {{'exit_codes': [10]}}"]
    checks = {
        "exit_codes": (_is_codes, "a list of whole numbers"),
        "match_all_exit_codes": (lambda value: isinstance(value, bool), "true or false"),
        "recovery_script": (lambda value: value is None or isinstance(value, str), "a command"),
        "max_retries": (_is_i32, "a whole number"),
    }
    problems = [f"{key} is no key of a rule; known: {', '.join(checks)}" for key in rule if key not in checks]
    for key, (is_right, expected) in checks.items():
        if key in rule and not is_right(rule[key]):
            problems.append(f"{key} is {rule[key]!r}; expected {expected}")
    return problems


def _is_i32(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and -_I32 <= value < _I32


def _is_codes(value: Any) -> bool:
    return isinstance(value, list) and all(map(_is_i32, value))


def decide(seen: CaseValues, policy: CaseValues) -> dict[str, Any]:
    """Answer what a failure handler does about a failed attempt."""
    code, signal = seen.ending("return_code", *CODE_NAMES)
    if signal and not code:
        code = 128 + signal
    attempt = seen.integer("attempt_id", "attempt") or 1
    status = (seen.text("status") or ("failed" if code else "completed")).lower()
    answer: dict[str, Any] = {
        "outcome": ExitClass.SIGNALED if signal else class_of_result(code, status),
        "status": status,
        "exit": code,
        "action": "none",
        "rule_index": None,
        "next_attempt_id": None,
    }
    if status not in HANDLED or code is None:
        return answer
    if policy.has("failure_handler"):
        policy = CaseValues(policy.name, {**policy.object("failure_handler").values, **policy.values})
    rules = [policy.get("rules")] if isinstance(policy.get("rules"), dict) else policy.items("rules")
    for rule in rules:
        if problems := problems_of(rule):
            raise CaseError("; ".join(problems))
    chosen = next((rule for rule in rules_in_order(rules, code) if lists(rule, code)), None)
    if chosen is None:
        is_pending = policy.flag("use_pending_failed")
        return answer | ({"status": "pending_failed", "action": "pend"} if is_pending else {"action": "fail"})
    answer["rule_index"] = next(index for index, rule in enumerate(rules) if rule is chosen)
    if attempt >= attempts_allowed(chosen) or _is_refused(seen):
        return answer | {"action": "fail", "runs_script": False}
    answer |= {"status": "ready", "action": "retry", "next_attempt_id": attempt + 1}
    answer["runs_script"] = chosen.get("recovery_script") is not None
    if seen.integer("recovery_script_exit", "recovery_script_exit_code", "script_exit_code", "recovery_exit_code"):
        answer["warning"] = "the recovery script failed; the job is retried all the same"
    return answer


def _is_refused(seen: CaseValues) -> bool:
    """The server would not reserve the retry: another run, status or attempt by then."""
    for key, value in seen.values.items():
        if "reserv" in key and (value is False or (isinstance(value, str) and "refus" in value.lower())):
            return True
        if "refus" in key and value is True:
            return True
    return False
