"""Recovers jobs that ran out of memory or time: they get more, up to what there is."""

from typing import Any

from torc_framework.api import FailedJob, RecoveryDecision, hookimpl

__version__ = "0.1.0"


@hookimpl
def torc_recovery_options() -> type[Any]:
    """Offer how much more, and the most."""
    from torc_recovery_oom.policy import GrowthOptions

    return GrowthOptions


@hookimpl
def torc_decide_recovery(job: FailedJob) -> RecoveryDecision | None:
    """Let a job that lacked memory or time ask for more; no opinion on other failures."""
    from torc_recovery_oom.policy import decide

    return decide(job)
