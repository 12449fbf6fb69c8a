"""Attempts of other runners and of killed supervisors, whose ends the launcher learns from journals only."""

from __future__ import annotations

import os
import select
import time
from typing import TYPE_CHECKING

from torc_framework.supervision import supervisor

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from torc_framework.supervision.journal import Journal, JournalEntry
    from torc_framework.supervision.supervisor import Key

RECORD_PATIENCE_S = 0.01
"""How long to wait for the record of a process that has just ended."""
TAKEOVER_PATIENCE_S = 1.0
"""How long to wait for the record of a process that had ended before it could be followed.

Its supervisor was killed at that moment, and the reaper has to take over before it can record the end.
"""


class Orphans:
    """Attempts that are known from a journal only.

    Args:
        epoll: Is to wake up when a followed process ends.
        ended: Called with key and entry of each attempt that is over; with None as entry if its end is not recorded.
    """

    def __init__(self, epoll: select.epoll, ended: Callable[[Key, JournalEntry | None], None]) -> None:
        self._epoll, self._ended = epoll, ended
        self._followed: dict[Key, tuple[Journal, int | None]] = {}

    def follow(self, journal: Journal, key: Key) -> bool:
        """Follow an attempt that was started by the journal; return False if it is over and its end is never recorded.

        While the supervisor or the reaper holds the journal, the record of an ended process may still come.
        """
        entry = journal.entries[key]
        if not entry.is_over() and entry.is_alive():
            self._followed[key] = journal, self._watch(entry)
        elif self._wait_for_record(journal, entry, TAKEOVER_PATIENCE_S):
            self._ended(key, entry)
        elif journal.is_held():
            self._followed[key] = journal, None
        else:
            return False
        return True

    def _watch(self, entry: JournalEntry) -> int | None:
        try:
            fd = os.pidfd_open(entry.pid or 0)
        except (OSError, AttributeError):
            # It has just ended, or the kernel is older than Linux 5.3 (pidfd_open(2)), or Python than 3.9: `poll`
            # checks it.
            return None
        self._epoll.register(fd, select.EPOLLIN)
        return fd

    def poll(self) -> None:
        """Call ``ended`` for the attempts that are over."""
        ready = {fd for fd, _ in self._epoll.poll(0)} if self._followed else set()
        for key, (journal, fd) in list(self._followed.items()):
            if fd in ready or (fd is None and not journal.entries[key].is_alive()):
                self._settle(key, journal)

    def _settle(self, key: Key, journal: Journal) -> None:
        entry = journal.entries[key]
        seen = self._wait_for_record(journal, entry)
        if not seen and journal.is_held():
            return  # the record is still to come; the descriptor stays readable
        _, fd = self._followed.pop(key)
        if fd is not None:
            self._epoll.unregister(fd)
            os.close(fd)
        self._ended(key, entry if seen or self._wait_for_record(journal, entry) else None)

    @staticmethod
    def _wait_for_record(journal: Journal, entry: JournalEntry, patience_s: float = RECORD_PATIENCE_S) -> bool:
        deadline = time.monotonic() + patience_s
        while True:
            expected = journal.is_held()
            journal.read()
            if entry.is_over() or not expected or time.monotonic() > deadline:
                return entry.is_over()
            time.sleep(0.001)

    def journals(self) -> list[Journal]:
        """Return the journals of the followed attempts."""
        return [journal for journal, _ in self._followed.values()]

    def pid(self, key: Key) -> int | None:
        """Return the first process of an attempt; None if it is not followed."""
        if key not in self._followed:
            return None
        return self._followed[key][0].entries[key].pid

    def stop(self, keys: Iterable[Key], number: int) -> None:
        """Send a signal to those of these attempts that are followed."""
        entries = [self._followed[key][0].entries[key] for key in keys if key in self._followed]
        leaders = {entry.pid for entry in entries if entry.pid is not None and entry.is_alive()}
        if leaders:
            supervisor.send_signal(leaders, number)

    def close(self) -> None:
        """Stop following all attempts."""
        for _, fd in self._followed.values():
            if fd is not None:
                os.close(fd)
        self._followed.clear()
