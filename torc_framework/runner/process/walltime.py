"""How long a runner may work."""

from typing import Final

from attrs import frozen

from torc_framework.models.records import WorkflowRecord

TIME_LIMIT_OVER: Final = "its time limit was reached"
ALLOCATION_OVER: Final = "its allocation was about to end"


@frozen
class Walltime:
    """A runner's time limit, counted from ``began`` on the monotonic clock; None as limit is none.

    Some of it is kept for a clean end: the workflow's expiration buffer, half of the limit at most.

    Attributes:
        cause: What people are told when it is over.
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
        """Say whether enough is left: what the workflow asks for, a quarter of the limit at most."""
        left = self.left_s(now)
        if left is None or self.limit_s is None:
            return True
        return left > 0 and left >= min(self.workflow.compute_node_min_time_for_new_jobs_seconds, self.limit_s / 4)


def shorter_limit(limit_s: float | None, ends_at: float | None, now: float) -> tuple[float | None, str]:
    """Return a runner's time limit in seconds and what to call its end.

    It is what the runner was told, or what its launch_site still have if that is less.

    Args:
        ends_at: When the launch_site end; compared with ``now``, both in seconds since the epoch.
    """
    left_s = None if ends_at is None else max(1.0, ends_at - now)
    if left_s is not None and (limit_s is None or left_s < limit_s):
        return left_s, ALLOCATION_OVER
    return limit_s, TIME_LIMIT_OVER
