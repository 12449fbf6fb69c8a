"""Calls of plugins: what a plugin changes in the process is restored, and one that does not return is told of.

A plugin that does not return within `SLOW_S` seconds is named on standard error. If it is called in the main thread,
Ctrl-C then ends the wait: an exception is raised in the plugin, and its caller goes on without its answer. This is done
once in a process; the next Ctrl-C has the effect that it has elsewhere. Where another handler counts signals, as that
of a runner does, it counts them also while a plugin works. A plugin in which no exception can be raised, because it
waits in C code or catches everything, ends with the process, `LAST_S` seconds after the second signal.

A plugin that keeps Python's global lock while it waits in C code stops this module as well.
"""

import logging
import os
import select
import signal
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from types import FrameType
from typing import Any, Final, NoReturn, TypeVar

from torc_framework.errors import ExitStatus, PluginError
from torc_framework.plugins.process_state import ProcessState

_log = logging.getLogger(__name__)
_T = TypeVar("_T")
SLOW_S: float = 5.0
"""How long a call may take before it is told of, seconds."""
LAST_S: Final = 1.0
"""How long after the second signal a plugin has to return, seconds."""
_STOP_SIGNALS: Final = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


class PluginInterruptedError(PluginError):
    """A person ended the wait for a plugin."""


class _WaitEndedError(BaseException):
    """Raised in a plugin to end the wait for it; not one of the exceptions that plugins catch."""


class _Call:
    """A call of a plugin.

    Attributes:
        plugin: Name of the plugin.
        where: What of it was called.
        began: Begin, by the monotonic clock.
        is_told: It was told of.
        handled: Signals that ask the process to stop, and whose handler ran in the meantime.
        arrived: When each such signal arrived, by the monotonic clock; its handler has to wait for C code to return.
        is_told_of_arrival: It was told that the plugin did not end by the first signal.
    """

    __slots__ = ("arrived", "began", "handled", "is_told", "is_told_of_arrival", "plugin", "where")

    def __init__(self, plugin: str, where: str) -> None:
        self.plugin, self.where, self.began = plugin, where, time.monotonic()
        self.is_told = self.is_told_of_arrival = False
        self.handled, self.arrived = 0, list[float]()


_calls: Final[dict[int, _Call]] = {}
"""The calls in progress, by the identifier of the thread."""
_warned_of: Final[set[tuple[str, str]]] = set()
"""Plugins and what they changed, of which a warning was issued."""


def watched_call(plugin: str, where: str, function: Callable[..., _T], *arguments: Any) -> _T:
    """Call a function of a plugin and return its answer; restore what it changes in the process, with a warning.

    A call within another one in the same thread is a part of that.

    Args:
        plugin: Name of the plugin.
        where: What of it is called, such as the name of a hook.
        function: The function.
        arguments: Its arguments.

    Raises:
        PluginInterruptedError: a person ended the wait for the answer.
        BaseException: what the function raises.
    """
    thread = threading.get_ident()
    if thread in _calls:
        return function(*arguments)
    call = _Call(plugin, where)
    try:
        _calls[thread] = call
        _watchdog.ensure()
        before = _state()
        try:
            if thread == threading.main_thread().ident:
                return _signals.guard(call, function, *arguments)
            return function(*arguments)
        finally:
            _restore(call, before)
    except _WaitEndedError:
        waited_s = time.monotonic() - call.began
        raise PluginInterruptedError(f"it did not answer within {waited_s:.0f} s") from None
    finally:
        _calls.pop(thread, None)


def is_stuck(thread: threading.Thread) -> bool:
    """Return whether a thread waits for a plugin that was told of."""
    call = _calls.get(thread.ident or 0)
    return call is not None and call.is_told


def _state() -> ProcessState | None:
    """Return the state of the process; None if it cannot be read, so that nothing can be compared."""
    try:
        state = ProcessState()
    except OSError:
        return None
    state.keep_streams()
    return state


def _restore(call: _Call, before: ProcessState | None) -> None:
    """Restore what a plugin changed, with one warning for each thing."""
    if before is None:
        return
    try:
        changed = [*before.restore()]
    except OSError:
        return
    for what in changed:
        suspects = " or ".join(sorted({call.plugin, *(each.plugin for each in [*_calls.values()])}))
        if (suspects, what) not in _warned_of:
            _warned_of.add((suspects, what))
            _log.warning("plugin %s changed %s in %s; torc restored it", suspects, what, call.where)


