"""A launcher under observation: its calls are limited in time, may not raise, and leave the runner as it is."""

import os
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from typing import Any, Final, TypeVar

from torc_framework.api import Adoption, Attempt, AttemptKey, Launcher, LauncherEvent
from torc_framework.testing.support.clauses import answer, require, too_slow
from torc_framework.testing.support.time_limits import undelayed_clock_s

_T = TypeVar("_T")
CALL_LIMIT_S: Final = 8.0
"""How long a call may take that starts programs or asks a batch system."""
POLL_LIMIT_S: Final = 4.0
SLOW_POLL_S: Final = 0.5
SLOW_POLLS: Final = 4
SLOW_POLLS_S: Final = 6.0
"""A plugin's polls block if so many in a row take longer than `SLOW_POLL_S` each and so long together."""
STARTS_AT_ONCE: Final = "start returns at once; attempts run on their own"
_CLAUSES: Final[Mapping[str, tuple[str, str]]] = {
    "start": (STARTS_AT_ONCE, "start does not raise for an attempt that cannot be started"),
    "queue": ("queue returns at once; attempts run on their own", "queue does not raise"),
    "poll": ("poll returns without blocking: a runner has one thread", "poll does not raise: that ends the runner"),
    "stop": (
        "stop returns at once: the end arrives through poll",
        "stop does not raise: unknown and ended attempts are ignored",
    ),
    "withdraw": ("withdraw returns at once", "withdraw does not raise: unknown and ended attempts are ignored"),
    "ends_stored": ("ends_stored returns at once", "ends_stored does not raise: unknown attempts are ignored"),
    "processes": ("processes returns at once", "processes does not raise: unknown attempts are left out"),
    "memory_limited": ("memory_limited returns at once", "memory_limited does not raise: unknown ones are left out"),
    "state": ("state returns at once", "state does not raise"),
    "wait_fd": ("wait_fd returns at once", "wait_fd does not raise"),
    "adopt": ("adopt returns without waiting for attempts", "adopt does not raise once the dead runner is gone"),
    "forget": ("forget returns at once", "forget does not raise"),
    "close": ("close returns soon when no attempt is running", "close does not raise"),
    "abandon": ("abandon returns soon, and waits for no attempt", "abandon does not raise"),
}
"""For each method the clause on its time, and the clause on exceptions."""


_SLOW_POLLS_S: Final[dict[type[Launcher], list[float]]] = {}
"""The times of the last polls of each class, if these were slow."""


