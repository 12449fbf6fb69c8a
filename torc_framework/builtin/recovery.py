"""The built-in recovery policy: jobs that were interrupted, and did not fail themselves, run again unchanged."""

from typing import Final

from torc_framework.api import ExitClass, FailedJob, RecoveryAction, RecoveryDecision, StopReason, hookimpl

MOST_RECOVERIES: Final = 3
"""After this many recoveries a job is left to a person."""
_INTERRUPTED: Final = {
    ExitClass.PREEMPTED: "preempted",
    ExitClass.EVICTED: "evicted",
    ExitClass.NODE_FAILURE: "its node failed",
    ExitClass.INTERRUPTED: "its runner had to end",
    ExitClass.ORPHANED: "its runner was gone and its end was not observed",
    ExitClass.INFRA_ERROR: "the infrastructure failed",
}


@hookimpl(trylast=True)
def torc_decide_recovery(job: FailedJob) -> RecoveryDecision | None:
    """Retry interrupted jobs; pass on other failures."""
    verdict = job.failure.verdict
    reason = _INTERRUPTED.get(verdict.exit_class)
    seen = job.failure.observation
    if verdict.exit_class is ExitClass.CANCELED and (seen.lost or seen.stop_reason is StopReason.SHUTDOWN):
        reason = "its allocation was canceled"
    if reason is None and seen.stop_reason is StopReason.SHUTDOWN:
        reason = "its runner had to end"
    if reason is None:
        return None
    action, sentence = RecoveryAction.RETRY, f"interrupted ({reason}), running it again as it is"
    if job.recoveries >= MOST_RECOVERIES:
        action = RecoveryAction.DEFER
        sentence = f"interrupted again after {job.recoveries} recoveries ({reason}); it is left to you"
    return RecoveryDecision(
        action, sentence, causes=("interrupted",), confidence=verdict.confidence, evidence=(verdict.reason,)
    )
