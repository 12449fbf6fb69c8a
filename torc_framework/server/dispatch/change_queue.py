"""The queue of changes: those that wait while a transaction is being committed go into the next one together."""

import asyncio
import threading
from collections import Counter, OrderedDict, deque
from concurrent.futures import ThreadPoolExecutor
from typing import Any, Final

from attrs import define
from starlette.concurrency import run_in_threadpool

from torc_framework.server.auth.permissions import RecordOfWorkflow, WorkflowOfChange
from torc_framework.store.database.base import Database
from torc_framework.store.database.group_commit import Change, Outcome

MAX_GROUP: Final = 256
"""Most changes in one transaction."""
MOST_PASSED_OVER: Final = 4
"""How often other workflows may go before one that another process changes. Then a thread waits for that one."""


@define(eq=False)
class _WaitingChange:
    """A change, and the future that gets its outcome.

    Attributes:
        is_short: It may run in the event loop when no other change waits.
    """

    change: Change
    future: asyncio.Future[Any]
    is_short: bool


class _DueKeys:
    """The keys whose changes wait for a thread, the one that has waited longest first; safe between threads."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._keys: OrderedDict[int | None, None] = OrderedDict()
        self._passed_over: Counter[int | None] = Counter()

    def add(self, key: int | None) -> None:
        """Add a key, as the last one."""
        with self._lock:
            self._keys[key] = None

    def take(self) -> list[int | None]:
        """Remove the first key; return it, and after it those that may go before it, which stay."""
        with self._lock:
            key, _ = self._keys.popitem(last=False)
            return [key] if self._passed_over[key] >= MOST_PASSED_OVER else [key, *self._keys]

    def exchange(self, key: int | None, chosen: int | None) -> bool:
        """Take another key in place of one that was taken, which is the first again; False if it waits no more."""
        with self._lock:
            if chosen not in self._keys:
                return False
            del self._keys[chosen]
            self._keys[key] = None
            self._keys.move_to_end(key, last=False)
            self._passed_over[key] += 1
            return True

    def begun(self, key: int | None) -> None:
        """Take note that the changes of a taken key are being made."""
        with self._lock:
            del self._passed_over[key]


class ChangeQueue:
    """The changes that the handlers of one event loop make; its methods are called in the event loop.

    Changes that wait for each other in the database anyway have one queue, from which one thread at a time takes them
    (`Database.group_key`). While another server changes a workflow, a thread takes the changes of another workflow
    that waits, up to `MOST_PASSED_OVER` times.
    """

    def __init__(self, database: Database) -> None:
        self._database = database
        self._threads = ThreadPoolExecutor(database.writers, thread_name_prefix="changes")
        self._waiting: dict[int | None, deque[_WaitingChange]] = {}
        self._due = _DueKeys()

    async def carry_out(self, change: Change, concerned: WorkflowOfChange, *, is_short: bool = False) -> Any:
        """Make a change; return what it returns once that is durable.

        Args:
            concerned: The workflow that it concerns; see `Permission.concerns`.
            is_short: It takes at most some milliseconds, so that it may run in the event loop.

        Raises:
            Exception: what the change raised, or an error of the database; see `Database.write`.
        """
        if isinstance(concerned, RecordOfWorkflow):
            concerned = await self._workflow_of(concerned)
        loop = asyncio.get_running_loop()
        waiting = _WaitingChange(change, loop.create_future(), is_short)
        key = self._database.group_key(concerned)
        queue = self._waiting.get(key)
        if queue is None:
            self._waiting[key] = deque([waiting])
            loop.call_soon(self._begin, loop, key)  # after the other requests that have arrived were read
        else:
            queue.append(waiting)
        return await waiting.future

    async def _workflow_of(self, record: RecordOfWorkflow) -> int | None:
        find, table = self._database.workflow_of, record.kind.table
        if self._database.is_local:
            return find(table, record.id)
        return await run_in_threadpool(find, table, record.id)

    def _begin(self, loop: asyncio.AbstractEventLoop, key: int | None) -> None:
        """Make the changes that wait: a single short one in the event loop, all others in a thread."""
        queue = self._waiting[key]
        if len(queue) == 1 and queue[0].is_short and self._database.is_local:
            self._begin_in_loop(loop, key, queue[0])
        else:
            self._begin_in_thread(loop, key)

    def _begin_in_thread(self, loop: asyncio.AbstractEventLoop, key: int | None) -> None:
        self._due.add(key)
        self._threads.submit(self._make_group, loop)

    def _begin_in_loop(self, loop: asyncio.AbstractEventLoop, key: int | None, single: _WaitingChange) -> None:
        """Make the only waiting change, which is short, if it need not wait for another process or thread."""
        try:
            with self._database.write_if_free() as tx:
                if tx is not None:
                    value = single.change(tx)
        except Exception as error:
            outcome = Outcome(error=error)
        else:
            if tx is None:
                self._begin_in_thread(loop, key)
                return
            outcome = Outcome(value)
        self._waiting[key].clear()
        self._answer(loop, key, [single], [outcome])

    def _make_group(self, loop: asyncio.AbstractEventLoop) -> None:
        """Make the changes of one key; called in a thread, the only one that takes changes out of their queue."""
        key, *others = self._due.take()
        group: list[_WaitingChange] = []
        outcomes: list[Outcome] = []

        def take(chosen: int | None) -> list[Change]:
            nonlocal key
            if chosen != key:
                if not self._due.exchange(key, chosen):
                    return []  # another thread has taken it meanwhile
                key = chosen
            self._due.begun(key)
            queue = self._waiting[key]
            group.extend(queue.popleft() for _ in range(min(MAX_GROUP, len(queue))))
            return [waiting.change for waiting in group]

        try:
            while not group:
                outcomes = self._database.write_first_free([key, *others], take)
                others = []
        except BaseException as error:
            if not group:
                take(key)
            outcomes = [Outcome(error=RuntimeError(f"the thread for changes failed: {error!r}"))] * len(group)
        self._waiting[key].extendleft(reversed(group[len(outcomes) :]))
        loop.call_soon_threadsafe(self._answer, loop, key, group[: len(outcomes)], outcomes)

    def _answer(
        self,
        loop: asyncio.AbstractEventLoop,
        key: int | None,
        group: list[_WaitingChange],
        outcomes: list[Outcome],
    ) -> None:
        """Answer the changes that were made, and begin the next ones."""
        for waiting, outcome in zip(group, outcomes, strict=True):
            if waiting.future.done():
                continue  # the request was cancelled
            if outcome.error is None:
                waiting.future.set_result(outcome.value)
            else:
                waiting.future.set_exception(outcome.error)
        if self._waiting[key]:
            loop.call_soon(self._begin, loop, key)
        else:
            del self._waiting[key]

    def close(self) -> None:
        """Wait for the changes under way; begin no others."""
        self._threads.shutdown(wait=True, cancel_futures=True)
