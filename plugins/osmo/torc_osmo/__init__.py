"""Plugin for OSMO: exit actions as a key of failure rules, and classes for OSMO's exit codes."""

from torc_framework.api import (
    ExitClass,
    ExitObservation,
    ExitVerdict,
    Failure,
    FailureRule,
    RuleAction,
    RuleSchema,
    TorcError,
    accepts_clean_exits,
    exit_action_problems,
    hookimpl,
    match_exit_actions,
    osmo_class_of_code,
)

__version__ = "0.1.0"

KEY = "exit_actions"
ACTIONS = {"COMPLETE": RuleAction.COMPLETE, "FAIL": RuleAction.FAIL, "RESCHEDULE": RuleAction.RETRY}
"""Rule action for each of OSMO's actions."""
_CODES = {
    "type": ["string", "integer"],
    "pattern": "^[0-9]+(-[0-9]+)?(,[0-9]+(-[0-9]+)?)*$",
    "minimum": 0,
    "description": "Codes and ranges such as `0-10,16`.",
}
LAST_PROCESS_CODE = 255


@hookimpl
def torc_failure_rule_keys() -> RuleSchema:
    """Register the key ``exit_actions``."""
    names = [name for action in ACTIONS for name in (action, action.lower())]
    return {
        KEY: {
            "type": "object",
            "properties": dict.fromkeys(names, _CODES),
            "additionalProperties": False,
            "minProperties": 1,
            "description": "Return codes by what is done about them, as in OSMO.",
        }
    }


@hookimpl
def torc_match_failure(rule: FailureRule, failure: Failure) -> RuleAction | bool | None:
    """Return the action of the first exit action that lists the return code; None for rules without the key.

    Raises:
        TorcError: the stored rule is invalid.
    """
    actions = rule.get(KEY)
    if actions is None:
        return None
    if problems := exit_action_problems(actions, failure.job_name):
        raise TorcError("; ".join(problems))
    action = match_exit_actions(actions, failure.return_code)
    return False if action is None else ACTIONS[action]


@accepts_clean_exits
@hookimpl
def torc_classify_exit(observation: ExitObservation) -> ExitVerdict | None:
    """Classify exit codes above those of processes by OSMO's table; None for other codes."""
    code = observation.exit_code
    if code is None or code <= LAST_PROCESS_CODE or observation.stop_reason is not None:
        return None
    named = osmo_class_of_code(code)
    if named is ExitClass.UNKNOWN:
        return None
    return ExitVerdict(named, f"OSMO's code {code}", 0.9, ("exit_code",))
