"""The routes of one workflow: overview, explanations, verdicts that wait, and what changes would destroy."""

import os
import time
from collections.abc import Callable
from typing import Any

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from torc_framework import __version__
from torc_framework.client import TorcClient
from torc_framework.dashboard.access.guard import session_of
from torc_framework.dashboard.access.login import LoginRoutes
from torc_framework.dashboard.http.errors import json_answer
from torc_framework.dashboard.routes.queries import integer, require_owner
from torc_framework.dashboard.routes.work_calls import WorkCalls
from torc_framework.dashboard.work.words import words
from torc_framework.monitoring import overview
from torc_framework.monitoring.context import WorkContext
from torc_framework.monitoring.identity import UpstreamServer


class WorkflowRoutes:
    """The routes that read a workflow."""

    def __init__(self, context: WorkContext, upstream: UpstreamServer, logins: LoginRoutes, calls: WorkCalls) -> None:
        self._context, self._upstream, self._logins, self._calls = context, upstream, logins, calls

    def routes(self) -> list[Route]:
        """Return the routes."""
        of_workflow = {
            "overview": self.overview,
            "explain": self.explain,
            "why-failed": self.why_failed,
            "pending": self.pending,
            "impact": self.impact,
            "queue-reasons": self.queue_reasons,
        }
        return [
            Route("/dash/words", self.words, methods=["GET"]),
            Route("/dash/state", self.state, methods=["GET"]),
            *(
                Route(f"/dash/workflows/{{id:id}}/{name}", function, methods=["GET"])
                for name, function in of_workflow.items()
            ),
        ]

    async def words(self, _request: Request) -> Response:
        """Answer the words of statuses, with examples of durations and sizes."""
        return json_answer(words())

    async def state(self, request: Request) -> Response:
        """Answer whether the server answers, and what this process is."""
        self._logins.require_identity(session_of(request))
        server = self._upstream.state
        return json_answer(
            {
                "server": {
                    "state": server.state,
                    "since": server.since,
                    "version": server.version,
                    "error": server.error,
                    "url": self._upstream.shown,
                },
                "version": __version__,
                "time": time.time(),
                "hostname": os.uname().nodename,
                "folder": str(self._context.folder),
            }
        )

    async def overview(self, request: Request) -> Response:
        """Answer the document of ``torc status``."""
        reads_logs = session_of(request).is_owner
        return await self._answer(
            request, lambda client, id_: overview.overview(self._context, client, id_, reads_logs=reads_logs)
        )

    async def explain(self, request: Request) -> Response:
        """Answer the document of ``torc explain``."""
        job_id, asks = integer(request, "job"), session_of(request).is_owner
        return await self._answer(
            request,
            lambda client, id_: overview.explain(self._context, client, id_, job_id, asks_batch_systems=asks),
        )

    async def why_failed(self, request: Request) -> Response:
        """Answer the document of ``torc why-failed``."""
        require_owner(request)
        job_id = integer(request, "job")
        return await self._answer(request, lambda client, id_: overview.why_failed(self._context, client, id_, job_id))

    async def pending(self, request: Request) -> Response:
        """Answer the document of ``torc pending list --all``."""
        require_owner(request)
        return await self._answer(request, lambda client, id_: overview.pending(self._context, client, id_))

    async def impact(self, request: Request) -> Response:
        """Answer what a workflow has."""
        return await self._answer(request, overview.impact)

    async def queue_reasons(self, request: Request) -> Response:
        """Answer why queued allocations wait."""
        asks = session_of(request).is_owner
        return await self._answer(
            request, lambda client, id_: overview.queue_reasons(self._context, client, id_) if asks else {}
        )

    async def _answer(self, request: Request, function: Callable[[TorcClient, int], Any]) -> Response:
        session = session_of(request)
        identity, id_ = self._logins.require_identity(session), request.path_params["id"]
        return json_answer(await self._calls.run(session, lambda: function(identity.client, id_)))
