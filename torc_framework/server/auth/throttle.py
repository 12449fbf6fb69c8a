"""Throttle for failed log-ins: responses to wrong passwords are delayed, and guesses for one name are checked singly.

Users behind one address, such as those of a login node, cannot be told apart before their passwords are checked. So
every password is checked, and failures delay only the responses to further failures: guessing a user's password does
not lock that user out.
"""

import asyncio
import time
from collections import OrderedDict
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Final

from attrs import Factory, define

FREE_FAILURES: Final = 3
"""Failures of a name at one address whose responses are not delayed, because people mistype."""
FREE_OF_NAME: Final = 10
"""The same for a name, counted over all addresses."""
FREE_OF_ADDRESS: Final = 30
"""The same for an address, counted over all names: a login node has many users."""
FIRST_WAIT_S: Final = 1.0
"""Delay of the response to the first failure beyond the free ones, seconds; each further failure doubles it."""
LONGEST_WAIT_S: Final = 30.0
"""Longest delay, seconds."""
FORGOTTEN_AFTER_S: Final = 900.0
"""Seconds without a further failure after which earlier ones no longer count."""
MAX_ENTRIES: Final = 10_000
"""Most counters that are kept; the one whose last failure is oldest is dropped first."""
MAX_IN_LINE: Final = 32
"""Most log-ins for one name at one address that wait for their check once the free failures are used up."""

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
    """Counts failed log-ins by name and address, by name, and by address.

    A successful log-in resets no counter, because it may come from the address of a guesser.

    Args:
        clock: Returns seconds of a monotonic clock.
    """

    def __init__(self, clock: Callable[[], float] = time.monotonic, max_entries: int = MAX_ENTRIES) -> None:
        self._clock = clock
        self._max_entries = max_entries
        self._failures: OrderedDict[_Key, _Failures] = OrderedDict()

    def __len__(self) -> int:
        return len(self._failures)

    def failed(self, user: str, address: str) -> float:
        """Count a failure; return the seconds by which its response is to be delayed."""
        limits = {(user, address): FREE_FAILURES, (user, None): FREE_OF_NAME, (None, address): FREE_OF_ADDRESS}
        return max(_wait_after(self._note(key) - free) for key, free in limits.items())

    def _note(self, key: _Key) -> int:
        """Count a failure of one key; return the key's count."""
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
        """Hold the only check of a password for this name and address; without delay while free failures are left.

        Raises:
            TooManyLoginsError: `MAX_IN_LINE` log-ins are waiting.
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
    """Return the delay in seconds after this many failures beyond the free ones."""
    if excess <= 0:
        return 0.0
    return min(FIRST_WAIT_S * 2.0 ** min(excess - 1, 30), LONGEST_WAIT_S)