class _Signals:
    """The handlers of the signals that ask the process to stop, while a plugin works in the main thread."""

    def __init__(self) -> None:
        self._call: _Call | None = None
        self._former: dict[signal.Signals, Any] = {}
        self._own = self._handle  # one object, by which it is recognized
        self._has_ended_wait = False
        self.former_fd = -1
        """The descriptor that was written to when a signal arrived."""

    def guard(self, call: _Call, function: Callable[..., _T], *arguments: Any) -> _T:
        """Call a function of a plugin with these handlers; those that the plugin sets instead stay."""
        try:
            former_fd = signal.set_wakeup_fd(_watchdog.write_fd, warn_on_full_buffer=False)
            self.former_fd = -1 if former_fd == _watchdog.write_fd else former_fd  # as a KeyboardInterrupt may leave it
            for number in _STOP_SIGNALS:
                former = signal.getsignal(number)
                if callable(former) and former is not self._own:
                    self._former[number] = former
                    signal.signal(number, self._own)
            self._call = call
            return function(*arguments)
        finally:
            self._call = None  # from here on `_handle` only passes on
            for number, former in self._former.items():
                if signal.getsignal(number) is self._own:
                    signal.signal(number, former)
            with suppress(ValueError, OSError):  # it was closed
                signal.set_wakeup_fd(self.former_fd, warn_on_full_buffer=False)
            _watchdog.take_signals()

    def _handle(self, number: int, frame: FrameType | None) -> None:
        call, former = self._call, self._former[signal.Signals(number)]
        if call is None:
            former(number, frame)
            return
        call.handled += 1
        try:
            former(number, frame)
        except KeyboardInterrupt:
            if not call.is_told or number != signal.SIGINT or self._has_ended_wait:
                raise
            self._has_ended_wait = True
        else:
            if not call.is_told and call.handled == 1:
                return
        raise _WaitEndedError


class _Watchdog:
    """A thread that tells of slow calls, and ends the process if a plugin cannot be interrupted.

    It exists while there are calls, and for up to `SLOW_S` seconds after the last.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._is_working = False
        self._read_fd = self.write_fd = -1

    def ensure(self) -> None:
        """Start the thread unless it works; without it, where no thread can be started, calls are not watched."""
        if not self._is_working:
            with self._lock, suppress(RuntimeError, OSError):
                self._start()

    def _start(self) -> None:
        if self._is_working:
            return
        if self.write_fd < 0:
            self._read_fd, self.write_fd = os.pipe2(os.O_NONBLOCK | os.O_CLOEXEC)
        threading.Thread(target=self._work, name="torc-plugin-watchdog", daemon=True).start()
        self._is_working = True

    def take_signals(self) -> None:
        """Note which signals have arrived, and tell the descriptor that was told before."""
        with suppress(OSError):  # mostly there is none
            numbers = os.read(self._read_fd, 4096)
            if (call := _calls.get(threading.main_thread().ident or 0)) is not None:
                call.arrived += [time.monotonic() for number in numbers if number in _STOP_SIGNALS]
            if _signals.former_fd >= 0:
                os.write(_signals.former_fd, numbers)

    def _work(self) -> None:
        while self._has_calls():
            now = time.monotonic()
            due = [now + SLOW_S, *(when for call in [*_calls.values()] for when in self._check(call, now))]
            if select.select([self._read_fd], [], [], max(0.0, min(due) - now))[0]:
                self.take_signals()

    def _has_calls(self) -> bool:
        with self._lock:
            self._is_working = bool(_calls)
            return self._is_working

    def _check(self, call: _Call, now: float) -> Iterator[float]:
        """Tell of a call what is due now; yield when something else will be."""
        is_main = _calls.get(threading.main_thread().ident or 0) is call
        if not call.is_told and now - call.began < SLOW_S:
            yield call.began + SLOW_S
        elif not call.is_told:
            call.is_told = True
            advice = "; Ctrl-C ends the wait for it" if is_main else ""
            _log.warning("plugin %s takes longer than %g s in %s%s", call.plugin, SLOW_S, call.where, advice)
        for count, arrived in enumerate(call.arrived[:2], 1):
            if now - arrived < LAST_S:
                yield arrived + LAST_S
            elif count == 2:
                _end_process(call)
            elif not call.is_told_of_arrival and call.is_told:
                call.is_told_of_arrival = True
                _log.warning("plugin %s cannot be interrupted in %s; Ctrl-C ends torc", call.plugin, call.where)


def _end_process(call: _Call) -> NoReturn:
    """End the process as a kill does; the next runner takes over what this one holds."""
    with suppress(OSError):
        os.write(2, f"Error: plugin {call.plugin} cannot be interrupted in {call.where}; torc ends\n".encode())
    os._exit(ExitStatus.INTERRUPTED)


_signals: Final = _Signals()
_watchdog: Final = _Watchdog()
