"""Instants: when something happened by the clock on the wall, and how far apart two of them are by one never set."""

import time

from attrs import frozen


@frozen
class Instant:
    """One moment in the life of this process.

    Attributes:
        at: Seconds since the epoch, UTC. It says when, and nothing else: the clock on the wall may be set at any time.
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
