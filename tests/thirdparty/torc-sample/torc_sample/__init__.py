"""A sample plugin: an executor, a classifier and a failure matcher.

Exit code 42 is called preempted; the rule key ``answer`` covers codes by their text.
"""

from collections.abc import Sequence

from torc_framework.api import (
    ExitClass,
    ExitObservation,
    ExitVerdict,
    Failure,
    FailureRule,
    Launcher,
    RuleSchema,
    hookimpl,
)
from torc_sample.executor import SampleLauncher

PREEMPTED_CODE = 42


@hookimpl
def torc_executors() -> Sequence[type[Launcher]]:
    """Offer the sample executor."""
    return [SampleLauncher]


@hookimpl
def torc_classify_exit(observation: ExitObservation) -> ExitVerdict | None:
    """Speak for one code of the sample executor; pass on everything else."""
    if observation.executor != SampleLauncher.name or observation.exit_code != PREEMPTED_CODE:
        return None
    return ExitVerdict(ExitClass.PREEMPTED, "the sample says so", evidence=("exit_code",))


@hookimpl
def torc_failure_rule_keys() -> RuleSchema:
    """Own one key."""
    return {"answer": {"type": "string", "description": "Text of the return code."}}


@hookimpl
def torc_match_failure(rule: FailureRule, failure: Failure) -> bool | None:
    """Answer for rules with the key."""
    if "answer" not in rule:
        return None
    return bool(rule["answer"] == str(failure.return_code))
