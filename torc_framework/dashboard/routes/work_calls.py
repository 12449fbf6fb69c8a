"""Calls of blocking functions for a request: in a bounded number of threads, with errors as answers."""

from collections.abc import Callable
from typing import TypeVar

import anyio
import anyio.to_thread

from torc_framework.dashboard.access.sessions import ReaderSession
from torc_framework.dashboard.http.limits import WORK_REQUESTS_OF_PERSON, WORK_THREADS
from torc_framework.dashboard.upstream.monitor import ServerMonitor
from torc_framework.errors import ApiError, PluginError, ServerUnreachableError, TorcError, UserError
from torc_framework.monitoring.refusals import RefusedError

_T = TypeVar("_T")


class WorkCalls:
    """Runs functions that wait for the server or for files in threads."""

    def __init__(self, monitor: ServerMonitor) -> None:
        self._monitor = monitor
        self._threads = anyio.CapacityLimiter(WORK_THREADS)

    async def run(self, session: ReaderSession, function: Callable[[], _T]) -> _T:
        """Return what a function returns.

        Raises:
            RefusedError: it raised one of the framework's errors, or too many of this person's requests wait (429).
        """
        usage = session.usage
        if usage.work_requests >= WORK_REQUESTS_OF_PERSON:
            raise RefusedError(429, "too many requests at once")
        usage.work_requests += 1
        try:
            async with usage.threads:
                return await anyio.to_thread.run_sync(function, limiter=self._threads)
        except TorcError as error:
            raise self._refusal(error) from error
        finally:
            usage.work_requests -= 1

    def _refusal(self, error: TorcError) -> RefusedError:
        if isinstance(error, ServerUnreachableError):
            self._monitor.look_now()
            return RefusedError(502, str(error), upstream="away")
        if isinstance(error, ApiError):
            return RefusedError(error.status if 400 <= error.status < 600 else 502, str(error))
        if isinstance(error, UserError):
            return RefusedError(400, str(error))
        return RefusedError(500 if isinstance(error, PluginError) else 502, str(error))
