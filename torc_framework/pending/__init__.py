"""Jobs with status ``pending_failed``: how they ended, and the verdicts of plugins on them."""

from torc_framework.pending.classification import MIN_CONFIDENCE, PendingClassification, UndecidedJob, classify_pending
from torc_framework.pending.pending_jobs import WaitingJob, failure_of, read_tail, waiting_jobs

__all__ = [
    "MIN_CONFIDENCE",
    "PendingClassification",
    "UndecidedJob",
    "WaitingJob",
    "classify_pending",
    "failure_of",
    "read_tail",
    "waiting_jobs",
]
