"""Plugin for verdicts on failures that no rule covers: by patterns in their logs, and optionally by an AI agent."""

import logging
from collections.abc import Mapping, Sequence
from typing import Final

from torc_framework.api import Failure, PendingContext, PendingVerdict, RecoveryAction, hookimpl

__version__ = "0.1.0"

MAX_ATTEMPTS: Final = 3
"""Largest total number of attempts of a job, unless the command has another one."""
_log = logging.getLogger("torc_framework.recovery_ai")


@hookimpl
def torc_classify_pending(failures: Sequence[Failure], context: PendingContext) -> Mapping[int, PendingVerdict]:
    """Judge by patterns; with the option ``ai_agent``, ask the agent about the failures without a pattern."""
    from torc_recovery_ai.agents import AgentError, ask
    from torc_recovery_ai.patterns import judge

    verdicts = {failure.job_id: judge(failure) for failure in failures}
    least = float(context.settings.get("min_confidence", 0.8))
    name = context.settings.get("ai_agent")
    unsure = [failure for failure in failures if not _is_decisive(verdicts[failure.job_id], least)]
    if name and unsure:
        try:
            verdicts |= ask(str(name), unsure, context)
        except AgentError as error:
            _log.warning("%s", error)
            reason = f"the agent gave no verdict: {error}"
            verdicts |= {failure.job_id: PendingVerdict(RecoveryAction.DEFER, reason, 0.0) for failure in unsure}
    limit = int(context.settings.get("max_attempts", MAX_ATTEMPTS))
    return {failure.job_id: _within_attempts(failure, verdicts[failure.job_id], limit) for failure in failures}


def _is_decisive(verdict: PendingVerdict, least: float) -> bool:
    return verdict.action is not RecoveryAction.DEFER and verdict.confidence >= least


def _within_attempts(failure: Failure, verdict: PendingVerdict, limit: int) -> PendingVerdict:
    """Return the verdict; a retry of a job that has had all its attempts is deferred to a person."""
    if verdict.action is RecoveryAction.RETRY and failure.attempt_id >= limit:
        reason = f"it has had {failure.attempt_id} attempts; {verdict.reason}"
        return PendingVerdict(RecoveryAction.DEFER, reason, verdict.confidence, verdict.evidence)
    return verdict
