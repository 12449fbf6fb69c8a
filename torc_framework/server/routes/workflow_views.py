"""Endpoints of the views of a workflow: bounded, tagged answers from which pages and screens draw."""

from collections.abc import Callable, Mapping
from typing import Any, Final

from torc_framework.models import workflow_views as models
from torc_framework.server.auth.permissions import WORKFLOW_IN_PATH
from torc_framework.server.dispatch.endpoint import Endpoint, EndpointFunction
from torc_framework.server.http.endpoint_calls import EndpointCall, Parameter
from torc_framework.store.database.sql import Tx
from torc_framework.store.workflow_views import job_columns as jobs
from torc_framework.store.workflow_views.tags import view_tag

PASSING_S: Final = 10
"""Seconds after which a view that shows what passes without events is made anew."""
SETTLED_S: Final = 60
"""Seconds after which any other view is, because results and requirements may be changed without an event."""


def _tag(lifetime_s: int) -> Callable[[Tx, EndpointCall], str]:
    return lambda tx, call: view_tag(tx, call.id, lifetime_s)


def _view(
    name: str,
    function: EndpointFunction,
    response: type[Any],
    summary: str,
    *,
    lifetime_s: int = SETTLED_S,
    query: Mapping[str, Parameter] | None = None,
) -> Endpoint:
    return Endpoint(
        "GET",
        f"/workflows/{{id}}/views/{name}",
        function,
        query=query or {},
        response=response,
        tags=["views"],
        permission=WORKFLOW_IN_PATH,
        tag=_tag(lifetime_s),
        summary=summary,
    )


def _job_columns(tx: Tx, call: EndpointCall) -> models.JobColumns:
    query = call.query
    return jobs.job_columns(
        tx,
        jobs.JobList(call.id, query["q"], query["sort"]),
        query["fields"].split(","),
        offset=query["offset"],
        limit=min(query["limit"], jobs.MOST_JOBS),
        after_id=query["after"],
        counts=query["counts"],
    )


VIEW_ENDPOINTS: Final = (
    _view(
        "jobs",
        _job_columns,
        models.JobColumns,
        "Get a part of a filtered and sorted list of jobs, as columns.",
        lifetime_s=PASSING_S,
        query={
            "q": Parameter(str, ""),
            "fields": Parameter(str, ",".join(jobs.DEFAULT_FIELDS)),
            "sort": Parameter(str, "id"),
            "offset": Parameter(int, 0, least=0),
            "limit": Parameter(int, jobs.DEFAULT_JOBS, least=0),
            "after": Parameter(int, least=0),
            "counts": Parameter(bool, default=False),
        },
    ),
)
"""All endpoints of views."""
