"""Choice of the rule of a failure handler that answers a failure, and the retries that the rule allows.

Source: Torc documentation, "Failure Handlers" (tutorial and design) and "Failure Handler Rules". Rules are considered
in their written order, but catch-all rules after the others. ``max_retries: N`` allows N attempts in all; all attempts
of the job count, also those for which other rules were chosen.
"""

from collections.abc import Callable, Sequence
from typing import Final, TypeVar

from torc_framework.models.failures import DEFAULT_MAX_DELAY_S, DEFAULT_MAX_RETRIES, FailureRule

T = TypeVar("T")

RULE_STATUSES: Final = frozenset({"failed", "terminated"})
"""Statuses of ended attempts to which failure rules apply."""
_HUGE: Final = 1e300


def rules_in_order(rules: Sequence[FailureRule], return_code: int) -> list[FailureRule]:
    """Return rules in the order in which they are considered: as written, but catch-all rules last.

    A rule with ``match_all_exit_codes`` is no catch-all rule for a return code that its ``exit_codes`` list.
    """

    def is_catch_all(rule: FailureRule) -> bool:
        codes = rule.get("exit_codes")
        names_it = isinstance(codes, list) and return_code in codes
        return bool(rule.get("match_all_exit_codes")) and not names_it

    return sorted(rules, key=is_catch_all)


def covers_ending(
    rule: FailureRule,
    return_code: int,
    exit_class: str | None,
    find_in_stderr: Callable[[str], bool] | None = None,
) -> bool | None:
    """Return whether a rule covers a failure by its keys of `MATCHER_RULE_KEYS`; None if it has none of these keys.

    A rule with several of these keys covers the failures that fit all of them.

    Args:
        rule: The rule; its other keys are ignored.
        return_code: Return code of the failed attempt.
        exit_class: Class of its ending.
        find_in_stderr: Returns whether a ``stderr_regex`` is found in the attempt's standard error. Without it the key
            is ignored.
    """
    fits = []
    if "exit_codes" in rule or "match_all_exit_codes" in rule:
        fits.append(bool(rule.get("match_all_exit_codes")) or return_code in (rule.get("exit_codes") or ()))
    if "exit_classes" in rule:
        fits.append(exit_class in (rule["exit_classes"] or ()))
    if "stderr_regex" in rule and find_in_stderr is not None:
        fits.append(find_in_stderr(rule["stderr_regex"]))
    return all(fits) if fits else None


def choose_rule(
    rules: Sequence[FailureRule], return_code: int, match: Callable[[FailureRule], T | None]
) -> tuple[FailureRule, T] | None:
    """Return the first rule that covers a failure, with the result of ``match``; None if no rule covers it.

    Args:
        rules: The rules as they are written.
        return_code: Return code of the failed attempt.
        match: Returns a true value for a rule that covers the failure.
    """
    matches = ((rule, match(rule)) for rule in rules_in_order(rules, return_code))
    return next(((rule, found) for rule, found in matches if found), None)


def attempts_allowed(rule: FailureRule) -> int:
    """Return the total number of attempts that a rule allows."""
    limit = rule.get("max_retries", DEFAULT_MAX_RETRIES)
    return limit if isinstance(limit, int) and not isinstance(limit, bool) else DEFAULT_MAX_RETRIES


def retry_delay_s(rule: FailureRule, attempt_id: int, spread: float) -> float:
    """Return the delay, in seconds, of the attempt after ``attempt_id`` by a rule.

    Args:
        rule: The rule.
        attempt_id: The failed attempt.
        spread: Position in the range of the jitter, -1 to 1.
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
    """Return a number of a rule, or the default where the stored value is no finite number from 0."""
    value = rule.get(key)
    if isinstance(value, (int, float)) and not isinstance(value, bool) and 0 <= value < _HUGE:
        return float(value)
    return default
