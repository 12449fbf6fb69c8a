"""Checks that a hook answers from its arguments alone: the same each time, and without effects on anything else."""

import os
import random
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType
from typing import Any, Final

from torc_framework.testing.support import time_limits
from torc_framework.testing.support.clauses import SOON, answer, require

_EFFECTS: Final = ("open", "socket.", "subprocess.", "os.system", "os.remove", "os.rename", "os.mkdir", "os.listdir")
"""Audit events of code that reads or changes something outside of the process."""
_CLOCKS: Final = frozenset(
    f"{name}{suffix}" for name in ("time", "monotonic", "perf_counter", "clock_gettime") for suffix in ("", "_ns")
) | {"localtime", "gmtime", "ctime", "process_time"}
_DATES: Final = frozenset({"now", "utcnow", "today"})
_ENVIRONMENT: Final = type(os.environ).__getitem__.__code__
ALONE: Final = (
    "answer from the arguments alone: no files, no network, no programs, no clock, no randomness, no environment"
)
SAME: Final = "answer the same whenever asked the same: no clock, no randomness, no memory"
SCHEDSTAT: Final = str(time_limits.SCHEDSTAT)
AT_ONCE_S: Final = 0.2
"""How long the fastest of several calls may take."""
CALLS: Final = 4
"""How often the same is asked."""


class _EffectRecorder:
    """Records the audit events of this process that have an effect, while ``events`` is a list."""

    def __init__(self) -> None:
        self.events: list[str] | None = None
        self._is_installed = False

    def install(self) -> None:
        """Add the audit hook; it cannot be removed, so there is one for all checks."""
        if not self._is_installed:
            self._is_installed = True
            sys.addaudithook(self._record)

    def _record(self, event: str, arguments: tuple[object, ...]) -> None:
        if self.events is not None and event.startswith(_EFFECTS) and SCHEDSTAT not in map(str, arguments):
            self.events.append(f"{event}{arguments!r:.200}")


_RECORDER: Final = _EffectRecorder()


@contextmanager
def recorded_effects() -> Iterator[list[str]]:
    """Return the list of the files that the block opens, the connections it makes and the programs it starts."""
    _RECORDER.install()
    events: list[str] = []
    before, _RECORDER.events = _RECORDER.events, events
    try:
        yield events
    finally:
        _RECORDER.events = before


@contextmanager
def recorded_sources() -> Iterator[list[str]]:
    """Return the list of the clocks, random numbers and environment variables that the block reads; logs may."""
    sources: list[str] = []

    def observe(frame: FrameType, event: str, called: Any) -> None:
        name = _source(frame, event, called)
        if name is not None and not _is_logging(frame):
            sources.append(name)

    before = sys.getprofile()
    sys.setprofile(observe)
    try:
        yield sources
    finally:
        sys.setprofile(before)


def _source(frame: FrameType, event: str, called: Any) -> str | None:
    """Return what a call reads, if it is a clock, a random number or a variable of the environment."""
    if event == "call":
        return "os.environ" if frame.f_code is _ENVIRONMENT else None
    if event != "c_call":
        return None
    name, owner = getattr(called, "__name__", ""), getattr(called, "__self__", None)
    if isinstance(owner, random.Random):
        return f"random.{name}"
    if getattr(called, "__module__", None) == "time" and name in _CLOCKS:
        return f"time.{name}"
    if getattr(owner, "__module__", None) == "datetime" and name in _DATES:
        return f"datetime.{name}"
    return "os.urandom" if called is os.urandom else None


def _is_logging(frame: FrameType | None) -> bool:
    """Return whether a log, or the time limit of the call, reads it."""
    while frame is not None:
        name = frame.f_globals.get("__name__", "")
        if name == time_limits.__name__ or name.partition(".")[0] == "logging":
            return True
        frame = frame.f_back
    return False


def require_pure(hook: Callable[..., Any], *arguments: Any) -> None:
    """Fail unless a hook answers the same each time, from the second time on without effects.

    The first call may import modules.
    """
    __tracebackhide__ = True
    clause = "never raise: what has no answer is None"
    before = repr(arguments)
    first = answer(hook, clause, *arguments)
    seen: list[str] = []

    def watched(*values: Any) -> Any:
        with recorded_effects() as effects, recorded_sources() as sources:
            try:
                return hook(*values)
            finally:
                seen.extend([*effects, *sources])

    second = answer(watched, clause, *arguments)
    require(first == second, SAME, (first, second))
    require(not seen, ALONE, seen)
    for _ in range(CALLS - 2):
        again = answer(hook, clause, *arguments)
        require(first == again, SAME, (first, again))
    require(repr(arguments) == before, "leave the arguments as they are", arguments)


def require_same(hook: Callable[..., Any], *arguments: Any) -> None:
    """Fail unless a hook answers the same each time and leaves its arguments as they are; it may have effects."""
    __tracebackhide__ = True
    before = repr(arguments)
    answers = [answer(hook, "never raise: what has no answer is None", *arguments) for _ in range(CALLS)]
    require(all(each == answers[0] for each in answers), SAME, answers)
    require(repr(arguments) == before, "leave the arguments as they are", arguments)


def require_soon(hook: Callable[..., Any], *arguments: Any) -> None:
    """Fail unless the fastest of some calls returns at once."""
    __tracebackhide__ = True
    fastest_s = AT_ONCE_S + 1
    for _ in range(3):
        began = time.perf_counter()
        hook(*arguments)
        fastest_s = min(fastest_s, time.perf_counter() - began)
        if fastest_s <= AT_ONCE_S:
            return
    require(False, SOON, f"the fastest of three calls took {fastest_s:.2f} s")
