"""The queue of changes: those that wait while a transaction is being committed go into the next one together."""

import asyncio
from collections import deque
from concurrent.futures import ThreadPoolExecutor
from typing import Any, Final

from attrs import define
from starlette.concurrency import run_in_threadpool

from torc_framework.server.auth.permissions import RecordOfWorkflow, WorkflowOfChange
from torc_framework.store.database.base import Database
from torc_framework.store.database.group_commit import Change, Outcome

MAX_GROUP: Final = 256
"""Most changes in one transaction."""


@define(eq=False)
class _WaitingChange:
    """A change, and the future that gets its outcome.

    Attributes:
        is_short: It may run in the event loop when no other change waits.
    """

    change: Change
    future: asyncio.Future[Any]
    is_short: bool


class ChangeQueue:
    """The changes that the handlers of one event loop make; its methods are called in the event loop.

    Changes that wait for each other in the database anyway have one queue, from which one thread at a time takes them
    (`Database.group_key`).
    """

    def __init__(self, database: Database) -> None:
        self._database = database
        self._threads = ThreadPoolExecutor(database.writers, thread_name_prefix="changes")
        self._waiting: dict[int | None, deque[_WaitingChange]] = {}

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
            self._threads.submit(self._make_group, loop, key)

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
                self._threads.submit(self._make_group, loop, key)
                return
            outcome = Outcome(value)
        self._waiting[key].clear()
        self._answer(loop, key, [single], [outcome])

    def _make_group(self, loop: asyncio.AbstractEventLoop, key: int | None) -> None:
        """Make changes that wait; called in a thread, the only one that takes changes out of their queue."""
        queue = self._waiting[key]
        group = [queue.popleft() for _ in range(min(MAX_GROUP, len(queue)))]
        try:
            outcomes = self._database.write_group([waiting.change for waiting in group], key)
        except BaseException as error:
            outcomes = [Outcome(error=RuntimeError(f"the thread for changes failed: {error!r}"))] * len(group)
        queue.extendleft(reversed(group[len(outcomes) :]))
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
