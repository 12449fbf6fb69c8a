"""Counts the signals that ask a runner to end."""

import signal
import threading
from types import FrameType, TracebackType
from typing import Any, Final, Self

from torc_framework.plugins.watched_calls import end_wait
from torc_framework.runner.process.wakeup import Wakeup

_SIGNALS: Final = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


class RunnerSignals:
    """Handles SIGINT, SIGTERM and SIGHUP while it is entered; those that the process ignores stay ignored.

    Outside of the main thread, or without ``wanted``, it handles none; `relay` tells it those of the main thread.
    """

    def __init__(self, wakeup: Wakeup, *, wanted: bool) -> None:
        self._wakeup = wakeup
        self._wanted = wanted and threading.current_thread() is threading.main_thread()
        self._former: dict[signal.Signals, Any] = {}
        self._former_fd = -1
        self.count = 0
        """How many signals have arrived."""
        self.last = ""
        """Name of the last signal."""

    def __enter__(self) -> Self:
        if self._wanted:
            self._former_fd = signal.set_wakeup_fd(self._wakeup.write_fd, warn_on_full_buffer=False)
            for number in _SIGNALS:
                if signal.getsignal(number) is not signal.SIG_IGN:
                    self._former[number] = signal.signal(number, self._note)
        return self

    def _note(self, number: int, _: FrameType | None) -> None:
        self.count += 1
        self.last = signal.Signals(number).name
        end_wait(self.count)

    def relay(self, name: str) -> None:
        """Count a signal that the main thread has received, and wake the runner."""
        self.last = name
        self.count += 1
        self._wakeup.wake()

    def __exit__(self, *_: type[BaseException] | BaseException | TracebackType | None) -> None:
        for number, handler in self._former.items():
            signal.signal(number, handler)
        if self._wanted:
            signal.set_wakeup_fd(self._former_fd)
