"""The routes of files: the attempts of a job, parts of a log, search in it, the whole log, and resource samples."""

import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, Final, cast
from urllib.parse import quote

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from torc_framework.dashboard.access.guard import session_of
from torc_framework.dashboard.access.login import LoginRoutes
from torc_framework.dashboard.http.errors import json_answer
from torc_framework.dashboard.http.limits import LOG_PART_BYTES, LOG_PART_DEFAULT_BYTES
from torc_framework.dashboard.http.streams import EndingStream
from torc_framework.dashboard.routes.queries import choice, integer
from torc_framework.dashboard.routes.work_calls import WorkCalls
from torc_framework.monitoring.context import WorkContext
from torc_framework.monitoring.log_files import (
    STREAMS,
    LogPlace,
    Stream,
    WantedLog,
    attempts,
    open_log,
    place_of,
)
from torc_framework.monitoring.log_reads import MAX_TEXT, SEARCH_MATCHES, LogSearch, read_part, search
from torc_framework.monitoring.refusals import RefusedError
from torc_framework.monitoring.samples import series, sources

_DOWNLOAD_CHUNK: Final = 256 << 10


class LogRoutes:
    """The routes of logs."""

    def __init__(self, context: WorkContext, logins: LoginRoutes, calls: WorkCalls) -> None:
        self._context, self._logins, self._calls = context, logins, calls

    def routes(self) -> list[Route]:
        """Return the routes."""
        base = "/dash/workflows/{id:id}"
        return [
            Route(f"{base}/jobs/{{job:id}}/attempts", self.attempts, methods=["GET"]),
            Route(f"{base}/log", self.part, methods=["GET"]),
            Route(f"{base}/log/search", self.search, methods=["GET"]),
            Route(f"{base}/log/download", self.download, methods=["GET"]),
            Route(f"{base}/samples", self.samples, methods=["GET"]),
            Route(f"{base}/samples/series", self.series, methods=["GET"]),
        ]

    async def attempts(self, request: Request) -> Response:
        """Answer the attempts of a job with their logs."""
        session = session_of(request)
        identity = self._logins.require_identity(session)
        id_, job_id = request.path_params["id"], request.path_params["job"]
        return json_answer(
            await self._calls.run(session, lambda: attempts(self._context, identity.client, id_, job_id))
        )

    async def part(self, request: Request) -> Response:
        """Answer a part of a log."""
        tail = integer(request, "tail")
        wanted = tail if tail is not None else integer(request, "length")
        length = LOG_PART_DEFAULT_BYTES if wanted is None else wanted
        if not 0 < length <= LOG_PART_BYTES:
            raise RefusedError(400, f"a part of a log has 1 to {LOG_PART_BYTES} bytes")
        offset = integer(request, "offset") or 0
        return await self._read(
            request,
            lambda file, place: read_part(
                file, str(place.path), offset=offset, length=length, is_tail=tail is not None
            ),
        )

    async def search(self, request: Request) -> Response:
        """Answer matches in a log."""
        kind = choice(request, "kind", ("text", "problem"), "text")
        text = request.query_params.get("text", "")
        if kind == "text" and not 0 < len(text) <= MAX_TEXT:
            raise RefusedError(400, f"text has 1 to {MAX_TEXT} characters")
        wanted = LogSearch(text, cast("Any", kind), choice(request, "ignore_case", ("0", "1"), "0") == "1")
        start, limit = integer(request, "from") or 0, integer(request, "limit") or SEARCH_MATCHES
        return await self._read(request, lambda file, _place: search(file, wanted, start=start, limit=limit))

    async def download(self, request: Request) -> Response:
        """Answer the whole log."""
        descriptor, place = await self._open_copy(request)
        headers = {
            "Content-Disposition": f"attachment; filename*=UTF-8''{quote(place.names[-1])}",
            "Cache-Control": "no-store",
        }

        async def end() -> None:
            os.close(descriptor)

        return EndingStream(_pieces(descriptor), end, headers=headers, media_type="application/octet-stream")

    async def samples(self, request: Request) -> Response:
        """Answer the files of resource samples with their attempts."""
        session, reader = session_of(request), self._reader(request)
        identity, id_ = self._logins.require_identity(session), request.path_params["id"]
        return json_answer(await self._calls.run(session, lambda: sources(identity.client, id_, reader)))

    async def series(self, request: Request) -> Response:
        """Answer the resource samples of one attempt."""
        session, reader = session_of(request), self._reader(request)
        identity, id_ = self._logins.require_identity(session), request.path_params["id"]
        source, job_id = request.query_params.get("source", ""), integer(request, "job") or 0
        attempt_id = integer(request, "attempt")
        return json_answer(
            await self._calls.run(
                session, lambda: series(identity.client, id_, source, job_id, attempt_id, reader=reader)
            )
        )

    async def _read(self, request: Request, function: Callable[[int, LogPlace], Any]) -> Response:
        """Answer what a function makes of an open log."""
        session = session_of(request)

        def read() -> Any:
            place = self._place(request)
            with open_log(place, self._reader(request)) as file:
                return function(file, place)

        return json_answer(await self._calls.run(session, read))

    async def _open_copy(self, request: Request) -> tuple[int, LogPlace]:
        def copy() -> tuple[int, LogPlace]:
            place = self._place(request)
            with open_log(place, self._reader(request)) as file:
                return os.dup(file), place

        return await self._calls.run(session_of(request), copy)

    def _place(self, request: Request) -> LogPlace:
        identity = self._logins.require_identity(session_of(request))
        wanted = WantedLog(
            integer(request, "job"),
            integer(request, "run"),
            integer(request, "attempt"),
            integer(request, "node"),
            integer(request, "allocation"),
            cast("Stream", choice(request, "stream", STREAMS, "stdout")),
        )
        place = place_of(self._context, identity.client, request.path_params["id"], wanted)
        return LogPlace(Path(place.folder).absolute(), place.names, place.hostname, place.advice)

    def _reader(self, request: Request) -> str | None:
        """Return the name of a reader who is not the owner."""
        session = session_of(request)
        return None if session.is_owner else self._logins.require_identity(session).user


def _pieces(descriptor: int) -> Iterator[bytes]:
    """Yield what a file holds now; a log may grow faster than its reader reads."""
    left = os.fstat(descriptor).st_size
    while left > 0 and (piece := os.read(descriptor, min(left, _DOWNLOAD_CHUNK))):
        left -= len(piece)
        yield piece
