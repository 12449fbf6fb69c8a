"""Wakes the runner's thread, and counts the signals that ask it to end."""

import contextlib
import os
import signal
import threading
from types import FrameType, TracebackType
from typing import Any, Final, Self

_SIGNALS: Final = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


class Waker:
    """A pipe by which other threads and signals wake the thread that waits for it."""

    def __init__(self) -> None:
        self.read_fd, self.write_fd = os.pipe2(os.O_NONBLOCK | os.O_CLOEXEC)
        self._lock = threading.Lock()
        self._closed = False

    def wake(self) -> None:
        """Wake the thread, if it is still there."""
        with self._lock, contextlib.suppress(BlockingIOError):  # a full pipe wakes as well
            if not self._closed:
                os.write(self.write_fd, b"w")

    def drain(self) -> None:
        """Forget what was written."""
        with contextlib.suppress(BlockingIOError):
            while os.read(self.read_fd, 4096):
                pass

    def close(self) -> None:
        """Wake nobody any more."""
        with self._lock:
            self._closed = True
            os.close(self.read_fd)
            os.close(self.write_fd)


class RunnerSignals:
    """Takes over SIGINT, SIGTERM and SIGHUP while it is entered; ignored ones stay ignored.

    Outside of the main thread, or without ``wanted``, it does nothing.
    """

    def __init__(self, waker: Waker, *, wanted: bool) -> None:
        self._waker = waker
        self._wanted = wanted and threading.current_thread() is threading.main_thread()
        self._former: dict[signal.Signals, Any] = {}
        self._former_fd = -1
        self.count = 0
        """How many have arrived."""
        self.last = ""
        """Name of the last one."""

    def __enter__(self) -> Self:
        if self._wanted:
            self._former_fd = signal.set_wakeup_fd(self._waker.write_fd, warn_on_full_buffer=False)
            for number in _SIGNALS:
                if signal.getsignal(number) is not signal.SIG_IGN:
                    self._former[number] = signal.signal(number, self._note)
        return self

    def _note(self, number: int, _: FrameType | None) -> None:
        self.count += 1
        self.last = signal.Signals(number).name

    def __exit__(self, *_: type[BaseException] | BaseException | TracebackType | None) -> None:
        for number, handler in self._former.items():
            signal.signal(number, handler)
        if self._wanted:
            signal.set_wakeup_fd(self._former_fd)
