"""Password checks against the server's htpasswd file, with a cache of log-ins that were right."""

import asyncio
import hashlib
import logging
import os
import time
from collections import Counter, OrderedDict, deque
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Final

from torc_framework.errors import ConfigError
from torc_framework.server.auth import htpasswd
from torc_framework.server.auth.throttle import TooManyLoginsError

MAX_CACHED: Final = 10_000
"""Most log-ins in the cache."""
MAX_PENDING: Final = 64
"""Most unknown log-ins of users that may wait for their check, which takes a quarter of a second of one core."""
MAX_PENDING_OF_NAME: Final = 8
"""Most unknown log-ins with one name that may wait for their check."""
_OF_UNKNOWN_NAMES: Final = 2
"""Most checks for unknown names that are in progress or wait; further log-ins with unknown names wait for the last."""
_WORKERS: Final = 2
_log = logging.getLogger("torc.server.auth")


class PasswordFile:
    """The users of an htpasswd file, which is read again after it has changed.

    Raises:
        ConfigError: the file cannot be read, or a line is malformed.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self._state = self._look()
        self.users = htpasswd.read(path)
        """Hashes by user names."""
        _log.info("read %d users from %s", len(self.users), path)

    def refresh(self) -> bool:
        """Read the file if it has changed; return whether it was read.

        A file that cannot be used, such as one in the middle of an edit, is logged and leaves the users as they are.
        """
        state = self._look()
        if state == self._state:
            return False
        self._state = state
        try:
            self.users = htpasswd.read(self._path)
        except ConfigError as error:
            _log.error("%s; the users stay as they were", error)
            return False
        _log.info("read %d users from %s, which has changed", len(self.users), self._path)
        return True

    def _look(self) -> tuple[int, int, int] | None:
        try:
            state = os.stat(self._path)  # noqa: PTH116 - called for each request; Path.stat is slower
        except OSError:
            return None
        return state.st_mtime_ns, state.st_size, state.st_ino


class PasswordChecker:
    """Checks names and passwords, in threads of its own.

    A log-in that was right is in the cache: it is not checked again for ``ttl_s`` seconds, and after that it is checked
    in a thread of its own, so that it does not wait behind unknown log-ins. Those with a name that is not in the file
    have a thread of their own too: however many they are, users of the file do not wait for them.

    Args:
        ttl_s: Seconds for which a right password is not checked again; 0 checks it each time.
        clock: Returns seconds of a monotonic clock.
    """

    def __init__(self, file: PasswordFile, ttl_s: float, clock: Callable[[], float] = time.monotonic) -> None:
        self._file = file
        self._ttl_s = ttl_s
        self._clock = clock
        self._salt = os.urandom(32)
        self._known: OrderedDict[bytes, tuple[str, str, float]] = OrderedDict()
        self._pending: dict[bytes, asyncio.Task[bool]] = {}
        self._pending_of_name: Counter[str] = Counter()
        self._slots_taken = 0
        self._of_unknown_names: deque[asyncio.Future[bool]] = deque()
        self._threads = ThreadPoolExecutor(_WORKERS, thread_name_prefix="password")
        self._known_thread = ThreadPoolExecutor(1, thread_name_prefix="known-password")
        self._unknown_name_thread = ThreadPoolExecutor(1, thread_name_prefix="unknown-name")
        self._fallback_hash = htpasswd.hash_password("nobody", 4)

    def key(self, header: bytes) -> bytes:
        """Return the cache key of an ``Authorization`` header: a salted hash, from which no password can be found."""
        return hashlib.sha256(self._salt + header).digest()

    def recall(self, key: bytes) -> str | None:
        """Return the user of a log-in that needs no check; None if it must be checked."""
        if self._file.refresh():
            self._known = OrderedDict((known, (user, hashed, 0.0)) for known, (user, hashed, _) in self._known.items())
        if not self.was_right(key):
            return None
        user, _, until = self._known[key]
        return user if until > self._clock() else None

    def was_right(self, key: bytes) -> bool:
        """Return whether a log-in was right at its last check and its user's password has not changed since."""
        found = self._known.get(key)
        if found is None:
            return False
        if self._file.users.get(found[0]) != found[1]:
            del self._known[key]
            return False
        return True

    async def check(self, key: bytes, user: str, password: str) -> bool:
        """Return whether the password is the user's; simultaneous calls for one log-in share one check.

        Raises:
            TooManyLoginsError: `MAX_PENDING` unknown log-ins of users wait for their check, or `MAX_PENDING_OF_NAME`
                with this name.
        """
        pending = self._pending.get(key)
        if pending is None:
            pending = self._pending[key] = self._begun_check(key, user, password)
        return await asyncio.shield(pending)

    def _begun_check(self, key: bytes, user: str, password: str) -> asyncio.Task[bool]:
        hashed = self._file.users.get(user)
        is_unknown = not self.was_right(key)
        takes_slot = is_unknown and hashed is not None
        if is_unknown and self._pending_of_name[user] >= MAX_PENDING_OF_NAME:
            raise TooManyLoginsError
        if takes_slot and self._slots_taken >= MAX_PENDING:
            raise TooManyLoginsError
        self._pending_of_name[user] += is_unknown
        self._slots_taken += takes_slot
        compared = self._compare(key, user, hashed, password, is_unknown) if hashed else self._fail_as_late(password)
        check = asyncio.create_task(compared)

        def is_done(_check: asyncio.Task[bool]) -> None:
            del self._pending[key]
            self._slots_taken -= takes_slot
            self._pending_of_name[user] -= is_unknown
            if not self._pending_of_name[user]:
                del self._pending_of_name[user]

        check.add_done_callback(is_done)
        return check

    async def _fail_as_late(self, password: str) -> bool:
        """Return False after the time that a check takes for a known name."""
        checks = self._of_unknown_names
        if len(checks) < _OF_UNKNOWN_NAMES:
            hashed = max(self._file.users.values(), key=htpasswd.cost_of, default=self._fallback_hash)
            loop = asyncio.get_running_loop()
            check = loop.run_in_executor(self._unknown_name_thread, htpasswd.matches, password, hashed)
            check.add_done_callback(checks.remove)
            checks.append(check)
        await asyncio.shield(checks[-1])
        return False

    async def _compare(self, key: bytes, user: str, hashed: str, password: str, is_unknown: bool) -> bool:
        threads = self._threads if is_unknown else self._known_thread
        loop = asyncio.get_running_loop()
        is_equal = await loop.run_in_executor(threads, htpasswd.matches, password, hashed)
        if not is_equal or self._file.users.get(user) != hashed:
            return False
        self._known[key] = user, hashed, self._clock() + self._ttl_s
        self._known.move_to_end(key)
        if len(self._known) > MAX_CACHED:
            self._known.popitem(last=False)
        return True
