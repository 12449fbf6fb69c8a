"""Exit actions of OSMO as a key of failure rules, and names for endings told in its codes."""

from torc_framework.api import (
    ExitClass,
    ExitObservation,
    ExitVerdict,
    Failure,
    FailureRule,
    RuleAction,
    RuleSchema,
    TorcError,
    exit_action_problems,
    hookimpl,
    match_exit_actions,
    osmo_class_of_code,
)

__version__ = "0.1.0"

KEY = "exit_actions"
ACTIONS = {"COMPLETE": RuleAction.COMPLETE, "FAIL": RuleAction.FAIL, "RESCHEDULE": RuleAction.RETRY}
"""What each of OSMO's actions is here."""
_CODES = {
    "type": ["string", "integer"],
    "pattern": "^[0-9]+(-[0-9]+)?(,[0-9]+(-[0-9]+)?)*$",
    "minimum": 0,
    "description": "Codes and ranges such as `0-10,16`.",
}
LAST_PROCESS_CODE = 255


@hookimpl
def torc_failure_rule_keys() -> RuleSchema:
    """Own ``exit_actions``."""
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
    """Return what the first action that lists the return code wants; no opinion on rules without our key.

    Raises:
        TorcError: the rule was stored by somebody who did not check it.
    """
    actions = rule.get(KEY)
    if actions is None:
        return None
    if problems := exit_action_problems(actions, failure.job_name):
        raise TorcError("; ".join(problems))
    action = match_exit_actions(actions, failure.return_code)
    return False if action is None else ACTIONS[action]


@hookimpl
def torc_classify_exit(observation: ExitObservation) -> ExitVerdict | None:
    """Name codes that no process can end with by OSMO's table; no opinion on others."""
    code = observation.exit_code
    if code is None or code <= LAST_PROCESS_CODE or observation.stop_reason is not None:
        return None
    named = osmo_class_of_code(code)
    if named is ExitClass.UNKNOWN:
        return None
    return ExitVerdict(named, f"OSMO's code {code}", 0.9, ("exit_code",))
