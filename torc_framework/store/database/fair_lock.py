"""A lock whose waiters get it in the order in which they asked for it."""

import threading
from collections import deque
from types import TracebackType


class FairLock:
    """A lock for threads that is handed to the one that has waited longest.

    A thread that releases a lock of `threading` and asks for it again at once usually gets it, so that a thread which
    makes one change after another would keep all others waiting.
    """

    def __init__(self) -> None:
        self._guard = threading.Lock()
        self._is_held = False
        self._waiting: deque[threading.Lock] = deque()

    def acquire(self, *, blocking: bool = True) -> bool:
        """Take the lock; return False if another thread holds it and ``blocking`` is false."""
        with self._guard:
            if not self._is_held:
                self._is_held = True
                return True
            if not blocking:
                return False
            turn = threading.Lock()
            turn.acquire()
            self._waiting.append(turn)
        turn.acquire()
        return True

    def release(self) -> None:
        """Hand the lock to the thread that has waited longest, if one waits."""
        with self._guard:
            if self._waiting:
                self._waiting.popleft().release()
            else:
                self._is_held = False

    def __enter__(self) -> None:
        self.acquire()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.release()
