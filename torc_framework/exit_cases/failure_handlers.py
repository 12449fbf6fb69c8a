"""Decision of Torc's failure handlers on a failed attempt, for cases.

Source: Torc documentation, "Failure Handlers" (tutorial and design) and "Failure Handler Rules".
"""

from collections.abc import Mapping
from typing import Any, Final

from torc_framework.exit_cases.case_values import CODE_NAMES, CaseError, CaseValues
from torc_framework.exit_cases.torc import class_of_result
from torc_framework.exits.failure_rules import RULE_STATUSES, attempts_allowed, choose_rule, covers_ending
from torc_framework.models.exits import ExitClass

_I32: Final = 2**31


def rule_problems(rule: Any) -> list[str]:
    """Return the problems of one rule with Torc's own keys."""
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
    """Return the action of a failure handler after a failed attempt."""
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
    if status not in RULE_STATUSES or code is None:
        return answer
    if policy.has("failure_handler"):
        policy = CaseValues(policy.name, {**policy.object("failure_handler").values, **policy.values})
    rules = [policy.get("rules")] if isinstance(policy.get("rules"), dict) else policy.items("rules")
    for rule in rules:
        if problems := rule_problems(rule):
            raise CaseError("; ".join(problems))
    found = choose_rule(rules, code, lambda rule: covers_ending(rule, code, None))
    if found is None:
        is_pending = policy.flag("use_pending_failed")
        return answer | ({"status": "pending_failed", "action": "pend"} if is_pending else {"action": "fail"})
    chosen, _ = found
    answer["rule_index"] = next(index for index, rule in enumerate(rules) if rule is chosen)
    if attempt >= attempts_allowed(chosen) or _is_refused(seen):
        return answer | {"action": "fail", "runs_script": False}
    answer |= {"status": "ready", "action": "retry", "next_attempt_id": attempt + 1}
    answer["runs_script"] = chosen.get("recovery_script") is not None
    if seen.integer("recovery_script_exit", "recovery_script_exit_code", "script_exit_code", "recovery_exit_code"):
        answer["warning"] = "the recovery script failed; the job is retried all the same"
    return answer


def _is_refused(seen: CaseValues) -> bool:
    """Return whether the server refused the retry, because run, status or attempt had changed."""
    for key, value in seen.values.items():
        if "reserv" in key and (value is False or (isinstance(value, str) and "refus" in value.lower())):
            return True
        if "refus" in key and value is True:
            return True
    return False
