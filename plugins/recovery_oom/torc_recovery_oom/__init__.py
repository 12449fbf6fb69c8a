"""Recovery policy for jobs that ran out of memory or run time: larger requests, up to the available amounts."""

from typing import Any

from torc_framework.api import FailedJob, RecoveryDecision, hookimpl

__version__ = "0.1.0"


@hookimpl
def torc_recovery_options() -> type[Any]:
    """Offer the options for the growth of requests."""
    from torc_recovery_oom.policy import GrowthOptions

    return GrowthOptions


@hookimpl
def torc_decide_recovery(job: FailedJob) -> RecoveryDecision | None:
    """Return larger requests for a job that ran out of memory or run time; None for other failures."""
    from torc_recovery_oom.policy import decide

    return decide(job)