class GuardedLauncher:
    """Passes each call on to a launcher, and fails with the clause that the call breaks.

    Keys arrive as an iterator, which can be read once: that is what the contract promises.
    """

    def __init__(self, launcher: Launcher) -> None:
        self._launcher = launcher

    def __getattr__(self, name: str) -> Any:
        return getattr(self._launcher, name)

    def _call(self, method: str, *arguments: Any, **named: Any) -> Any:
        __tracebackhide__ = True
        takes, raises = _CLAUSES[method]
        limit_s = POLL_LIMIT_S if method == "poll" else CALL_LIMIT_S
        before = _runner_facts()
        bound: Callable[..., Any] = getattr(self._launcher, method)
        found = answer(lambda: bound(*arguments, **named), raises, limit_s=limit_s, slow=takes)
        after = _runner_facts()
        changed = [name for name, value in before.items() if after[name] != value]
        require(not changed, f"{method} leaves the runner's folder, environment and umask as they are", changed)
        return found

    def _give(self, method: str, attempts: Sequence[Attempt]) -> None:
        given, before = list(attempts), repr(attempts)
        self._call(method, given)
        is_same = given == list(attempts) and repr(attempts) == before
        require(is_same, f"{method} leaves the attempts that it is given as they are", given)

    def start(self, attempts: Sequence[Attempt]) -> None:
        """Pass on `Launcher.start`."""
        self._give("start", attempts)

    def queue(self, attempts: Sequence[Attempt]) -> None:
        """Pass on `Launcher.queue`."""
        self._give("queue", attempts)

    def poll(self) -> list[LauncherEvent]:
        """Pass on `Launcher.poll`."""
        began_s = undelayed_clock_s()
        events: list[LauncherEvent] = self._call("poll")
        self._note_poll(undelayed_clock_s() - began_s)
        require(isinstance(events, list), "poll answers with a list of events", events)
        return list(events)

    def _note_poll(self, seconds: float) -> None:
        """Fail if all of the last polls were slow: a suite that polls hundreds of times would take minutes."""
        __tracebackhide__ = True
        slow = _SLOW_POLLS_S.setdefault(type(self._launcher), [])
        slow.append(seconds)
        if seconds <= SLOW_POLL_S:
            slow.clear()
        elif len(slow) >= SLOW_POLLS and sum(slow) >= SLOW_POLLS_S:
            seen = f"the fastest of {len(slow)} polls in a row took {min(slow):.2f} s"
            slow.clear()
            too_slow(_CLAUSES["poll"][0], seen)

    def stop(self, keys: Iterable[AttemptKey], *, force: bool) -> None:
        """Pass on `Launcher.stop`."""
        self._call("stop", iter(list(keys)), force=force)

    def withdraw(self, keys: Iterable[AttemptKey]) -> None:
        """Pass on `Launcher.withdraw`."""
        self._call("withdraw", iter(list(keys)))

    def ends_stored(self, keys: Iterable[AttemptKey]) -> None:
        """Pass on `Launcher.ends_stored`."""
        self._call("ends_stored", iter(list(keys)))

    def processes(self, keys: Iterable[AttemptKey]) -> dict[AttemptKey, Sequence[int]]:
        """Pass on `Launcher.processes`."""
        found = self._call("processes", iter(list(keys)))
        require(isinstance(found, Mapping), "processes answers with pids by attempt", found)
        return dict(found)

    def memory_limited(self, keys: Iterable[AttemptKey]) -> Collection[AttemptKey]:
        """Pass on `Launcher.memory_limited`."""
        asked = list(keys)
        found = list(self._call("memory_limited", iter(asked)))
        require(set(found) <= set(asked), "memory_limited answers with attempts that were asked for", found)
        return found

    def state(self) -> dict[str, Any]:
        """Pass on `Launcher.state`."""
        state: dict[str, Any] = self._call("state")
        return state

    def wait_fd(self) -> int | None:
        """Pass on `Launcher.wait_fd`."""
        descriptor: int | None = self._call("wait_fd")
        require(descriptor is None or isinstance(descriptor, int), "wait_fd is a descriptor's number, or None")
        return descriptor

    def adopt(self, state: Mapping[str, Any], keys: Sequence[AttemptKey]) -> Adoption:
        """Pass on `Launcher.adopt`."""
        adoption = self._call("adopt", state, list(keys))
        require(isinstance(adoption, Adoption), "adopt answers with an Adoption", adoption)
        answered = sorted([*adoption.adopted, *adoption.never_started, *adoption.unknown])
        require(answered == sorted(keys), "adopt answers for each attempt that it is asked about, once", adoption)
        found: Adoption = adoption
        return found

    def forget(self, state: Mapping[str, Any]) -> None:
        """Pass on `Launcher.forget`."""
        self._call("forget", state)

    def close(self) -> None:
        """Pass on `Launcher.close`."""
        self._call("close")

    def abandon(self) -> None:
        """Pass on `Launcher.abandon`."""
        self._call("abandon")


def _runner_facts() -> dict[str, Any]:
    """Return what a launcher must not change in its runner."""
    mask = os.umask(0)
    os.umask(mask)
    return {"folder": os.getcwd(), "environment": dict(os.environ), "umask": mask}  # noqa: PTH109 - the process's own
