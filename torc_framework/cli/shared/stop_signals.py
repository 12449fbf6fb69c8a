"""Signals that end a command as Ctrl-C does."""

import signal
from types import FrameType, TracebackType
from typing import Any, Final, Self

STOP_SIGNALS: Final = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


class StopSignals:
    """A context in which SIGINT, SIGTERM and SIGHUP raise KeyboardInterrupt and are recorded.

    The interpreter or a library may drop an exception that a signal handler raises within a finalizer or a callback. A
    loop therefore calls `check` in each round. Signals that are ignored, as SIGHUP is after ``nohup``, stay ignored.
    The context is entered in the main thread.
    """

    def __init__(self, *numbers: int) -> None:
        self._numbers = numbers or STOP_SIGNALS
        self._before: dict[int, Any] = {}
        self.has_arrived = False

    def __enter__(self) -> Self:
        for number in self._numbers:
            if signal.getsignal(number) is not signal.SIG_IGN:
                self._before[number] = signal.signal(number, self._handle)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for number, handler in self._before.items():
            signal.signal(number, handler)

    def _handle(self, _number: int, _frame: FrameType | None) -> None:
        self.has_arrived = True
        raise KeyboardInterrupt

    def check(self) -> None:
        """Raise KeyboardInterrupt if a signal has arrived, also if the exception of its handler was dropped."""
        if self.has_arrived:
            raise KeyboardInterrupt
