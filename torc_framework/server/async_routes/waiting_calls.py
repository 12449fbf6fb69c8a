"""Calls that wait on the server: runners' exchanges that wait for jobs, and event streams that wait for events.

A waiting call is an entry in memory without content: when it is woken, it reads from the database. An exchange is woken
by a commit of this process that wake_exchanges its workflow, a stream by a commit that stored events of its workflow.
Both are woken by a commit of another process on the same database and by the end of the server, an exchange also by a
newer call of its runner.
"""

import asyncio
import threading
from collections.abc import Iterator, Mapping, Set
from contextlib import contextmanager
from typing import Final, TypeVar

from attrs import Factory, define

from torc_framework.models.exchange import Vacancy
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
_CallsByWorkflow = Mapping[int, Set[WaitingCall]]


@define(eq=False)
class WaitingExchange(WaitingCall):
    """A runner's exchange that waits for jobs.

    Attributes:
        node_id: The runner.
        seq: Number of its call.
        unstarted: Number of jobs that it holds and has not started.
        vacancy: What it waits for; None if it cannot start jobs, or none of the ready ones.
        is_vacancy_told: Another runner has been told of the vacancy.
    """

    node_id: int = 0
    seq: int = 0
    unstarted: int = 0
    vacancy: Vacancy | None = None
    is_vacancy_told: bool = False


class WaitingCalls:
    """All waiting calls of one server; used in its event loop only, except `wake_exchanges` and `wake_streams`."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self._exchanges: dict[int, set[WaitingExchange]] = {}
        self._streams: dict[int, set[WaitingCall]] = {}
        self._loop: asyncio.AbstractEventLoop | None = None
        self._thread = 0
        self._polling: asyncio.Task[None] | None = None
        self._closed = False
        database.on_workflows_to_wake(self.wake_exchanges)
        database.on_workflows_with_events(self.wake_streams)

    @property
    def exchange_count(self) -> int:
        """Number of exchanges that wait."""
        return sum(map(len, self._exchanges.values()))

    @property
    def stream_count(self) -> int:
        """Number of open streams."""
        return sum(map(len, self._streams.values()))

    @contextmanager
    def exchange(self, workflow_id: int, node_id: int, seq: int, unstarted: int) -> Iterator[WaitingExchange]:
        """Register a runner's exchange while the block runs; end an older exchange of the same runner."""
        exchange = WaitingExchange(node_id=node_id, seq=seq, unstarted=unstarted)
        for other in self._exchanges.get(workflow_id, ()):
            if other.node_id == node_id:
                (other if other.seq <= seq else exchange).end()
        with self._registered(self._exchanges, workflow_id, exchange):
            yield exchange

    @contextmanager
    def stream(self, workflow_id: int) -> Iterator[WaitingCall]:
        """Register a stream of the workflow's events while the block runs."""
        with self._registered(self._streams, workflow_id, stream := WaitingCall()):
            yield stream

    @contextmanager
    def _registered(self, calls: dict[int, set[_W]], workflow_id: int, call: _W) -> Iterator[None]:
        """Register a call while the block runs; check for commits of other processes while any call is registered."""
        if self._loop is None:
            self._loop, self._thread = asyncio.get_running_loop(), threading.get_ident()
        if self._closed:
            call.end()
        others = calls.setdefault(workflow_id, set())
        others.add(call)
        if self._polling is None:
            self._polling = self._loop.create_task(self._poll_other_commits())
        try:
            yield
        finally:
            others.discard(call)
            if not others:
                calls.pop(workflow_id, None)
            if not self._exchanges and not self._streams and self._polling is not None:
                self._polling.cancel()
                self._polling = None

    def end_older_exchanges(self, workflow_id: int, node_id: int, seq: int) -> None:
        """End a runner's older exchanges, whose offer is out of date."""
        for exchange in self._exchanges.get(workflow_id, ()):
            if exchange.node_id == node_id and exchange.seq <= seq:
                exchange.end()

    def have_others_vacancies(self, workflow_id: int, node_id: int) -> bool:
        """Return whether runners of the workflow other than this one wait for jobs."""
        return any(
            other.vacancy is not None and other.node_id != node_id for other in self._exchanges.get(workflow_id, ())
        )

    def take_vacancies(self, workflow_id: int, node_id: int) -> list[Vacancy]:
        """Return what runners other than this one wait for, of each wait once; not of those that are being woken."""
        found = []
        for other in self._exchanges.get(workflow_id, ()):
            is_new = other.vacancy is not None and not other.is_vacancy_told and not other.wake.is_set()
            if is_new and other.vacancy is not None and other.node_id != node_id:
                other.is_vacancy_told = True
                found.append(other.vacancy)
        return found

    def end_exchanges_with_unstarted_jobs(self, workflow_id: int, node_id: int) -> None:
        """End the waiting exchanges of other runners that hold jobs which they have not started: they release some."""
        for other in self._exchanges.get(workflow_id, ()):
            if other.node_id != node_id and other.unstarted:
                other.end()

    def wake_exchanges(self, workflow_ids: set[int]) -> None:
        """Wake the exchanges of these workflows; may be called in any thread."""
        if self._exchanges:
            self._wake_soon(self._exchanges, workflow_ids)

    def wake_streams(self, workflow_ids: set[int]) -> None:
        """Wake the streams of these workflows; may be called in any thread."""
        if self._streams:
            self._wake_soon(self._streams, workflow_ids)

    def _wake_soon(self, calls: _CallsByWorkflow, workflow_ids: set[int]) -> None:
        assert self._loop is not None, "the first registered call has set it"
        if threading.get_ident() == self._thread:
            _wake(calls, workflow_ids)
        else:
            self._loop.call_soon_threadsafe(_wake, calls, workflow_ids)

    def close(self) -> None:
        """Make every waiting call answer now; later calls do not wait."""
        self._closed = True
        both: tuple[_CallsByWorkflow, ...] = (self._exchanges, self._streams)
        for calls in both:
            for registered in calls.values():
                for call in registered:
                    call.end()

    async def _poll_other_commits(self) -> None:
        while True:
            await asyncio.sleep(OTHER_COMMITS_INTERVAL_S)
            if await asyncio.to_thread(self._database.others_committed):
                for calls in (self._exchanges, self._streams):
                    _wake(calls, set(calls))


def _wake(calls: _CallsByWorkflow, workflow_ids: set[int]) -> None:
    for workflow_id in workflow_ids:
        for call in calls.get(workflow_id, ()):
            call.wake.set()
