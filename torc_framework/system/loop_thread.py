"""An event loop in a thread of its own, for plugins whose connections go on while a runner does something else."""

import asyncio
import atexit
import concurrent.futures
import contextlib
import os
import threading
from collections.abc import Callable, Coroutine
from typing import Any, Final, TypeVar

T = TypeVar("T")

END_S: Final = 1.0
"""At the end of the process, tasks have so long to end."""


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
        future = asyncio.run_coroutine_threadsafe(coroutine, self._loop())
        try:
            return future.result()
        except BaseException:
            future.cancel()
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
