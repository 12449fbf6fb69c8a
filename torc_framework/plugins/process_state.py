"""What a plugin must leave as it is in the process that calls it, and its restoration.

These are the working folder, the umask, the standard streams with their file descriptors, the signals that the thread
blocks, and the handlers of signals. Handlers and the streams of the module `sys` are compared in the main thread only:
no other thread can set a handler, and torc itself changes both in the main thread while plugins work in others.
"""

import fcntl
import os
import signal
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any, Final

from torc_framework.system.umask import umask_in

_FAULTS: Final = {"SIGSEGV", "SIGBUS", "SIGFPE", "SIGILL", "SIGABRT", "SIGTRAP", "SIGSYS", "SIGKILL", "SIGSTOP"}
_SIGNALS: Final = [each for each in signal.Signals if each < signal.SIGRTMIN and each.name not in _FAULTS]
"""The signals whose handlers are compared: those with which one process tells another something."""
_MASK: Final = sum(1 << number - 1 for number in _SIGNALS)
_STATUS: Final = Path("/proc/thread-self/status")
_STREAMS: Final = ("stdin", "stdout", "stderr")
_FIRST_COPY: Final = 10
"""Lowest descriptor for a copy of a standard stream."""
_copies: Final[dict[int, tuple[Any, int]]] = {}
"""Copies of the descriptors 0 to 2, each with what it refers to; it is open as long as the process."""
_copying: Final = threading.Lock()


class ProcessState:
    """The state at the time at which this object is made.

    Raises:
        OSError: it cannot be read, such as when no file can be opened.
    """

    __slots__ = ("_blocked", "_caught", "_folder", "_handlers", "_ignored", "_opened", "_streams", "_umask")

    def __init__(self) -> None:
        status = _STATUS.read_bytes()
        self._umask = umask_in(status)
        self._blocked = _mask(status, b"\nSigBlk:")
        self._folder = _folder()
        self._opened = [_opened(fd) for fd in range(len(_STREAMS))]
        self._ignored = self._caught = 0
        self._handlers: dict[signal.Signals, Any] = {}
        self._streams: list[Any] = []
        if threading.current_thread() is threading.main_thread():
            self._ignored = _mask(status, b"\nSigIgn:") & _MASK
            self._caught = _mask(status, b"\nSigCgt:") & _MASK
            self._handlers = {number: signal.getsignal(number) for number in _SIGNALS if self._caught >> number - 1 & 1}
            self._streams = [getattr(sys, name) for name in _STREAMS]

    def keep_streams(self) -> None:
        """Keep copies of the standard streams, so that they can be restored."""
        for fd, opened in enumerate(self._opened):
            if opened is None or _copies.get(fd, (None,))[0] == opened:
                continue
            with _copying, suppress(OSError):
                former = _copies.pop(fd, None)
                _copies[fd] = opened, fcntl.fcntl(fd, fcntl.F_DUPFD_CLOEXEC, _FIRST_COPY)
                if former is not None:
                    os.close(former[1])

    def restore(self) -> Iterator[str]:
        """Restore what has changed since; yield the name of each thing that had.

        Raises:
            OSError: the present state cannot be read.
        """
        now = ProcessState()
        if now._key() == self._key():
            return
        if now._folder != self._folder and self._folder is not None:
            yield _restored("the working folder", os.chdir, self._folder)
        if now._umask != self._umask:
            yield _restored("the umask", os.umask, self._umask)
        if now._blocked != self._blocked:
            blocked = [number for number in range(1, signal.NSIG) if self._blocked >> number - 1 & 1]
            yield _restored("the blocked signals", signal.pthread_sigmask, signal.SIG_SETMASK, blocked)
        for fd, name in enumerate(_STREAMS):
            if now._opened[fd] != self._opened[fd] and self._opened[fd] is not None:
                yield _restored(f"the file descriptor {fd}", _put_back, fd)
            if self._streams and now._streams[fd] is not self._streams[fd]:
                yield _restored(f"sys.{name}", setattr, sys, name, self._streams[fd])
        for number in _SIGNALS:
            before = self._handler(number)
            if before is not None and now._handler(number) != before:
                yield _restored(f"the handler of {number.name}", signal.signal, number, before)

    def _handler(self, number: signal.Signals) -> Any:
        """Return the handler of a signal; None if Python cannot set it."""
        if self._ignored >> number - 1 & 1:
            return signal.SIG_IGN
        if self._caught >> number - 1 & 1:
            handler = self._handlers[number]
            return handler if callable(handler) else None
        return signal.SIG_DFL

    def _key(self) -> tuple[Any, ...]:
        streams = [id(stream) for stream in self._streams]
        handlers = [id(handler) for handler in self._handlers.values()]
        caught = self._ignored, self._caught
        return self._umask, self._blocked, self._folder, self._opened, caught, handlers, streams


def _restored(what: str, restore: Callable[..., Any], *arguments: Any) -> str:
    """Restore something; return its name, and why it cannot be restored, such as a folder that was removed."""
    try:
        restore(*arguments)
    except (OSError, ValueError, KeyError) as error:
        return f"{what}, which cannot be restored ({error})"
    return what


def _put_back(fd: int) -> None:
    os.dup2(_copies[fd][1], fd)


def _mask(status: bytes, name: bytes) -> int:
    at = status.index(name) + len(name)
    return int(status[at : at + 18], 16)


def _folder() -> str | None:
    try:
        return os.getcwd()  # noqa: PTH109 - pathlib takes several times as long
    except OSError:  # it was removed
        return None


def _opened(fd: int) -> tuple[int, int, int] | None:
    """Return what a descriptor refers to; None if it is closed."""
    try:
        facts = os.fstat(fd)
    except OSError:
        return None
    return facts.st_dev, facts.st_ino, facts.st_rdev
