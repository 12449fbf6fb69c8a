"""The number of log-ins that are under way at once, for each sshd: it drops connections above ``MaxStartups``."""

import asyncio
import random
from collections.abc import Awaitable, Callable, Hashable
from typing import Final, TypeVar
from weakref import WeakKeyDictionary

T = TypeVar("T")

DROPPED: Final = "the host closed the connection before the log-in; it may limit how many log in at once (MaxStartups)"
AT_ONCE: Final = 2
"""So many log-ins at one sshd at once."""
ATTEMPTS: Final = 8
FIRST_PAUSE_S: Final = 0.25
LONGEST_PAUSE_S: Final = 4.0

_slots: WeakKeyDictionary[asyncio.AbstractEventLoop, dict[Hashable, asyncio.Semaphore]] = WeakKeyDictionary()


async def log_in(server: Hashable, attempt: Callable[[], Awaitable[T]], is_dropped: Callable[[Exception], bool]) -> T:
    """Return the result of an attempt to log in, which waits for its turn.

    An attempt that the server dropped is repeated after a pause, which doubles and varies.

    Args:
        server: what the attempts at one sshd have in common.
        attempt: logs in; its exceptions are raised.
        is_dropped: whether an exception means that the server dropped the connection.
    """
    slots = _slots.setdefault(asyncio.get_running_loop(), {}).setdefault(server, asyncio.Semaphore(AT_ONCE))
    pause_s = FIRST_PAUSE_S
    for _ in range(ATTEMPTS - 1):
        try:
            async with slots:
                return await attempt()
        except Exception as error:
            if not is_dropped(error):
                raise
        await asyncio.sleep(pause_s * random.uniform(0.5, 1.5))
        pause_s = min(2 * pause_s, LONGEST_PAUSE_S)
    async with slots:
        return await attempt()
