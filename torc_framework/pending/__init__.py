"""Jobs that wait in ``pending_failed``: what there is to know of each, and verdicts on them by plugins."""

from torc_framework.pending.classify import MIN_CONFIDENCE, Classified, Left, classify_pending
from torc_framework.pending.waiting import WaitingJob, failure_of, read_tail, waiting_jobs

__all__ = [
    "MIN_CONFIDENCE",
    "Classified",
    "Left",
    "WaitingJob",
    "classify_pending",
    "failure_of",
    "read_tail",
    "waiting_jobs",
]
