"""Failed attempts and the rules of failure handlers: values, keys and defaults."""

from collections.abc import Mapping
from enum import StrEnum
from typing import Any, Final

from attrs import frozen

from torc_framework.models.exits import ExitClass, ExitObservation, ExitVerdict


@frozen
class Failure:
    """One failed attempt, as failure matchers and recovery policies receive it.

    Attributes:
        workflow_id: The workflow.
        job_id: The job.
        job_name: Its name.
        attempt_id: Number of the failed attempt, from 1.
        return_code: Rendering of the ending as one number.
        observation: What was observed.
        verdict: Its class.
        stdout_path: File with the attempt's standard output; None if it is not kept, or not known.
        stderr_path: File with the attempt's standard error, which may be that of its standard output; None as above.
    """

    workflow_id: int
    job_id: int
    job_name: str
    attempt_id: int
    return_code: int
    observation: ExitObservation
    verdict: ExitVerdict
    stdout_path: str | None = None
    stderr_path: str | None = None


class RuleAction(StrEnum):
    """What a rule that covers a failure does about it."""

    RETRY = "retry"
    """Another attempt, within the rule's budget."""
    FAIL = "fail"
    """The job fails; later rules are not considered."""
    COMPLETE = "complete"
    """The job counts as completed; its dependents run."""


FailureRule = Mapping[str, Any]
"""One rule of a failure handler: keys of the plugin that matches it, and those of `CORE_RULE_KEYS`."""

RuleSchema = Mapping[str, Mapping[str, Any]]
"""JSON-schema fragments by rule key."""

DEFAULT_MAX_RETRIES = 3
"""``max_retries`` of a rule without that key (Torc, "FailureHandlerRuleSpec"): the total number of attempts."""

MATCHER_RULE_KEYS: Final[RuleSchema] = {
    "exit_codes": {
        "type": "array",
        "items": {"type": "integer"},
        "description": "Return codes that it covers.",
    },
    "match_all_exit_codes": {"type": "boolean", "description": "It covers every return code but 0."},
    "exit_classes": {
        "type": "array",
        "items": {"enum": [name.value for name in ExitClass if name is not ExitClass.SUCCESS]},
        "description": "Classes of endings that it covers, such as `oom` or `preempted`.",
    },
    "stderr_regex": {
        "type": "string",
        "minLength": 1,
        "format": "regex",
        "description": "Regular expression that is found near the end of the attempt's standard error.",
    },
}
"""Keys of the built-in matcher, by which a rule covers failures; a rule with several covers what fits all of them."""
CORE_RULE_KEYS: Final[RuleSchema] = {
    "recovery_script": {
        "type": ["string", "null"],
        "minLength": 1,
        "description": "Command that runs before the next attempt.",
    },
    "max_retries": {
        "type": "integer",
        "minimum": 0,
        "default": DEFAULT_MAX_RETRIES,
        "description": "Attempts in all.",
    },
    "delay_seconds": {"type": "number", "minimum": 0, "description": "Wait before the next attempt."},
    "delay_factor": {
        "type": "number",
        "minimum": 1,
        "description": "What the wait is multiplied by for every further attempt; 1 unless given.",
    },
    "delay_jitter": {
        "type": "number",
        "minimum": 0,
        "maximum": 1,
        "description": "Part of the wait by which it is made longer or shorter at random; 0 unless given.",
    },
    "max_delay_seconds": {
        "type": "number",
        "minimum": 0,
        "description": "Longest wait; 3600 unless given.",
    },
}
"""Keys of the core: what a rule does about a failure that it covers."""
DEFAULT_MAX_DELAY_S: Final = 3600.0

SEPARATE_BUDGET_CLASSES: Final = frozenset(
    {ExitClass.PREEMPTED, ExitClass.EVICTED, ExitClass.NODE_FAILURE, ExitClass.ORPHANED}
)
"""Classes of endings that do not count as a job's own attempts; each of these classes has a budget of its own."""
UNCOUNTED_CLASSES: Final = SEPARATE_BUDGET_CLASSES | {ExitClass.INTERRUPTED}
"""Classes of endings that do not count as a job's own attempts; the number of interruptions is not limited."""
