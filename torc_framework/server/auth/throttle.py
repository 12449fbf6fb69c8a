"""Wrong passwords are answered late, and one at a time; right ones never wait for that.

Users behind one address, such as those of a login node, cannot be told apart before their passwords are checked. So
every password is checked, and failures delay only the answers to further failures: the guesser of a user's password
locks nobody out.
"""

import asyncio
import time
from collections import OrderedDict
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Final

from attrs import Factory, define

FREE_FAILURES: Final = 3
"""Failures of a name at an address after which the answer to the next one is not delayed: people mistype."""
FREE_OF_NAME: Final = 10
"""The same for a name at all addresses together."""
FREE_OF_ADDRESS: Final = 30
"""The same for an address with all names together: a login node has many users."""
FIRST_WAIT_S: Final = 1.0
"""Delay of the answer to the next failure; each further one doubles it."""
LONGEST_WAIT_S: Final = 30.0
FORGOTTEN_AFTER_S: Final = 900.0
"""Quiet time after which failures do not count any more."""
MAX_ENTRIES: Final = 10_000
"""Names and addresses that are remembered; the longest quiet ones are forgotten first."""
MAX_IN_LINE: Final = 32
"""Attempts for one name at one address that wait for their check, after its free failures."""

_Key = tuple[str | None, str | None]


class TooManyLoginsError(Exception):
    """Too many passwords wait to be checked."""


@define(eq=False)
class _Failures:
    count: int
    last: float
    in_line: int = 0
    turn: asyncio.Lock = Factory(asyncio.Lock)


class LoginThrottle:
    """Counts failures by name and address, by name, and by address.

    Successes clear nothing: a user who logs in at an address must not help the guesser beside them.

    Args:
        clock: Seconds that only grow.
    """

    def __init__(self, clock: Callable[[], float] = time.monotonic, max_entries: int = MAX_ENTRIES) -> None:
        self._clock = clock
        self._max_entries = max_entries
        self._failures: OrderedDict[_Key, _Failures] = OrderedDict()

    def __len__(self) -> int:
        return len(self._failures)

    def failed(self, user: str, address: str) -> float:
        """Note a failure; return how many seconds its answer is to be delayed."""
        limits = {(user, address): FREE_FAILURES, (user, None): FREE_OF_NAME, (None, address): FREE_OF_ADDRESS}
        return max(_wait_after(self._note(key) - free) for key, free in limits.items())

    def _note(self, key: _Key) -> int:
        """Return how many failures a key has, this one included."""
        now = self._clock()
        known = self._failures.get(key)
        if known is None or now - known.last > FORGOTTEN_AFTER_S:
            known = self._failures[key] = _Failures(0, now)
        known.count, known.last = known.count + 1, now
        self._failures.move_to_end(key)
        while len(self._failures) > self._max_entries:
            self._failures.popitem(last=False)
        return known.count

    @asynccontextmanager
    async def turn(self, user: str, address: str) -> AsyncIterator[None]:
        """Wait until no other attempt for a name that had its free failures at this address is being checked.

        Raises:
            TooManyLoginsError: too many wait already.
        """
        known = self._failures.get((user, address))
        if known is None or known.count <= FREE_FAILURES:
            yield
            return
        if known.in_line >= MAX_IN_LINE:
            raise TooManyLoginsError
        known.in_line += 1
        try:
            async with known.turn:
                yield
        finally:
            known.in_line -= 1


def _wait_after(excess: int) -> float:
    """Return the delay after so many failures beyond the free ones, seconds."""
    if excess <= 0:
        return 0.0
    return min(FIRST_WAIT_S * 2.0 ** min(excess - 1, 30), LONGEST_WAIT_S)
