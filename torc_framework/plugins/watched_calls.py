"""Calls of plugins: what a plugin changes in the process is restored, and one that does not return is told of.

A plugin that does not return within `SLOW_S` seconds is named on standard error. If it is called in the main thread,
the next Ctrl-C ends the wait: an exception is raised in the plugin, and its caller goes on without its answer. A
KeyboardInterrupt ends the wait once in a process, and the command after that; a handler that only counts signals, as
that of a runner does, calls `end_wait`. A plugin in which no exception can be raised, because it waits in C code or
catches everything, ends with the process, `LAST_S` seconds after the second signal.

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
from typing import Any, Final, NoReturn, TypeVar

from torc_framework.errors import ExitStatus, PluginError
from torc_framework.plugins.process_state import ProcessWideState

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


class _PluginCall:
    """A call of a plugin.

    Attributes:
        plugin: Name of the plugin.
        where: What of it was called.
        began: Begin, by the monotonic clock.
        is_active: The plugin's code runs now, so that an exception may be raised in it.
        is_told: It was told of.
        arrived: When each signal arrived that asks the process to stop, by the monotonic clock.
        is_told_of_signal: It was told that the first signal did not end the wait.
    """

    __slots__ = ("arrived", "began", "is_active", "is_told", "is_told_of_signal", "plugin", "where")

    def __init__(self, plugin: str, where: str) -> None:
        self.plugin, self.where, self.began = plugin, where, time.monotonic()
        self.is_active = self.is_told = self.is_told_of_signal = False
        self.arrived: list[float] = []


_calls: Final[dict[int, _PluginCall]] = {}
"""The calls in progress, by the identifier of the thread."""
_warned_of: Final[set[tuple[str, str]]] = set()
"""Who changed what, of which a warning was issued."""


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
    call = _PluginCall(plugin, where)
    try:
        _calls[thread] = call
        _watchdog.begin(thread)
        before = _state()
        try:
            call.is_active = True
            return function(*arguments)
        finally:
            call.is_active = False
            suspects = sorted({each.plugin for each in [*_calls.values()]})  # the process is that of all threads
            _restore(f"plugin {' or '.join(suspects)}", where, before)
            _watchdog.end(thread)
    except (_WaitEndedError, KeyboardInterrupt) as stop:
        if isinstance(stop, KeyboardInterrupt) and not _ends_only_the_wait(call):
            raise
        waited_s = time.monotonic() - call.began
        raise PluginInterruptedError(f"it did not answer within {waited_s:.0f} s") from None
    finally:
        _calls.pop(thread, None)


def restoring_call(who: str, where: str, function: Callable[..., _T], *arguments: Any, **named: Any) -> _T:
    """Call a function and return its answer; restore what it changes in the process, with a warning.

    Args:
        who: Whose function it is, for the warning.
        where: What of it is called.
        function: The function.
        arguments: Its arguments.
        named: Its arguments by name.

    Raises:
        BaseException: what the function raises.
    """
    before = _state()
    try:
        return function(*arguments, **named)
    finally:
        _restore(who, where, before)


def end_wait(signals: int) -> None:
    """End the wait for a plugin that the main thread calls, if there is one; called by handlers that only count.

    Args:
        signals: How many have arrived. The first one ends the wait only for a plugin that was told of.
    """
    call = _calls.get(threading.main_thread().ident or 0)
    if call is not None and call.is_active and (call.is_told or signals > 1):
        raise _WaitEndedError


def is_stuck(thread: threading.Thread) -> bool:
    """Return whether a thread waits for a plugin that was told of."""
    call = _calls.get(thread.ident or 0)
    return call is not None and call.is_told


def _ends_only_the_wait(call: _PluginCall) -> bool:
    """Return whether a KeyboardInterrupt ends the wait for a plugin, and not the command."""
    if not call.is_told or _has_ended_wait.is_set():
        return False
    _has_ended_wait.set()
    return True


def _state() -> ProcessWideState | None:
    """Return the state of the process; None if it cannot be read, so that nothing can be compared."""
    try:
        state = ProcessWideState()
    except (OSError, ValueError):  # ValueError: Linux before 4.7 tells no umask
        return None
    state.keep_streams()
    return state


def _restore(who: str, where: str, before: ProcessWideState | None) -> None:
    """Restore what a plugin changed, with one warning for each plugin and thing."""
    if before is None:
        return
    try:
        changed = [*before.restore()]
    except (OSError, ValueError):
        return
    for what in changed:
        if (who, what) not in _warned_of:
            _warned_of.add((who, what))
            _log.warning("%s changed %s in %s; torc restored it", who, what, where)


class _Watchdog:
    """A thread that tells of slow calls, and ends the process if a plugin cannot be interrupted.

    It exists while there are calls, and for up to `SLOW_S` seconds after the last.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._is_working = False
        self._read_fd = self._write_fd = self._former_fd = -1

    def begin(self, thread: int) -> None:
        """Watch a call in a thread; without a watch, if no thread can be started."""
        if not self._is_working:
            with self._lock, suppress(RuntimeError, OSError):
                self._start()
        if thread == threading.main_thread().ident:
            former_fd = signal.set_wakeup_fd(self._write_fd, warn_on_full_buffer=False)
            self._former_fd = -1 if former_fd == self._write_fd else former_fd  # as a KeyboardInterrupt may leave it

    def end(self, thread: int) -> None:
        """Let the signals wake what they woke before."""
        if thread == threading.main_thread().ident:
            with suppress(ValueError, OSError):  # it was closed
                signal.set_wakeup_fd(self._former_fd, warn_on_full_buffer=False)
            self._take_signals()

    def _start(self) -> None:
        if self._is_working:
            return
        if self._write_fd < 0:
            self._read_fd, self._write_fd = os.pipe2(os.O_NONBLOCK | os.O_CLOEXEC)
        threading.Thread(target=self._work, name="torc-plugin-watchdog", daemon=True).start()
        self._is_working = True

    def _take_signals(self) -> None:
        """Note which signals have arrived, and pass them on."""
        with suppress(OSError):  # mostly there is none
            numbers = os.read(self._read_fd, 4096)
            if (call := _calls.get(threading.main_thread().ident or 0)) is not None:
                call.arrived += [time.monotonic() for number in numbers if number in _STOP_SIGNALS]
            if self._former_fd >= 0:
                os.write(self._former_fd, numbers)

    def _work(self) -> None:
        while self._has_calls():
            now = time.monotonic()
            due = [now + SLOW_S, *(when for call in [*_calls.values()] for when in self._check(call, now))]
            if select.select([self._read_fd], [], [], max(0.0, min(due) - now))[0]:
                self._take_signals()

    def _has_calls(self) -> bool:
        with self._lock:
            self._is_working = bool(_calls)
            return self._is_working

    def _check(self, call: _PluginCall, now: float) -> Iterator[float]:
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
            elif not call.is_told_of_signal and call.is_told:
                call.is_told_of_signal = True
                _log.warning("plugin %s cannot be interrupted in %s; Ctrl-C ends torc", call.plugin, call.where)


def _end_process(call: _PluginCall) -> NoReturn:
    """End the process as a kill does; the next runner takes over what this one holds."""
    with suppress(OSError):
        os.write(2, f"Error: plugin {call.plugin} cannot be interrupted in {call.where}; torc ends\n".encode())
    os._exit(ExitStatus.INTERRUPTED)


_has_ended_wait: Final = threading.Event()
_watchdog: Final = _Watchdog()
