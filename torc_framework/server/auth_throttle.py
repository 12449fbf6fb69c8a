"""Failed log-ins make the next ones wait, for each name and address apart."""

import time
from collections import OrderedDict
from collections.abc import Callable
from typing import Final

from attrs import define

FREE_FAILURES: Final = 3
"""Failures after which nobody waits: people mistype."""
FIRST_WAIT_S: Final = 1.0
"""Wait after the next failure; each further one doubles it."""
LONGEST_WAIT_S: Final = 60.0
FORGOTTEN_AFTER_S: Final = 900.0
"""Quiet time after which failures do not count any more."""
MAX_ENTRIES: Final = 10_000
"""Names and addresses that are remembered; the longest quiet ones are forgotten first."""


@define
class _Failures:
    count: int
    last: float


class Throttle:
    """Counts failures.

    An attempt counts as failed from its beginning until it succeeds, so that many at once gain nothing.

    Args:
        clock: Seconds that only grow.
    """

    def __init__(self, clock: Callable[[], float] = time.monotonic, max_entries: int = MAX_ENTRIES) -> None:
        self._clock = clock
        self._max_entries = max_entries
        self._failures: OrderedDict[tuple[str, str], _Failures] = OrderedDict()

    def __len__(self) -> int:
        return len(self._failures)

    def begin(self, user: str, address: str) -> float:
        """Note an attempt; return the seconds that it has to wait, in which case it must not be made."""
        key, now = (user, address), self._clock()
        known = self._failures.get(key)
        if known is None or now - known.last > FORGOTTEN_AFTER_S:
            known = self._failures[key] = _Failures(0, now)
        wait = known.last + _wait_after(known.count) - now
        if known.count and wait > 0:
            return wait
        known.count, known.last = known.count + 1, now
        self._failures.move_to_end(key)
        if len(self._failures) > self._max_entries:
            self._failures.popitem(last=False)
        return 0.0

    def succeeded(self, user: str, address: str) -> None:
        """Forget the failures of somebody who knew the password."""
        self._failures.pop((user, address), None)


def _wait_after(failures: int) -> float:
    """Return how long the next attempt waits, seconds."""
    if failures <= FREE_FAILURES:
        return 0.0
    return min(FIRST_WAIT_S * 2.0 ** min(failures - FREE_FAILURES - 1, 30), LONGEST_WAIT_S)
