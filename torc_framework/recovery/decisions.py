"""Decisions of the recovery policies on failed jobs."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Final

from attrs import frozen

from torc_framework.models.recovery import RecoveryAction, RecoveryDecision, Repair
from torc_framework.models.resources import format_duration, format_memory
from torc_framework.recovery.failed_jobs import RecoveryCase

if TYPE_CHECKING:
    from torc_framework.plugins.manager import PluginManager

UNKNOWN: Final = "unknown"
"""Cause of failures on which no policy decides."""


@frozen
class JobDecision:
    """The decision on one failed job.

    Attributes:
        is_unknown: No policy decided.
    """

    case: RecoveryCase
    decision: RecoveryDecision
    is_unknown: bool = False

    @property
    def is_retry(self) -> bool:
        """Whether the job runs again."""
        return self.decision.action is RecoveryAction.RETRY

    def as_dict(self) -> dict[str, Any]:
        """Return the decision as JSON values; a request that does not change is null."""
        job, seen, decision = self.case.job, self.case.seen, self.decision
        memory, runtime = decision.memory_bytes, decision.runtime_s
        return {
            "job_id": job.id,
            "job_name": job.name,
            "status": job.status,
            "attempt_id": job.attempt_id,
            "return_code": seen.failure.return_code,
            "exit_class": seen.failure.verdict.exit_class.value,
            "action": decision.action.value,
            "causes": list(decision.causes),
            "reason": decision.reason,
            "decided_by": decision.decided_by,
            "confidence": decision.confidence,
            "evidence": list(decision.evidence),
            "recoveries": seen.recoveries,
            "memory": format_memory(seen.memory_bytes),
            "new_memory": None if memory is None else format_memory(memory),
            "runtime": format_duration(seen.runtime_s),
            "new_runtime": None if runtime is None else format_duration(runtime),
            "num_cpus": seen.num_cpus,
            "new_num_cpus": decision.num_cpus,
        }


def decide(
    plugins: "PluginManager", cases: Sequence[RecoveryCase], *, retry_unknown: bool, has_hook: bool
) -> list[JobDecision]:
    """Ask the policies about each job.

    Args:
        retry_unknown: Also run unknown failures again.
        has_hook: A recovery hook runs before unknown failures run again.
    """
    return [_decide(plugins, case, retry_unknown=retry_unknown, has_hook=has_hook) for case in cases]


def _decide(plugins: "PluginManager", case: RecoveryCase, *, retry_unknown: bool, has_hook: bool) -> JobDecision:
    decision = plugins.decide_recovery(case.seen)
    if decision is not None:
        return JobDecision(case, decision)
    failure = case.seen.failure
    what = f"unknown failure ({failure.verdict.reason})"
    if has_hook:
        action, reason, who = RecoveryAction.RETRY, f"{what}, running it again after the recovery hook", "recovery_hook"
    elif retry_unknown:
        action, reason, who = RecoveryAction.RETRY, f"{what}, running it again as it is", "retry_unknown"
    else:
        action, reason, who = RecoveryAction.DEFER, what, ""
    evidence = (f"return_code={failure.return_code}",)
    decided = RecoveryDecision(action, reason, causes=(UNKNOWN,), confidence=0.0, evidence=evidence, decided_by=who)
    return JobDecision(case, decided, is_unknown=True)


def repair_of(decided: JobDecision) -> Repair:
    """Return the repair that the server is asked to apply to a job that runs again."""
    decision = decided.decision
    return Repair(
        job_id=decided.case.job.id or 0,
        attempt_id=decided.case.job.attempt_id,
        reason=decision.reason,
        decided_by=decision.decided_by,
        memory_bytes=decision.memory_bytes,
        runtime_s=decision.runtime_s,
        num_cpus=decision.num_cpus,
        causes=list(decision.causes),
        confidence=decision.confidence,
        evidence=list(decision.evidence),
    )
