"""The worker process for requests with large bodies: parses, validates, runs the transaction and makes the response.

`server.dispatch.large_bodies` starts it and talks to it over one socket. Its memory is limited in proportion to the
body, so that a body of many small values leads to an error response and not to a machine without memory. It ends when
the socket is closed.
"""

import contextlib
import gc
import logging
import os
import resource
import socket
import sys
from collections.abc import Callable, Mapping
from multiprocessing.connection import Connection
from multiprocessing.reduction import recv_handle
from pathlib import Path
from types import TracebackType
from typing import Any, Final

from starlette.requests import Request
from starlette.responses import Response

from torc_framework.server.async_routes.runner_api import runner_api_operations
from torc_framework.server.dispatch.endpoint import endpoint_name
from torc_framework.server.dispatch.handlers import endpoint_operation
from torc_framework.server.dispatch.large_body_messages import (
    WRITE_LOCK_RELEASED,
    WRITE_LOCK_WANTED,
    LargeBodyOrder,
    LargeBodyResult,
    too_costly_message,
)
from torc_framework.server.http.access_log import log_fields_of
from torc_framework.server.http.endpoint_results import STATUS_OF, RequestError
from torc_framework.server.http.responses import error_response, request_error_response, store_error_response
from torc_framework.server.http.spooled_bodies import SpooledBody
from torc_framework.server.logs import configure_logging
from torc_framework.server.routes.table import all_endpoints
from torc_framework.store.database.base import CommittedChanges, Database
from torc_framework.store.database.opening import open_database

FREE_BYTES: Final = 128 * 1024 * 1024
"""Memory that a request may take regardless of its size, the database's cache of 64 MiB included."""
BYTES_PER_BODY_BYTE: Final = 8
"""Further memory that a request may take, as a multiple of its body's size; the server holds two copies besides."""

Operation = Callable[[Request, Any], Response]
"""An operation; it takes the bytes of the body, or a `SpooledBody` if its requests are spooled."""
_log = logging.getLogger("torc.server")


class _RemoteWriteLock:
    """A context that holds the server's write lock on the database, asked for over the socket."""

    def __init__(self, channel: Connection) -> None:
        self._channel = channel

    def __enter__(self) -> None:
        self._channel.send(WRITE_LOCK_WANTED)
        self._channel.recv()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._channel.send(WRITE_LOCK_RELEASED)


def limit_memory(size: int) -> None:
    """Limit this process to its present memory and what a request with a body of this size may take."""
    _, hard = resource.getrlimit(resource.RLIMIT_DATA)
    limit = _data_bytes() + FREE_BYTES + BYTES_PER_BODY_BYTE * size
    resource.setrlimit(resource.RLIMIT_DATA, (limit if hard == resource.RLIM_INFINITY else min(limit, hard), hard))


def _data_bytes() -> int:
    status = Path("/proc/self/status")
    lines = status.read_text().splitlines() if status.exists() else []
    return next((int(line.split()[1]) * 1024 for line in lines if line.startswith("VmData:")), 0)


def carry_out(operation: Operation, scope: dict[str, Any], body: bytes | SpooledBody) -> LargeBodyResult:
    """Return the response to one request; every exception becomes an error response."""
    request = Request(scope)
    try:
        response = operation(request, body)
    except tuple(STATUS_OF) as error:
        response = store_error_response(request, error)
    except RequestError as error:
        response = request_error_response(request, error)
    except MemoryError:
        response = error_response(413, too_costly_message(len(body)))
    except Exception as error:
        _log.error("%s %s failed", request.method, request.url.path, exc_info=error)
        response = error_response(500, "An internal error occurred")
    headers = {name: value for name, value in response.headers.items() if name != "content-length"}
    return LargeBodyResult(response.status_code, headers, bytes(response.body), log_fields_of(scope))


def run_worker(channel: Connection, database: Database, operations: Mapping[str, Operation]) -> None:
    """Carry out orders until the server closes the socket."""
    committed = CommittedChanges()
    database.use_write_lock(_RemoteWriteLock(channel))
    database.on_workflows_to_wake(committed.workflows_to_wake.update)
    database.on_workflows_with_ready_jobs(committed.workflows_with_ready_jobs.update)
    database.on_workflows_with_events(committed.workflows_with_events.update)
    database.on_stored_events(committed.events.extend)
    while True:
        try:
            order: LargeBodyOrder = channel.recv()
            body = _received_body(channel, order)
        except EOFError:
            return
        limit_memory(len(body))
        with body if isinstance(body, SpooledBody) else contextlib.nullcontext():
            result = carry_out(operations[order.operation], order.scope, body)
        result.committed = CommittedChanges(
            set(committed.workflows_to_wake),
            set(committed.workflows_with_ready_jobs),
            set(committed.workflows_with_events),
            list(committed.events),
            database.transition_counts.copy(),
        )
        del body
        channel.send(result)
        for part in (
            committed.workflows_to_wake,
            committed.workflows_with_ready_jobs,
            committed.workflows_with_events,
            committed.events,
            database.transition_counts,
        ):
            part.clear()
        del result
        gc.collect()


def _received_body(channel: Connection, order: LargeBodyOrder) -> bytes | SpooledBody:
    if order.spooled_bytes is None:
        return channel.recv_bytes()
    return SpooledBody(os.fdopen(recv_handle(channel), "rb"), order.spooled_bytes, longest_line=order.spooled_bytes)


def _operations(database: Database) -> dict[str, Operation]:
    """Return the operations that the worker can carry out on a database, by name."""
    declared = {
        endpoint_name(each): endpoint_operation(each, database) for each in all_endpoints() if each.body is not None
    }
    return {**declared, **runner_api_operations(database)}


def main() -> None:
    """Run the worker on the socket whose file descriptor is the only argument; the first message is the database.

    The garbage collector stays off, as the server's command line for the worker sets it: it would visit the millions of
    values of a large body repeatedly. `run_worker` collects after each request.
    """
    channel = Connection(socket.socket(fileno=int(sys.argv[1])).detach())
    configure_logging("warning")
    database = open_database(channel.recv())
    gc.freeze()
    try:
        run_worker(channel, database, _operations(database))
    except (BrokenPipeError, ConnectionResetError):
        return  # the server has ended
