"""Requests of the family ``attempts``: attempts that a supervisor on the host runs, for one launcher."""

from __future__ import annotations

import importlib
import os
import pathlib
import signal
from typing import TYPE_CHECKING, Any, Callable

from torc_ssh.helper.errors import INVALID, RefusedRequestError
from torc_ssh.helper.loop import HelperLoop
from torc_ssh.helper.memory_watch import MemoryWatch
from torc_ssh.helper.process_identity import signal_number
from torc_ssh.helper.state_folder import HelperLock, check_name, choose_state_folder, install_sources

if TYPE_CHECKING:
    from torc_framework.api.supervision import SupervisedAttempts

JOURNAL = ".journal"
LOCK = ".lock"
MOST_REPORTS = 1000
"""How many reports one event contains."""


class HostAttempts:
    """The attempts of one launcher on this host.

    Args:
        loop: The loop of the helper.
        sources: The source files of the room ``supervision`` by their paths.
    """

    def __init__(self, loop: HelperLoop, sources: dict[str, str]) -> None:
        self._loop = loop
        self._sources = sources
        self._attempts: SupervisedAttempts | None = None
        self._lock: HelperLock | None = None
        self._hindrance: str | None = None
        self._memory = MemoryWatch()

    def requests(self) -> dict[str, Callable[..., Any]]:
        """Return the functions of the requests by their names."""
        functions: dict[str, Callable[..., Any]] = {
            "open": self._open,
            "adopt": self._adopt,
            "forget": self._forget,
            "start": lambda commands: self._opened.start(self._commands(commands)),
            "queue": lambda commands: self._opened.queue(self._commands(commands)),
            "promote": lambda keys: self._opened.promote(_keys(keys)),
            "stop": lambda keys, signal: self._opened.stop(_keys(keys), signal_number(signal)),
            "withdraw": lambda keys: self._opened.withdraw(_keys(keys)),
            "close": lambda: self._end(finished=True),
            "abandon": lambda: self._end(finished=False),
        }
        return {f"attempts_{name}": function for name, function in functions.items()}

    @property
    def _opened(self) -> SupervisedAttempts:
        if self._attempts is None:
            raise RefusedRequestError(INVALID, "attempts_open has to come first")
        return self._attempts

    def _open(
        self, name: str, folder: str | None = None, memory_cgroup: str = "auto", needs_cgroups: bool = False
    ) -> dict[str, Any]:
        if self._attempts is not None:
            raise RefusedRequestError(INVALID, "attempts_open was requested before")
        check_name(name)
        folder = choose_state_folder(folder)
        library = install_sources(folder, self._sources)
        self._lock = HelperLock(f"{folder}/{name}{LOCK}")
        room = importlib.import_module("torc_framework.supervision.attempts")
        try:
            attempts = room.SupervisedAttempts(
                pathlib.Path(folder, name + JOURNAL),
                memory_cgroup=memory_cgroup,
                needs_cgroups=needs_cgroups,
                sources=pathlib.Path(library),
            )
        except BaseException:
            self._lock.release(remove=False)
            raise
        self._attempts = attempts
        self._loop.watch(attempts.fileno(), self.poll)
        self._loop.on_tick = self._tick
        return {"folder": folder, "state": attempts.state()}

    def _commands(self, rows: list[Any]) -> list[Any]:
        room = importlib.import_module("torc_framework.supervision.commands")
        commands = [room.AttemptCommand(*row) for row in rows]
        self._memory.watch((command.key, command.memory_limit_bytes) for command in commands)
        return commands

    def _adopt(self, state: dict[str, Any], keys: list[Any], memory_limits: list[Any] | None = None) -> dict[str, Any]:
        attempts, journal = self._opened, str(state.get("journal") or "")
        if journal != str(attempts.state().get("journal")) and os.path.exists(lock := _lock_of(journal)):
            HelperLock(lock).release(remove=False)  # the helper of a dead runner may not know that it is alone
        found = attempts.adopt(state, _keys(keys))
        self._memory.watch((tuple(key), limit) for key, limit in memory_limits or ())
        return {name: [list(key) for key in getattr(found, name)] for name in found._fields}

    def _forget(self, state: dict[str, Any]) -> None:
        self._opened.forget(state)
        journal = str(state.get("journal") or "")
        if journal != str(self._opened.state().get("journal")) and os.path.exists(lock := _lock_of(journal)):
            HelperLock(lock).release(remove=True)

    def _tick(self) -> None:
        """Poll, and kill the attempts that use more memory than their limit; an event tells why."""
        self.poll()
        if self._attempts is None:
            return
        for key, size in self._memory.exceeded(self._attempts):
            self._loop.send({"event": "memory_exceeded", "key": list(key), "bytes": size})
            self._attempts.stop([key], signal.SIGKILL)

    def poll(self) -> None:
        """Send the reports that there are, and a hindrance that has changed.

        Raises:
            SupervisionError: no supervisor can be started; the helper ends with this message.
        """
        if self._attempts is None:
            return
        reports = self._attempts.poll()
        for kind, *key in (report[:3] for report in reports):
            if kind != "S":
                self._memory.forget((key[0], key[1]))
        for first in range(0, len(reports), MOST_REPORTS):
            self._loop.send({"event": "attempts", "reports": reports[first : first + MOST_REPORTS]})
        if self._attempts.hindrance != self._hindrance:
            self._hindrance = self._attempts.hindrance
            self._loop.send({"event": "hindrance", "reason": self._hindrance})

    def _end(self, *, finished: bool) -> None:
        attempts, self._attempts = self._opened, None
        self._loop.unwatch(attempts.fileno())
        if finished:
            attempts.close()
        else:
            attempts.abandon()
        if self._lock is not None:
            self._lock.release(remove=finished)

    def close(self) -> None:
        """Leave the attempts to their supervisor."""
        if self._attempts is not None:
            self._end(finished=False)


def _keys(rows: list[Any]) -> list[Any]:
    return [(int(job), int(attempt)) for job, attempt in rows]


def _lock_of(journal: str) -> str:
    return (journal[: -len(JOURNAL)] if journal.endswith(JOURNAL) else journal) + LOCK
