"""A reactor: an event loop over descriptors and timers that can itself be waited for by one descriptor."""

import ctypes
import heapq
import os
import select
import time
from collections.abc import Callable
from itertools import count
from typing import Final

_LIBC: Final = ctypes.CDLL(None, use_errno=True)
_MONOTONIC: Final = 1
_NANO: Final = 10**9


class _Timespec(ctypes.Structure):
    _fields_ = (("seconds", ctypes.c_long), ("nanoseconds", ctypes.c_long))


class _Itimerspec(ctypes.Structure):
    _fields_ = (("interval", _Timespec), ("value", _Timespec))


class Reactor:
    """Calls handlers of readable descriptors and of times that have passed, each time `run` is called.

    Its own descriptor is readable while a handler is due (timerfd_create(2), epoll(7)), so that a caller sleeps until
    `run` has something to do.
    """

    def __init__(self) -> None:
        self._epoll = select.epoll()
        self._handlers: dict[int, Callable[[], None]] = {}
        self._due: list[tuple[float, int, Callable[[], None]]] = []
        self._ties = count()
        self._timer = _LIBC.timerfd_create(_MONOTONIC, os.O_NONBLOCK | os.O_CLOEXEC)
        if self._timer < 0:
            raise OSError(ctypes.get_errno(), "timerfd_create")
        self._epoll.register(self._timer, select.EPOLLIN)

    def fileno(self) -> int:
        """Return the descriptor to wait for."""
        return self._epoll.fileno()

    def watch(self, descriptor: int, handler: Callable[[], None]) -> None:
        """Call ``handler`` whenever ``descriptor`` is readable."""
        self._epoll.register(descriptor, select.EPOLLIN)
        self._handlers[descriptor] = handler

    def pause(self, descriptor: int, seconds: float) -> None:
        """Ignore a descriptor for so many seconds, so that data that arrives in pieces is read together."""
        self._epoll.modify(descriptor, 0)
        self.after(seconds, lambda: self._resume(descriptor))

    def _resume(self, descriptor: int) -> None:
        if descriptor in self._handlers:
            self._epoll.modify(descriptor, select.EPOLLIN)

    def unwatch(self, descriptor: int) -> None:
        """Stop watching a descriptor, which must still be open."""
        if self._handlers.pop(descriptor, None) is not None:
            self._epoll.unregister(descriptor)

    def after(self, seconds: float, handler: Callable[[], None]) -> None:
        """Call ``handler`` once, in so many seconds."""
        heapq.heappush(self._due, (time.monotonic() + seconds, next(self._ties), handler))
        self._set_timer()

    def run(self) -> None:
        """Call all handlers that are due; return without waiting."""
        for descriptor, _ in self._epoll.poll(0):
            if handler := self._handlers.get(descriptor):  # an earlier handler may have removed it
                handler()
        now = time.monotonic()
        while self._due and self._due[0][0] <= now:
            heapq.heappop(self._due)[2]()
        self._set_timer()

    def _set_timer(self) -> None:
        """Set the timer to the earliest time, or disarm it; this also clears an expiration."""
        wait = max(1e-6, self._due[0][0] - time.monotonic()) if self._due else 0.0
        value = _Timespec(int(wait), int(wait % 1 * _NANO))
        _LIBC.timerfd_settime(self._timer, 0, ctypes.byref(_Itimerspec(_Timespec(0, 0), value)), None)

    def close(self) -> None:
        """Close all descriptors of the reactor."""
        self._handlers.clear()
        self._due.clear()
        if self._timer >= 0:
            os.close(self._timer)
            self._timer = -1
        self._epoll.close()
