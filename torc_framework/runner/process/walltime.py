"""The walltime of a runner: how long it may work, and until when it takes new jobs."""

from typing import Final

from attrs import frozen

from torc_framework.models.records import WorkflowRecord

TIME_LIMIT_OVER: Final = "its time limit was reached"
ALLOCATION_OVER: Final = "its allocation was about to end"


@frozen
class Walltime:
    """A runner's time limit, counted from ``began`` on the monotonic clock; a limit of None is unlimited.

    A part of it is kept for a clean end: the workflow's expiration buffer, at most half of the limit.

    Attributes:
        cause: The text that is reported when it is over.
    """

    began: float
    limit_s: float | None
    workflow: WorkflowRecord
    cause: str = TIME_LIMIT_OVER

    def left_s(self, now: float) -> float | None:
        """Return the seconds left for jobs."""
        if self.limit_s is None:
            return None
        buffer = min(self.workflow.compute_node_expiration_buffer_seconds, self.limit_s / 2)
        return self.began + self.limit_s - buffer - now

    def allows_new_jobs(self, now: float) -> bool:
        """Return whether enough is left: the workflow's minimum time for new jobs, at most a quarter of the limit."""
        left = self.left_s(now)
        if left is None or self.limit_s is None:
            return True
        return left > 0 and left >= min(self.workflow.compute_node_min_time_for_new_jobs_seconds, self.limit_s / 4)


def shorter_limit(limit_s: float | None, ends_at: float | None, now: float) -> tuple[float | None, str]:
    """Return a runner's time limit in seconds, and the text for its end.

    It is the limit of its settings, or the time that is left of its allocation if that is shorter.

    Args:
        ends_at: When the allocation ends, in seconds since the epoch, as ``now``.
    """
    left_s = None if ends_at is None else max(1.0, ends_at - now)
    if left_s is not None and (limit_s is None or left_s < limit_s):
        return left_s, ALLOCATION_OVER
    return limit_s, TIME_LIMIT_OVER
