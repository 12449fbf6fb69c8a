"""Jobs that wait in ``pending_failed``: what there is to know of each, and verdicts on them by plugins."""

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
