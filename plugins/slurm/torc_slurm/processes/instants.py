"""Instants: the time of day of an event, and the seconds between two events by a clock that is never set."""

import time

from attrs import frozen


@frozen
class Instant:
    """One moment in the life of this process.

    Attributes:
        at: Seconds since the epoch, UTC. It only serves as a time of day, because that clock may be set at any time.
        tick: Seconds by the monotonic clock.
    """

    at: float
    _tick: float

    @classmethod
    def now(cls) -> "Instant":
        """Return this moment."""
        return cls(time.time(), time.monotonic())

    def since(self, earlier: "Instant") -> float:
        """Return the seconds from an earlier instant to this one, by the monotonic clock of this machine."""
        return self._tick - earlier._tick
