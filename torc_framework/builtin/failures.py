"""The built-in failure matcher: rules by exit code."""

from torc_framework.api import Failure, FailureRule, RuleSchema, hookimpl


@hookimpl(trylast=True)
def torc_failure_rule_keys() -> RuleSchema:
    """Own ``exit_codes`` and ``match_all_exit_codes``."""
    return {
        "exit_codes": {"type": "array", "items": {"type": "integer"}, "description": "Return codes that it covers."},
        "match_all_exit_codes": {"type": "boolean", "description": "It covers every return code but 0."},
    }


@hookimpl(trylast=True)
def torc_match_failure(rule: FailureRule, failure: Failure) -> bool | None:
    """Match the return code; no opinion on rules without our keys."""
    if "exit_codes" not in rule and "match_all_exit_codes" not in rule:
        return None
    return bool(rule.get("match_all_exit_codes")) or failure.return_code in (rule.get("exit_codes") or ())
