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
from functools import lru_cache
from typing import Any, Final, NamedTuple

_FAULTS: Final = {
    *(signal.SIGSEGV, signal.SIGBUS, signal.SIGFPE, signal.SIGILL, signal.SIGABRT, signal.SIGTRAP, signal.SIGSYS),
    *(signal.SIGKILL, signal.SIGSTOP),
}
"""Signals whose handlers are not compared: errors of the process itself, and those without a handler."""
_SIGNALS: Final = [number for number in signal.Signals if number not in _FAULTS]
_UMASK: Final = b"\nUmask:\t"
_BLOCKED: Final = b"\nSigBlk:\t"
_STREAMS: Final = ("stdin", "stdout", "stderr")
_FIRST_COPY: Final = 10
"""Lowest descriptor for a copy of a standard stream."""
_copies: Final[dict[int, tuple[Any, int]]] = {}
"""Copies of the descriptors 0 to 2, each with what it refers to; it is open as long as the process."""
_copying: Final = threading.Lock()


class ProcessWideState:
    """The state at the time at which this object is made.

    Raises:
        OSError: it cannot be read, such as when no file can be opened.
    """

    __slots__ = ("_folder", "_handlers", "_opened", "_status", "_streams")

    def __init__(self) -> None:
        self._status = _status()
        self._folder = _folder()
        self._opened = [_opened(0), _opened(1), _opened(2)]
        self._handlers: dict[signal.Signals, Any] = {}
        self._streams: tuple[Any, ...] = ()
        if threading.current_thread() is threading.main_thread():
            self._handlers = {number: signal.getsignal(number) for number in _numbers(self._status.caught)}
            self._streams = sys.stdin, sys.stdout, sys.stderr

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
        now = ProcessWideState()
        if all(getattr(now, name) == getattr(self, name) for name in self.__slots__):
            return
        if now._folder != self._folder and self._folder is not None:
            yield _restored("the working folder", os.chdir, self._folder)
        before, after = self._status, now._status
        if after.umask != before.umask:
            yield _restored("the umask", os.umask, int(before.umask, 8))
        if after.blocked != before.blocked:
            yield _restored("the blocked signals", signal.pthread_sigmask, signal.SIG_SETMASK, _numbers(before.blocked))
        for fd, name in enumerate(_STREAMS):
            if now._opened[fd] != self._opened[fd] and self._opened[fd] is not None:
                yield _restored(f"the file descriptor {fd}", _put_back, fd)
            if self._streams and now._streams[fd] is not self._streams[fd]:
                yield _restored(f"sys.{name}", setattr, sys, name, self._streams[fd])
        for number in _SIGNALS if self._streams else ():
            handler = self._handler(number)
            if handler is not None and now._handler(number) != handler:
                yield _restored(f"the handler of {number.name}", signal.signal, number, handler)

    def _handler(self, number: signal.Signals) -> Any:
        """Return the handler of a signal; None if C code has set it, so that it cannot be restored from here."""
        if number in _numbers(self._status.ignored):
            return signal.SIG_IGN
        handler = self._handlers.get(number, signal.SIG_DFL)
        return handler if number not in self._handlers or callable(handler) else None


def _restored(what: str, restore: Callable[..., Any], *arguments: Any) -> str:
    """Restore something; return its name, and why it cannot be restored, such as a folder that was removed."""
    try:
        restore(*arguments)
    except (OSError, ValueError, KeyError) as error:
        return f"{what}, which cannot be restored ({error})"
    return what


def _put_back(fd: int) -> None:
    os.dup2(_copies[fd][1], fd)


class _Status(NamedTuple):
    """What ``/proc/PID/status`` tells of signals and umask, as its text has it."""

    umask: bytes
    blocked: bytes
    ignored: bytes
    caught: bytes


def _status() -> _Status:
    """Return the state of this thread.

    Raises:
        OSError: it cannot be read.
    """
    fd = os.open("/proc/thread-self/status", os.O_RDONLY | os.O_CLOEXEC)
    try:
        text = os.read(fd, 1 << 16)
    finally:
        os.close(fd)
    signals = text.index(_BLOCKED)
    umask = text.index(_UMASK) + len(_UMASK)
    return _Status(text[umask : text.index(b"\n", umask)], *text[signals:].split(None, 6)[1:6:2])


@lru_cache(maxsize=32)
def _numbers(mask: bytes) -> list[signal.Signals]:
    """Return the signals of a mask, without those that are not compared and those of the C library."""
    bits = int(mask, 16)
    return [number for number in signal.Signals if bits >> number - 1 & 1 and number not in _FAULTS]


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
