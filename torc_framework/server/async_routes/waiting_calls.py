"""Calls that wait on the server: runners' exchanges that wait for jobs, and event streams that wait for events.

A waiting call is an entry in memory without content: when it is woken, it reads from the database. An exchange is woken
by a commit of this process that made jobs of its workflow ready, if it is its turn (`WaitingExchanges`), or that
concerns all runners of the workflow; a stream by a commit that stored events of its workflow. Both are woken by a
commit of another process on the same database and by the end of the server, an exchange also by a newer call of its
runner.
"""

import asyncio
import threading
from collections.abc import Callable, Iterable, Iterator
from contextlib import AbstractContextManager, contextmanager
from typing import Final

from torc_framework.models.exchange import ExchangeRequest, Vacancy
from torc_framework.server.async_routes.waiting_exchanges import WaitingCall, WaitingExchange, WaitingExchanges
from torc_framework.store.database.base import Database

OTHER_COMMITS_INTERVAL_S: Final = 0.5
"""Seconds between checks for commits of other processes, made while calls wait."""


class WaitingCalls:
    """All waiting calls of one server; used in its event loop only, except the methods that wake."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self._exchanges: dict[int, WaitingExchanges] = {}
        self._streams: dict[int, set[WaitingCall]] = {}
        self._loop: asyncio.AbstractEventLoop | None = None
        self._thread = 0
        self._polling: asyncio.Task[None] | None = None
        self._closed = False
        database.on_workflows_to_wake(self.wake_exchanges)
        database.on_workflows_with_ready_jobs(self.wake_for_ready_jobs)
        database.on_workflows_with_events(self.wake_streams)

    @property
    def exchange_count(self) -> int:
        """Number of exchanges that wait."""
        return sum(len(waiting.all) for waiting in self._exchanges.values())

    @property
    def stream_count(self) -> int:
        """Number of open streams."""
        return sum(map(len, self._streams.values()))

    @contextmanager
    def exchange(self, workflow_id: int, request: ExchangeRequest) -> Iterator[WaitingExchange]:
        """Register a runner's exchange while the block runs; end an older exchange of the same runner."""
        exchange = WaitingExchange(
            node_id=request.compute_node_id, seq=request.seq, slots=request.slots, unstarted=request.unstarted
        )
        for other in self._exchanges_of(workflow_id):
            if other.node_id == exchange.node_id:
                (other if other.seq <= exchange.seq else exchange).end()
        self._begin_call(exchange)
        waiting = self._exchanges.setdefault(workflow_id, WaitingExchanges())
        waiting.add(exchange)
        try:
            yield exchange
        finally:
            waiting.remove(exchange)
            if not waiting.all:
                del self._exchanges[workflow_id]
            self._end_call()

    @contextmanager
    def stream(self, workflow_id: int) -> Iterator[WaitingCall]:
        """Register a stream of the workflow's events while the block runs."""
        self._begin_call(stream := WaitingCall())
        streams = self._streams.setdefault(workflow_id, set())
        streams.add(stream)
        try:
            yield stream
        finally:
            streams.discard(stream)
            if not streams:
                del self._streams[workflow_id]
            self._end_call()

    def _begin_call(self, call: WaitingCall) -> None:
        """Check for commits of other processes while any call is registered."""
        if self._loop is None:
            self._loop, self._thread = asyncio.get_running_loop(), threading.get_ident()
        if self._closed:
            call.end()
        if self._polling is None:
            self._polling = self._loop.create_task(self._poll_other_commits())

    def _end_call(self) -> None:
        if not self._exchanges and not self._streams and self._polling is not None:
            self._polling.cancel()
            self._polling = None

    def reading(self, workflow_id: int, exchange: WaitingExchange) -> AbstractContextManager[None]:
        """Return a context in which a registered exchange reads from the database; see `WaitingExchanges.reading`."""
        return self._exchanges[workflow_id].reading(exchange)

    def _exchanges_of(self, workflow_id: int) -> Iterable[WaitingExchange]:
        waiting = self._exchanges.get(workflow_id)
        return () if waiting is None else waiting.all

    def end_older_exchanges(self, workflow_id: int, node_id: int, seq: int) -> None:
        """End a runner's older exchanges, whose offer is out of date."""
        for exchange in self._exchanges_of(workflow_id):
            if exchange.node_id == node_id and exchange.seq <= seq:
                exchange.end()

    def have_others_vacancies(self, workflow_id: int, node_id: int) -> bool:
        """Return whether runners of the workflow other than this one wait for jobs."""
        return any(other.vacancy is not None and other.node_id != node_id for other in self._exchanges_of(workflow_id))

    def take_vacancies(self, workflow_id: int, node_id: int) -> list[Vacancy]:
        """Return what runners other than this one wait for, of each wait once; not of those that are being woken."""
        found = []
        for other in self._exchanges_of(workflow_id):
            is_new = other.vacancy is not None and not other.is_vacancy_told and not other.wake.is_set()
            if is_new and other.vacancy is not None and other.node_id != node_id:
                other.is_vacancy_told = True
                found.append(other.vacancy)
        return found

    def end_exchanges_with_unstarted_jobs(self, workflow_id: int, node_id: int) -> None:
        """End the waiting exchanges of other runners that hold jobs which they have not started: they release some."""
        for other in self._exchanges_of(workflow_id):
            if other.node_id != node_id and other.unstarted:
                other.end()

    def wake_exchanges(self, workflow_ids: set[int]) -> None:
        """Wake the exchanges of these workflows; may be called in any thread."""
        if self._exchanges:
            self._soon(self._wake_exchanges, workflow_ids)

    def wake_for_ready_jobs(self, workflow_ids: set[int]) -> None:
        """Wake a few exchanges of these workflows, in which jobs became ready; may be called in any thread."""
        if self._exchanges:
            self._soon(self._wake_for_ready_jobs, workflow_ids)

    def wake_streams(self, workflow_ids: set[int]) -> None:
        """Wake the streams of these workflows; may be called in any thread."""
        if self._streams:
            self._soon(self._wake_streams, workflow_ids)

    def _soon(self, wake: Callable[[set[int]], None], workflow_ids: set[int]) -> None:
        assert self._loop is not None, "the first registered call has set it"
        if threading.get_ident() == self._thread:
            wake(workflow_ids)
        else:
            self._loop.call_soon_threadsafe(wake, workflow_ids)

    def _wake_exchanges(self, workflow_ids: set[int]) -> None:
        for workflow_id in workflow_ids & self._exchanges.keys():
            self._exchanges[workflow_id].wake_all()

    def _wake_for_ready_jobs(self, workflow_ids: set[int]) -> None:
        for workflow_id in workflow_ids & self._exchanges.keys():
            self._exchanges[workflow_id].wake_for_ready_jobs()

    def _wake_streams(self, workflow_ids: set[int]) -> None:
        for workflow_id in workflow_ids & self._streams.keys():
            for stream in self._streams[workflow_id]:
                stream.wake.set()

    def close(self) -> None:
        """Make every waiting call answer now; later calls do not wait."""
        self._closed = True
        for calls in (*(waiting.all for waiting in self._exchanges.values()), *self._streams.values()):
            for call in calls:
                call.end()

    async def _poll_other_commits(self) -> None:
        while True:
            await asyncio.sleep(OTHER_COMMITS_INTERVAL_S)
            if await asyncio.to_thread(self._database.others_committed):
                self._wake_exchanges(set(self._exchanges))
                self._wake_streams(set(self._streams))
