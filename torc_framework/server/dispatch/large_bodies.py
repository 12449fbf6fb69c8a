"""The pool of worker processes for requests with large bodies, so that the server answers other requests meanwhile.

Parsing ten megabytes of JSON takes a second in which no other thread of the process runs. The server passes such a body
to a worker unread, or as an open file if it is spooled, waits in a thread, and passes the response back. The worker
changes the database under the server's own write lock.

The start of a worker takes half a second of computing. So a thread of the server itself carries out a request whose
body is spooled, not too large, and has only short lines: each line is parsed on its own, so that other threads run in
between.
"""

import asyncio
import contextlib
import socket
import subprocess
import sys
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from multiprocessing.connection import Connection
from multiprocessing.reduction import send_handle
from typing import Final, TypeVar

from starlette.requests import Request
from starlette.responses import Response

from torc_framework.server.dispatch.large_body_messages import (
    WRITE_LOCK_RELEASED,
    WRITE_LOCK_WANTED,
    LargeBodyOrder,
    LargeBodyResult,
    too_costly_message,
)
from torc_framework.server.http.access_log import add_log_fields
from torc_framework.server.http.endpoint_results import RequestError
from torc_framework.server.http.spooled_bodies import SpooledBody
from torc_framework.store.database.base import Database

INLINE_BYTES: Final = 256 * 1024
"""Largest body that the server parses itself, which takes ten milliseconds."""
REUSED_BYTES: Final = 8 * 1024 * 1024
"""Largest body after which a worker is used again; after a larger one it ends, which frees the memory."""
THREAD_BYTES: Final = 16 * 1024 * 1024
"""Largest spooled body that a thread of the server reads, line by line; 300,000 short jobs of a plan."""
THREAD_LINE_BYTES: Final = 2 * 1024 * 1024
"""Longest line of such a body. Its values take at most about twenty times its length in memory."""
WORKERS: Final = 2
"""Most worker processes, and most threads that read spooled bodies, at a time."""
MAX_IN_PROGRESS: Final = 8
"""Most requests with large bodies that are in progress or wait for a worker; further ones are refused with 503."""
TIME_LIMIT_S: Final = 120.0
"""Seconds that a worker may take to parse and validate, and to make the response; the transaction has no limit."""
IDLE_S: Final = 60.0
"""Seconds without a request after which a worker ends."""
_T = TypeVar("_T")
_PROGRAM: Final = "import gc; gc.disable(); from torc_framework.server.process.large_body_worker import main; main()"
_SCOPE_KEYS: Final = ("type", "method", "path", "root_path", "query_string", "path_params", "server", "scheme")


class LargeBodyWorker:
    """A worker process and the server's end of its socket."""

    def __init__(self, source: str) -> None:
        own_end, worker_end = socket.socketpair()
        with worker_end:
            self._process = subprocess.Popen(
                [sys.executable, "-P", "-c", _PROGRAM, str(worker_end.fileno())],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                pass_fds=(worker_end.fileno(),),
            )
        self._channel = Connection(own_end.detach())
        self._channel.send(source)

    def carry_out(self, order: LargeBodyOrder, body: bytes | SpooledBody, database: Database) -> LargeBodyResult:
        """Return the result of one request; the worker reads a spooled body from its start.

        Raises:
            RequestError: the request took too much memory or time, or the process ended for another reason (413).
        """
        with contextlib.ExitStack() as write_lock:
            try:
                self._channel.send(order)
                if isinstance(body, SpooledBody):
                    body.file.seek(0)
                    send_handle(self._channel, body.file.fileno(), self._process.pid)
                else:
                    self._channel.send_bytes(body)
                while True:
                    message = self._message(TIME_LIMIT_S)
                    if message != WRITE_LOCK_WANTED:
                        assert isinstance(message, LargeBodyResult)
                        return message
                    write_lock.enter_context(database.hold_write_lock())
                    self._channel.send(None)
                    assert self._message(None) == WRITE_LOCK_RELEASED
                    write_lock.close()
            except (EOFError, OSError, TimeoutError) as error:
                raise RequestError(too_costly_message(len(body)), 413) from error

    def _message(self, timeout_s: float | None) -> object:
        if not self._channel.poll(timeout_s):
            raise TimeoutError
        return self._channel.recv()

    def is_alive(self) -> bool:
        """Return whether the process has not ended; the system kills idle processes too when memory is short."""
        return self._process.poll() is None

    def end(self) -> None:
        """Kill the process."""
        self._process.kill()
        self._process.wait()
        self._channel.close()


