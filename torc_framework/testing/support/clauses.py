"""Clauses of contracts: assertions that name the broken clause, and checks on many generated values."""

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, Final, NoReturn, TypeVar

from hypothesis import HealthCheck, Phase, given, settings
from hypothesis.strategies import SearchStrategy

_T = TypeVar("_T")
_UNSEEN: Final = object()
_PHASES: Final = (Phase.generate, Phase.shrink)
_EFFECTS: Final = ("open", "socket.", "subprocess.", "os.system", "os.remove", "os.rename", "os.mkdir", "os.listdir")
"""Audit events of code that reads or changes something outside of the process."""


def require(holds: object, clause: str, seen: object = _UNSEEN) -> None:
    """Fail with a clause of the contract unless it holds.

    Args:
        clause: The clause, as a sentence that tells a plugin author what to do.
        seen: What was seen instead.
    """
    __tracebackhide__ = True
    if not holds:
        broken(clause, seen)


def broken(clause: str, seen: object = _UNSEEN) -> NoReturn:
    """Fail with a clause of the contract."""
    __tracebackhide__ = True
    raise AssertionError(f"the contract says: {clause}" + ("" if seen is _UNSEEN else f"\n  but: {seen!r}"))


def for_all(values: SearchStrategy[_T], check: Callable[[_T], None], *, most: int = 100) -> None:
    """Check a clause on many generated values; a failure shows the simplest value that breaks it."""

    @settings(max_examples=most, deadline=None, database=None, phases=_PHASES, suppress_health_check=list(HealthCheck))
    @given(values)
    def tried(value: _T) -> None:
        check(value)

    tried()


def answer(hook: Callable[..., _T], clause: str, *arguments: Any) -> _T:
    """Return the answer of a hook; an exception breaks the clause."""
    __tracebackhide__ = True
    try:
        return hook(*arguments)
    except Exception as error:
        raise AssertionError(
            f"the contract says: {clause}\n  but: it raised {type(error).__name__}: {error}"
        ) from error


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
        if self.events is not None and event.startswith(_EFFECTS):
            self.events.append(f"{event}{arguments!r:.200}")


_RECORDER: Final = _EffectRecorder()


@contextmanager
def no_effects(clause: str) -> Iterator[None]:
    """Fail with a clause if the block opens files, connects or starts programs."""
    __tracebackhide__ = True
    _RECORDER.install()
    events: list[str] = []
    _RECORDER.events = events
    try:
        yield
    finally:
        _RECORDER.events = None
    require(not events, clause, events)


def require_pure(hook: Callable[..., Any], *arguments: Any) -> None:
    """Fail unless a hook answers the same twice, the second time without effects; the first call may import modules."""
    __tracebackhide__ = True
    before = repr(arguments)
    first = hook(*arguments)
    with no_effects("answer from the arguments alone: no files, no network, no programs"):
        second = hook(*arguments)
    require(
        first == second, "answer the same whenever asked the same: no clock, no randomness, no memory", (first, second)
    )
    require(repr(arguments) == before, "leave the arguments as they are", arguments)
