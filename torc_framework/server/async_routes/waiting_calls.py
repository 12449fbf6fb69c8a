"""Calls that wait on the server: runners' exchanges that wait for jobs, and event streams that wait for events.

A waiting call is an entry in memory without content: when it is woken, it reads from the database. An exchange is woken
by a commit of this process that touched its workflow, a stream by a commit that stored events of its workflow. Both are
woken by a commit of another process on the same database and by the end of the server, an exchange also by a newer
call of its runner.
"""

import asyncio
import threading
from collections.abc import Iterator, Mapping, Set
from contextlib import contextmanager
from typing import Final, TypeVar

from attrs import Factory, define

from torc_framework.store.database.base import Database

OTHER_COMMITS_INTERVAL_S: Final = 0.5
"""Seconds between checks for commits of other processes, made while calls wait."""


@define(eq=False)
class WaitingCall:
    """One call that waits.

    Attributes:
        wake: Set when the call should read from the database.
        is_over: The call must answer now with what it has.
    """

    wake: asyncio.Event = Factory(asyncio.Event)
    is_over: bool = False

    def end(self) -> None:
        """Make the call answer now with what it has."""
        self.is_over = True
        self.wake.set()


_W = TypeVar("_W", bound=WaitingCall)
_Place = Mapping[int, Set[WaitingCall]]


@define(eq=False)
class WaitingExchange(WaitingCall):
    """A runner's exchange that waits for jobs."""

    node_id: int = 0
    seq: int = 0


class WaitingCalls:
    """All waiting calls of one server; used in its event loop only, except `touched` and `told`."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self._runners: dict[int, set[WaitingExchange]] = {}
        self._followers: dict[int, set[WaitingCall]] = {}
        self._loop: asyncio.AbstractEventLoop | None = None
        self._thread = 0
        self._watch: asyncio.Task[None] | None = None
        self._closed = False
        database.on_workflows_to_wake(self.touched)
        database.on_workflows_with_events(self.told)

    @property
    def runner_count(self) -> int:
        """Number of exchanges that wait."""
        return sum(map(len, self._runners.values()))

    @property
    def follower_count(self) -> int:
        """Number of open streams."""
        return sum(map(len, self._followers.values()))

    @contextmanager
    def wait(self, workflow_id: int, node_id: int, seq: int) -> Iterator[WaitingCall]:
        """Register a runner's exchange while the block runs; end an older exchange of the same runner."""
        runner = WaitingExchange(node_id=node_id, seq=seq)
        for other in self._runners.get(workflow_id, ()):
            if other.node_id == node_id:
                (other if other.seq <= seq else runner).end()
        with self._inside(self._runners, workflow_id, runner):
            yield runner

    @contextmanager
    def follow(self, workflow_id: int) -> Iterator[WaitingCall]:
        """Register a stream of the workflow's events while the block runs."""
        with self._inside(self._followers, workflow_id, follower := WaitingCall()):
            yield follower

    @contextmanager
    def _inside(self, place: dict[int, set[_W]], workflow_id: int, waiter: _W) -> Iterator[None]:
        """Register a call while the block runs; check for commits of other processes while any call is registered."""
        if self._loop is None:
            self._loop, self._thread = asyncio.get_running_loop(), threading.get_ident()
        if self._closed:
            waiter.end()
        others = place.setdefault(workflow_id, set())
        others.add(waiter)
        if self._watch is None:
            self._watch = self._loop.create_task(self._watch_others())
        try:
            yield
        finally:
            others.discard(waiter)
            if not others:
                place.pop(workflow_id, None)
            if not self._runners and not self._followers and self._watch is not None:
                self._watch.cancel()
                self._watch = None

    def supersede(self, workflow_id: int, node_id: int, seq: int) -> None:
        """End a runner's older exchanges, whose offer is out of date."""
        for runner in self._runners.get(workflow_id, ()):
            if runner.node_id == node_id and runner.seq <= seq:
                runner.end()

    def touched(self, workflow_ids: set[int]) -> None:
        """Wake the exchanges of these workflows; may be called in any thread."""
        if self._runners:
            self._soon(self._runners, workflow_ids)

    def told(self, workflow_ids: set[int]) -> None:
        """Wake the streams of these workflows; may be called in any thread."""
        if self._followers:
            self._soon(self._followers, workflow_ids)

    def _soon(self, place: _Place, workflow_ids: set[int]) -> None:
        assert self._loop is not None, "the first registered call has set it"
        if threading.get_ident() == self._thread:
            _wake(place, workflow_ids)
        else:
            self._loop.call_soon_threadsafe(_wake, place, workflow_ids)

    def close(self) -> None:
        """Make every waiting call answer now; later calls do not wait."""
        self._closed = True
        places: tuple[_Place, ...] = (self._runners, self._followers)
        for place in places:
            for waiters in place.values():
                for waiter in waiters:
                    waiter.end()

    async def _watch_others(self) -> None:
        while True:
            await asyncio.sleep(OTHER_COMMITS_INTERVAL_S)
            if await asyncio.to_thread(self._database.others_committed):
                for place in (self._runners, self._followers):
                    _wake(place, set(place))


def _wake(place: _Place, workflow_ids: set[int]) -> None:
    for workflow_id in workflow_ids:
        for waiter in place.get(workflow_id, ()):
            waiter.wake.set()