class LargeBodyPool:
    """The worker processes of one server; its methods are called in the event loop unless they state otherwise.

    Args:
        is_shared: The server has several clients, which must not wait for one another. The embedded server of one run
            has no workers, because the start of one takes a second.
    """

    def __init__(self, database: Database, *, is_shared: bool) -> None:
        self._database = database
        self._is_shared = is_shared
        self._threads = ThreadPoolExecutor(WORKERS, thread_name_prefix="large-body")
        self._idle: list[LargeBodyWorker] = []
        self._idle_timer: asyncio.TimerHandle | None = None
        self._busy: set[LargeBodyWorker] = set()
        self._in_progress = 0

    def takes(self, body: bytes | SpooledBody) -> bool:
        """Return whether a request with this body is for a worker."""
        return self._is_shared and len(body) > INLINE_BYTES

    async def carry_out(self, operation: str, request: Request, body: bytes | SpooledBody) -> Response:
        """Return the response to a request, made by a worker process.

        Raises:
            RequestError: the body takes too much memory or time (413), or `MAX_IN_PROGRESS` requests are in progress
                (503).
        """
        scope = {name: request.scope[name] for name in _SCOPE_KEYS if name in request.scope}
        scope |= {"headers": [], "torc.caller": request.scope.get("torc.caller")}
        spooled_bytes = len(body) if isinstance(body, SpooledBody) else None
        given = {name: value for name, value in scope.items() if value is not None}
        order = LargeBodyOrder(operation, given, spooled_bytes)
        try:
            result = await self._in_thread(partial(self._carry_out_in_worker, order, body))
        finally:
            self._end_idle_later()
        run = asyncio.get_running_loop().run_in_executor
        await run(self._threads, self._database.notify_listeners, result.committed)
        add_log_fields(request, **result.facts)
        return Response(result.content, result.status, result.headers)

    async def carry_out_lines(
        self, operation: str, function: Callable[[Request, SpooledBody], Response], request: Request, body: SpooledBody
    ) -> Response:
        """Return the response to a request whose body is parsed line by line, made by a thread or by a worker process.

        Args:
            operation: Name of the operation, for a worker.
            function: The operation itself, for a thread.
            request: The request.
            body: Its body.

        Raises:
            RequestError: as `carry_out`.
        """
        if len(body) <= THREAD_BYTES and body.longest_line <= THREAD_LINE_BYTES:
            return await self._in_thread(partial(function, request, body))
        return await self.carry_out(operation, request, body)

    async def _in_thread(self, function: Callable[[], _T]) -> _T:
        """Call a function in one of the threads, which wait for workers or read spooled bodies.

        Raises:
            RequestError: `MAX_IN_PROGRESS` requests are in progress (503).
        """
        if self._in_progress >= MAX_IN_PROGRESS:
            raise RequestError(f"{MAX_IN_PROGRESS} large requests are in progress; try again later", 503)
        self._in_progress += 1
        try:
            run = asyncio.get_running_loop().run_in_executor
            return await run(self._threads, function)
        finally:
            self._in_progress -= 1

    def _carry_out_in_worker(self, order: LargeBodyOrder, body: bytes | SpooledBody) -> LargeBodyResult:
        """Carry out an order in an idle or new worker; called in a thread."""
        worker = self._idle_worker() or LargeBodyWorker(self._database.source)
        self._busy.add(worker)
        is_fit = False
        try:
            result = worker.carry_out(order, body, self._database)
            is_fit = len(body) <= REUSED_BYTES and result.status not in (413, 500)
        finally:
            self._busy.discard(worker)
            if is_fit:
                self._idle.append(worker)
            else:
                worker.end()
        return result

    def _idle_worker(self) -> LargeBodyWorker | None:
        """Take a worker that is alive from the idle ones; called in several threads."""
        with contextlib.suppress(IndexError):
            while True:
                worker = self._idle.pop()
                if worker.is_alive():
                    return worker
                worker.end()
        return None

    def _end_idle_later(self) -> None:
        if self._idle_timer is not None:
            self._idle_timer.cancel()
        self._idle_timer = asyncio.get_running_loop().call_later(IDLE_S, self._end_idle)

    def _end_idle(self) -> None:
        while self._idle:
            self._idle.pop().end()

    def close(self) -> None:
        """Kill all workers."""
        if self._idle_timer is not None:
            self._idle_timer.cancel()
        self._end_idle()
        for worker in tuple(self._busy):
            worker.end()
        self._threads.shutdown(wait=False)
