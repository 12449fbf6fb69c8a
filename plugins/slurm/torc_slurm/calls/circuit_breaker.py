"""A circuit breaker: the pause that follows calls which Slurm did not answer grows with each failure in a row."""

import random
from collections.abc import Callable
from typing import Final

from attrs import define, field

FIRST_WAIT_S: Final = 1.0
"""Pause after the first failure, seconds; it doubles with each further one."""
MAX_WAIT_S: Final = 60.0
"""Longest pause before jitter, seconds."""


@define
class CircuitBreaker:
    """Counts consecutive failures and computes the pause before the next call.

    Attributes:
        failures: Consecutive calls that were not answered.
        open_until: No call is made before this time of the clock whose times `wait_s` and `record_failure` receive.
        jitter: Returns a random number from 0 to 1. The pause is 0.75 to 1.25 times its regular length, so that many
            processes do not call again at the same moment.
    """

    failures: int = 0
    open_until: float = 0.0
    jitter: Callable[[], float] = field(default=random.random, repr=False)

    def wait_s(self, now: float) -> float:
        """Return how long to wait before the next call, seconds."""
        return max(0.0, self.open_until - now)

    def record_success(self) -> None:
        """Note that Slurm answered: the next call may be made at once."""
        self.failures, self.open_until = 0, 0.0

    def record_failure(self, now: float) -> None:
        """Note that Slurm did not answer: the pause is twice the previous one, up to `MAX_WAIT_S`, with jitter."""
        self.failures += 1
        wait = min(MAX_WAIT_S, FIRST_WAIT_S * 2 ** (self.failures - 1))
        self.open_until = now + wait * (0.75 + 0.5 * self.jitter())
