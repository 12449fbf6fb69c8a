"""An event loop in a thread of its own, for plugins whose connections go on while a runner does something else."""

import asyncio
import atexit
import concurrent.futures
import contextlib
import os
import threading
from collections.abc import Callable, Coroutine
from queue import SimpleQueue
from typing import Any, Final, Generic, TypeVar

T = TypeVar("T")

END_S: Final = 1.0
"""At the end of the process, tasks have so long to end."""


class _Call(Generic[T]):
    """A coroutine that another thread waits for; `begin` and `abandon` are called in the event loop."""

    def __init__(self, coroutine: Coroutine[Any, Any, T]) -> None:
        self._coroutine = coroutine
        self._task: asyncio.Task[T] | None = None
        # An interrupt in the methods of a concurrent Future may leave its lock held: the event loop would stand still.
        self._ended: SimpleQueue[asyncio.Task[T]] = SimpleQueue()

    def begin(self) -> None:
        """Begin the coroutine."""
        self._task = asyncio.get_running_loop().create_task(self._coroutine)
        self._task.add_done_callback(self._ended.put)

    def abandon(self) -> None:
        """Cancel the coroutine, or close it if it has not begun."""
        if self._task is None:
            self._coroutine.close()
        else:
            self._task.cancel()

    def result(self) -> T:
        """Wait for the end of the coroutine; return its result, or raise its exception."""
        task = self._ended.get()
        if task.cancelled():
            raise concurrent.futures.CancelledError
        return task.result()


class LoopThread:
    """One event loop, in a daemon thread that the first call starts.

    Args:
        name: Name of the thread.
    """

    def __init__(self, name: str) -> None:
        self._name = name
        self._lock = threading.Lock()
        self._loops: dict[int, asyncio.AbstractEventLoop] = {}
        """The event loop by the id of the process: a fork has no threads of its parent."""

    def run(self, coroutine: Coroutine[Any, Any, T]) -> T:
        """Run a coroutine in the event loop, wait for its end and return its result, or raise its exception.

        If the wait is interrupted, as by Ctrl-C, the coroutine is cancelled. Must not be called in the event loop.
        """
        call: _Call[T] | None = None
        try:
            call = _Call(coroutine)
            self.post(call.begin)
            return call.result()
        except BaseException:  # an interrupt may come at any line
            if call is None:
                coroutine.close()
            else:
                self.post(call.abandon)
            raise

    def post(self, function: Callable[..., object], *arguments: object) -> None:
        """Call a function in the event loop soon, from any thread, without waiting for it."""
        self._loop().call_soon_threadsafe(function, *arguments)

    def _loop(self) -> asyncio.AbstractEventLoop:
        with self._lock:
            found = self._loops.get(os.getpid())
            if found is None:
                found = self._loops[os.getpid()] = asyncio.new_event_loop()
                thread = threading.Thread(target=found.run_forever, name=self._name, daemon=True)
                thread.start()
                atexit.register(_end, os.getpid(), found, thread)
            return found


def _end(pid: int, ending: asyncio.AbstractEventLoop, thread: threading.Thread) -> None:
    """End the event loop at the end of the process; asyncio would report tasks that are destroyed at the terminal."""
    if pid != os.getpid():
        return
    ending.set_exception_handler(lambda _loop, _context: None)
    with contextlib.suppress(concurrent.futures.TimeoutError, concurrent.futures.CancelledError):
        asyncio.run_coroutine_threadsafe(_cancel_tasks(), ending).result(2 * END_S)
    ending.call_soon_threadsafe(ending.stop)
    thread.join(END_S)
    if not thread.is_alive():
        ending.close()


async def _cancel_tasks() -> None:
    tasks = asyncio.all_tasks() - {asyncio.current_task()}
    for task in tasks:
        task.cancel()
    if tasks:
        await asyncio.wait(tasks, timeout=END_S)
