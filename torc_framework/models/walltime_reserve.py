"""The part of a runner's walltime that is kept from jobs, and how many jobs fit into the rest."""

import math
from typing import Final

from attrs import frozen

from torc_framework.models.records import WorkflowRecord
from torc_framework.text.quantities import exact_duration_text

SLACK_S: Final = 120
"""Seconds of a walltime for which no job is planned: runners begin late, and batch systems may end them early."""


@frozen
class WalltimeReserve:
    """The walltime, in seconds, that a runner keeps from its jobs; see `torc_framework.runner.process.walltime`.

    Attributes:
        end_s: Time for a clean end of the runner; at most half of its walltime.
        least_s: Shortest remaining time with which a job begins; at most a quarter of the runner's walltime.
    """

    end_s: int
    least_s: int

    @classmethod
    def of(cls, workflow: WorkflowRecord) -> "WalltimeReserve":
        """Return the reserve of a workflow's runners."""
        return cls(workflow.compute_node_expiration_buffer_seconds, workflow.compute_node_min_time_for_new_jobs_seconds)

    def available_s(self, walltime_s: float) -> float:
        """Return the seconds that a runner has for jobs if it begins without delay."""
        return walltime_s - min(self.end_s, walltime_s / 2)

    def never_starts(self, walltime_s: float, runtime_s: float) -> bool:
        """Return whether a runner with such a walltime can never start a job with that run time."""
        return self.available_s(walltime_s) <= max(runtime_s, min(self.least_s, walltime_s / 4))

    def never_starts_text(self, which: str, walltime_s: float, job: str, runtime_s: float) -> str:
        """Return the message for a job that can never start within a walltime, with the walltime that would do."""
        kept_s = int(walltime_s - self.available_s(walltime_s))
        return (
            f"{which} has a walltime of {exact_duration_text(int(walltime_s))}, of which runners keep "
            f"{exact_duration_text(kept_s)} for a clean end; job {job!r} asks for {exact_duration_text(runtime_s)} and "
            f"would never start; ask for {exact_duration_text(self.least_walltime_s(runtime_s))} or more, or for a "
            "shorter runtime, or set compute_node_expiration_buffer_seconds"
        )

    def rounds(self, walltime_s: float, runtime_s: float) -> int:
        """Return how many jobs run one after another within a walltime if each takes its whole run time."""
        limit = walltime_s - SLACK_S
        left = self.available_s(limit)
        last = max(runtime_s, min(self.least_s, limit / 4))
        return 0 if left < last else math.floor((left - last) / runtime_s) + 1

    def most_runtime_s(self, walltime_s: int) -> int:
        """Return the longest run time of a job that fits into a walltime."""
        limit = max(0, walltime_s - SLACK_S)
        return limit - min(self.end_s, limit // 2)

    def least_walltime_s(self, runtime_s: float, rounds: int = 1) -> int:
        """Return a walltime, in whole minutes, within which ``rounds`` jobs run one after another.

        For one job it is the shortest such walltime.
        """
        if rounds == 1:
            return whole_minutes(SLACK_S + runtime_s + min(self.end_s, runtime_s))
        last = max(runtime_s, self.least_s)
        return whole_minutes(SLACK_S + self.end_s + (rounds - 1) * runtime_s + last)


def whole_minutes(seconds: float) -> int:
    """Return seconds rounded up to whole minutes, the unit of batch systems."""
    return math.ceil(seconds / 60) * 60
