"""`AnswerRoom`: limits on the memory of large answers, while they are made and until their clients have read them.

A small answer is never refused. A large one is made when there is room for it, and is kept in a file while its client
reads it. An address whose clients have left much unread gets no further large answers, and a client
that reads nothing is disconnected (`connection_limits`). Users behind one address share its limits.
"""

import asyncio
from collections import Counter
from collections.abc import AsyncIterator, Iterator, MutableMapping
from contextlib import AbstractContextManager, asynccontextmanager, contextmanager, suppress
from functools import partial
from typing import Any, Final

from starlette.concurrency import run_in_threadpool
from starlette.responses import Response
from starlette.types import Receive, Scope, Send

from torc_framework.server.http.endpoint_results import RequestError
from torc_framework.server.http.responses import SpooledResponse, kept_in_file

MIB: Final = 1024 * 1024
SMALL_BYTES: Final = 64 * 1024
"""Largest answer that is made and sent without regard to others."""
READS_OF_ADDRESS: Final = 8
"""Reads for one address that are carried out at a time: the database's cache grows with their number."""
UNKNOWN_BYTES: Final = 16 * MIB
"""Room for an answer whose size is not known before."""
IN_THE_MAKING: Final = 128 * MIB
"""Largest size of all answers that are made at a time; the memory that this takes is about four times as much."""
IN_THE_MAKING_OF_ADDRESS: Final = 32 * MIB
"""The same for one address. A larger answer is made when nothing else is made for its address."""
IN_MEMORY_OF_ADDRESS: Final = 32 * MIB
"""Unread bytes of one address that are kept in memory; further answers are kept in files."""


class AnswerRoom:
    """Counts what is made and what is unread, by the addresses of clients.

    Args:
        unread_bytes: Unread bytes of one address in files, above which it gets no further large answer.
    """

    def __init__(self, unread_bytes: int) -> None:
        self._unread_bytes = unread_bytes
        self._reads: Counter[str] = Counter()
        self._made: Counter[str] = Counter()
        self._in_memory: Counter[str] = Counter()
        self._in_files: Counter[str] = Counter()
        self._waiting = 0
        self._is_closed = False
        self._is_changed = asyncio.Event()

    @asynccontextmanager
    async def place(self, address: str, size: int) -> AsyncIterator[None]:
        """Hold a place for a read whose answer has this size; wait until there is one.

        Raises:
            RequestError: the server ends meanwhile (503).
        """
        counted = 0 if size <= SMALL_BYTES else min(size, IN_THE_MAKING_OF_ADDRESS)
        while not self._has_room(address, counted):
            self._waiting += 1
            try:
                await self._is_changed.wait()
            finally:
                self._waiting -= 1
            if self._is_closed:
                raise RequestError("the server ends", 503)
        try:
            with _counted(self._reads, address, 1), _counted(self._made, address, counted):
                yield
        finally:
            if self._waiting:
                self._wake()

    def _wake(self) -> None:
        """Let all that wait look again, in their order."""
        self._is_changed.set()
        self._is_changed = asyncio.Event()

    def close(self) -> None:
        """Refuse the requests that wait."""
        self._is_closed = True
        self._wake()

    def _has_room(self, address: str, size: int) -> bool:
        if self._reads[address] >= READS_OF_ADDRESS:
            return False
        fits_address = self._made[address] + size <= IN_THE_MAKING_OF_ADDRESS
        return not size or (fits_address and self._made.total() + size <= IN_THE_MAKING)

    def check_unread(self, address: str) -> None:
        """Check what clients at an address have left unread, before an answer for them is made.

        Raises:
            RequestError: it is too much (503).
        """
        unread = self._in_files[address]
        if unread > self._unread_bytes:
            message = f"clients at {address} have not read {unread // MIB} MiB of earlier answers; read those first"
            raise RequestError(message, 503)

    async def send(self, response: Response, scope: Scope, receive: Receive, send: Send) -> None:
        """Send a response, which is counted until its client has read it."""
        size = len(getattr(response, "body", b""))
        address = address_of(scope)
        if size > SMALL_BYTES and self._in_memory[address] + size > IN_MEMORY_OF_ADDRESS:
            with suppress(RequestError):  # without space for files it stays in memory: the request is carried out
                response = await run_in_threadpool(kept_in_file, response, 0)
        if isinstance(response, SpooledResponse):
            self._in_files[address] += response.unread
            response.on_read = partial(_subtract, self._in_files, address)
            try:
                await response(scope, receive, send)
            finally:
                _subtract(self._in_files, address, response.unread)
        elif size > SMALL_BYTES:
            with _counted(self._in_memory, address, size):
                await response(scope, receive, send)
        else:
            await response(scope, receive, send)

    def unread(self, address: str, size: int) -> AbstractContextManager[None]:
        """Return a context in which a client has not read these bytes, which are in a file."""
        return _counted(self._in_files, address, size)


def address_of(scope: MutableMapping[str, Any]) -> str:
    """Return the address of the client of a request."""
    client = scope.get("client")
    return client[0] if client else ""


@contextmanager
def _counted(counter: Counter[str], address: str, size: int) -> Iterator[None]:
    counter[address] += size
    try:
        yield
    finally:
        _subtract(counter, address, size)


def _subtract(counter: Counter[str], address: str, size: int) -> None:
    counter[address] -= size
    if not counter[address]:
        del counter[address]
