"""How much of a walltime is left for jobs."""

import math
from typing import Final

from attrs import frozen

from torc_framework.models.records import WorkflowRecord

SLACK_S: Final = 120
"""Part of the walltime that no job is planned for, seconds: runners begin late; batch systems may end them early."""


@frozen
class WalltimeReserve:
    """The walltime that a runner keeps from its jobs; see `torc_framework.runner.process.walltime`. Seconds.

    Attributes:
        end_s: Kept for a clean end; half of a runner's time at most.
        least_s: With less than this left no job begins; a quarter of a runner's time at most.
    """

    end_s: int
    least_s: int

    @classmethod
    def of(cls, workflow: WorkflowRecord) -> "WalltimeReserve":
        """Return that of a workflow's runners."""
        return cls(workflow.compute_node_expiration_buffer_seconds, workflow.compute_node_min_time_for_new_jobs_seconds)

    def room_s(self, walltime_s: float) -> float:
        """Return the seconds that a runner has for jobs if it begins at once."""
        return walltime_s - min(self.end_s, walltime_s / 2)

    def starts_nothing(self, walltime_s: float, runtime_s: float) -> bool:
        """Say whether no runner of such a walltime ever starts a job of that run time: beginning takes some time."""
        return self.room_s(walltime_s) <= max(runtime_s, min(self.least_s, walltime_s / 4))

    def rounds(self, walltime_s: float, runtime_s: float) -> int:
        """Return how many jobs that take their whole run time follow one another within a walltime."""
        limit = walltime_s - SLACK_S
        left = self.room_s(limit)
        last = max(runtime_s, min(self.least_s, limit / 4))
        return 0 if left < last else math.floor((left - last) / runtime_s) + 1

    def most_runtime_s(self, walltime_s: int) -> int:
        """Return the longest run time of a job for which a walltime leaves room."""
        limit = max(0, walltime_s - SLACK_S)
        return limit - min(self.end_s, limit // 2)

    def least_walltime_s(self, runtime_s: float, rounds: int = 1) -> int:
        """Return a walltime, in whole minutes, in which so many jobs follow one another; the shortest for one."""
        if rounds == 1:
            return whole_minutes(SLACK_S + runtime_s + min(self.end_s, runtime_s))
        last = max(runtime_s, self.least_s)
        return whole_minutes(SLACK_S + self.end_s + (rounds - 1) * runtime_s + last)


def whole_minutes(seconds: float) -> int:
    """Return seconds, rounded up to whole minutes, in which batch systems count."""
    return math.ceil(seconds / 60) * 60
