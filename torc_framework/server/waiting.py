"""Runners that wait for work, and what wakes them.

A waiting runner is an entry in memory only: whatever it hears is looked up in the database when it
is woken. It is woken by a commit of this process that touched its workflow, by a commit of any
other process, by a newer call of the same runner, or by the end of the server.
"""

import asyncio
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

from attrs import define

from torc_framework.store.database import Database

OTHERS_INTERVAL_S: Final = 0.5
"""How often commits of other processes are looked for while somebody waits."""


@define(eq=False)
class Waiter:
    """One waiting call.

    Attributes:
        is_over: It must answer now, without looking for work.
    """

    node_id: int
    seq: int
    wake: asyncio.Event
    is_over: bool = False

    def end(self) -> None:
        """Let the call answer at once."""
        self.is_over = True
        self.wake.set()


class WaitingRoom:
    """All waiting calls of one server; used in its event loop only, except `touched`."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self._waiters: dict[int, set[Waiter]] = {}
        self._loop: asyncio.AbstractEventLoop | None = None
        self._thread = 0
        self._watch: asyncio.Task[None] | None = None
        self._closed = False
        database.on_commit(self.touched)

    @contextmanager
    def wait(self, workflow_id: int, node_id: int, seq: int) -> Iterator[Waiter]:
        """Register a call that may wait; an older one of the same runner ends."""
        if self._loop is None:
            self._loop, self._thread = asyncio.get_running_loop(), threading.get_ident()
        waiter = Waiter(node_id, seq, asyncio.Event())
        if self._closed:
            waiter.end()
        others = self._waiters.setdefault(workflow_id, set())
        for other in others:
            if other.node_id == node_id:
                (other if other.seq <= seq else waiter).end()
        others.add(waiter)
        if self._watch is None:
            self._watch = self._loop.create_task(self._watch_others())
        try:
            yield waiter
        finally:
            others.discard(waiter)
            if not others:
                self._waiters.pop(workflow_id, None)
            if not self._waiters and self._watch is not None:
                self._watch.cancel()
                self._watch = None

    def supersede(self, workflow_id: int, node_id: int, seq: int) -> None:
        """End a runner's older calls: what they wait for may not be what it wants now."""
        for waiter in self._waiters.get(workflow_id, ()):
            if waiter.node_id == node_id and waiter.seq <= seq:
                waiter.end()

    def touched(self, workflow_ids: set[int]) -> None:
        """Wake the runners of these workflows; may be called in any thread."""
        if self._loop is None:
            return
        if threading.get_ident() == self._thread:
            self._wake(workflow_ids)
        else:
            self._loop.call_soon_threadsafe(self._wake, workflow_ids)

    def close(self) -> None:
        """Let every waiting call answer now, and no other wait."""
        self._closed = True
        for waiters in self._waiters.values():
            for waiter in waiters:
                waiter.end()

    def _wake(self, workflow_ids: set[int]) -> None:
        for workflow_id in workflow_ids:
            for waiter in self._waiters.get(workflow_id, ()):
                waiter.wake.set()

    async def _watch_others(self) -> None:
        while True:
            await asyncio.sleep(OTHERS_INTERVAL_S)
            if self._database.others_committed():
                self._wake(set(self._waiters))
