"""Time limits of calls of plugins: a call that blocks is interrupted, so that a suite ends."""

import contextlib
import signal
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from types import TracebackType
from typing import Any, Final, NoReturn

TICK_S: Final = 0.25
"""How often the time of a call is checked; a call that catches the interruption is interrupted again."""
SCHEDSTAT: Final = Path("/proc/thread-self/schedstat")


class _Overdue(BaseException):
    """Interrupts a call that takes too long. It is no `Exception`, so that a plugin's handlers let it through."""


def _waited_for_cpu_s() -> float:
    """Return how long this thread has waited for a CPU so far: no call is to blame for a machine under load."""
    try:
        return int(SCHEDSTAT.read_bytes().split()[1]) / 1e9
    except (OSError, IndexError, ValueError):
        return 0.0


def undelayed_clock_s() -> float:
    """Return the seconds of a monotonic clock that stands still while this thread waits for a CPU."""
    return time.monotonic() - _waited_for_cpu_s()


class time_limit:  # noqa: N801 - it is used like a function
    """Interrupt a block that takes longer than some seconds, and call ``overdue``, which raises.

    The limit interrupts in the main thread, by SIGALRM; in other threads it is checked when the block ends. Time in
    which the thread waited for a CPU does not count.
    """

    def __init__(self, seconds: float, overdue: Callable[[], NoReturn]) -> None:
        self._seconds = seconds
        self._overdue = overdue
        self._waited_s: float | None = None
        self._alarm: contextlib.AbstractContextManager[None] = contextlib.nullcontext()

    def is_overdue(self) -> bool:
        """Return whether the time is over; the first question begins to count the time without a CPU."""
        waited_s = _waited_for_cpu_s()
        if self._waited_s is None:
            self._waited_s = waited_s
        return time.monotonic() - self._began - (waited_s - self._waited_s) > self._seconds

    def __enter__(self) -> None:
        if not _LIMITS and threading.current_thread() is threading.main_thread():
            self._alarm = ticking()
            self._alarm.__enter__()
        self._began = time.monotonic()
        _LIMITS.append(self)

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        _LIMITS.remove(self)
        self._alarm.__exit__(None, None, None)
        if kind is _Overdue or (time.monotonic() - self._began > self._seconds and self.is_overdue()):
            self._overdue()


_LIMITS: Final[list[time_limit]] = []
"""The limits of the calls that are under way, the innermost last."""


def _tick(_number: int, _frame: Any) -> None:
    if _LIMITS and _LIMITS[-1].is_overdue():
        raise _Overdue


@contextlib.contextmanager
def ticking() -> Iterator[None]:
    """Check the innermost limit every `TICK_S`; an alarm of others, such as pytest-timeout, is set again afterwards."""
    if threading.current_thread() is not threading.main_thread() or signal.getsignal(signal.SIGALRM) is _tick:
        yield
        return
    handler = signal.signal(signal.SIGALRM, _tick)
    rest_s, interval_s = signal.setitimer(signal.ITIMER_REAL, TICK_S, TICK_S)
    began = time.monotonic()
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, handler)
        if rest_s > 0:
            signal.setitimer(signal.ITIMER_REAL, max(rest_s - (time.monotonic() - began), 0.001), interval_s)
