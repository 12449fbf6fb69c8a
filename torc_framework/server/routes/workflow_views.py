"""Endpoints of the views of a workflow: bounded, tagged answers from which pages and screens draw.

The modules that make the views are imported for the first call of each, because the start of a server does without.
"""

from collections.abc import Callable, Mapping
from typing import Any, Final

from torc_framework.models import workflow_views as models
from torc_framework.server.auth.permissions import WORKFLOW_IN_PATH
from torc_framework.server.dispatch.endpoint import Endpoint, EndpointFunction
from torc_framework.server.http.endpoint_calls import EndpointCall, Parameter
from torc_framework.server.http.endpoint_results import RequestError
from torc_framework.store.database.sql import Tx
from torc_framework.store.workflow_views import limits

PASSING_S: Final = 10
"""Seconds after which a view that shows what passes without events is made anew."""
SETTLED_S: Final = 60
"""Seconds after which any other view is, because results and requirements may be changed without an event."""


def _tag(lifetime_s: int) -> Callable[[Tx, EndpointCall], str]:
    def tag(tx: Tx, call: EndpointCall) -> str:
        from torc_framework.store.workflow_views.tags import view_tag, workflow_marks

        return view_tag(workflow_marks(tx, call.id), lifetime_s)

    return tag


def _shared(name: str, function: EndpointFunction, lifetime_s: int) -> EndpointFunction:
    """Return a function that makes an answer once for all who ask the same while the workflow has the same tag."""

    def answer(tx: Tx, call: EndpointCall) -> Any:
        from torc_framework.store.workflow_views.kept_answers import ANSWERS

        key = name, call.id, tuple(call.query.values())
        return ANSWERS.made_once(tx, key, _tag(lifetime_s)(tx, call), lambda: function(tx, call))

    return answer


def _view(
    name: str,
    function: EndpointFunction,
    response: type[Any],
    summary: str,
    *,
    lifetime_s: int = SETTLED_S,
    query: Mapping[str, Parameter] | None = None,
    is_shared: bool = True,
    tag: Callable[[Tx, EndpointCall], str] | None = None,
) -> Endpoint:
    return Endpoint(
        "GET",
        f"/workflows/{{id}}/views/{name}",
        _shared(name, function, lifetime_s) if is_shared else function,
        query=query or {},
        response=response,
        tags=["views"],
        permission=WORKFLOW_IN_PATH,
        tag=tag or _tag(lifetime_s),
        summary=summary,
    )


def _bounded(value: int, most: int) -> int:
    return max(1, min(value, most))


def _job_columns_tag(tx: Tx, call: EndpointCall) -> str:
    from torc_framework.store.workflow_views.job_columns import JobList, order_tag

    return order_tag(tx, JobList(call.id, call.query["q"], call.query["sort"]), PASSING_S)


def _job_columns(tx: Tx, call: EndpointCall) -> models.JobTable:
    from torc_framework.store.workflow_views.job_columns import JobList, job_columns

    query = call.query
    return job_columns(
        tx,
        JobList(call.id, query["q"], query["sort"]),
        query["fields"].split(","),
        offset=query["offset"],
        limit=min(query["limit"], limits.MOST_JOBS),
        after_id=query["after"],
        counts=query["counts"],
    )


def _progress(tx: Tx, call: EndpointCall) -> models.ProgressView:
    from torc_framework.store.workflow_views.progress import progress_view

    return progress_view(tx, call.id)


def _graph(tx: Tx, call: EndpointCall) -> models.GraphView:
    from torc_framework.store.workflow_views import graph, graph_of_files

    query = call.query
    kind, limit, depth = query["kind"], _bounded(query["limit"], limits.MOST_NODES), query["depth"]
    if kind != limits.JOBS_KIND and kind not in limits.LINKED_KINDS:
        raise RequestError(f"query 'kind': {kind[:20]!r} is none of jobs, {', '.join(limits.LINKED_KINDS)}")
    if not 1 <= depth <= limits.DEEPEST:
        raise RequestError(f"query 'depth': {depth} is not between 1 and {limits.DEEPEST}")
    is_linked = kind != limits.JOBS_KIND
    if query["open"] is None and query["around"] is None:
        if is_linked:
            return graph_of_files.graph_of_linked_groups(tx, call.id, kind, limit)
        return graph.graph_of_groups(tx, call.id, limit)
    if query["open"] is not None:
        choice = graph.group_members(tx, call.id, query["open"], offset=query["offset"], limit=limit)
    else:
        choice = graph.jobs_around(tx, call.id, query["around"], depth=depth, limit=limit)
    if is_linked:
        return graph_of_files.linked_graph_of_jobs(tx, call.id, kind, choice)
    return graph.graph_of_jobs(tx, call.id, choice)


def _timeline(tx: Tx, call: EndpointCall) -> models.TimelineView:
    from torc_framework.store.workflow_views.timeline import TimelineWindow, timeline_view

    query = call.query
    if query["by"] not in ("runner", "host"):
        raise RequestError(f"query 'by': {query['by'][:20]!r} is neither runner nor host")
    return timeline_view(
        tx,
        call.id,
        TimelineWindow(
            query["from"],
            query["to"],
            _bounded(query["width"], limits.MOST_WIDTH),
            query["by"] == "host",
            query["offset"],
            _bounded(query["limit"], limits.MOST_LANES),
        ),
    )


def _failures(tx: Tx, call: EndpointCall) -> models.FailuresView:
    from torc_framework.store.workflow_views.failures import failures_view

    query = call.query
    return failures_view(tx, call.id, query["by"].split(","), _bounded(query["limit"], limits.MOST_GROUPS))


def _waiting(tx: Tx, call: EndpointCall) -> models.WaitingView:
    from torc_framework.store.workflow_views.waiting import waiting_view

    return waiting_view(tx, call.id, _bounded(call.query["limit"], limits.MOST_GROUPS))


def _sweep(tx: Tx, call: EndpointCall) -> models.SweepView:
    from torc_framework.store.workflow_views.sweep import sweep_view

    query = call.query
    limit = _bounded(query["limit"], limits.MOST_VALUES)
    return sweep_view(tx, call.id, query["family"], x=query["x"], y=query["y"], limit=limit)


VIEW_ENDPOINTS: Final = (
    _view(
        "jobs",
        _job_columns,
        models.JobTable,
        "Get a part of a filtered and sorted list of jobs, as columns.",
        lifetime_s=PASSING_S,
        tag=_job_columns_tag,
        is_shared=False,  # it keeps its own lists, of which callers read many parts
        query={
            "q": Parameter(str, ""),
            "fields": Parameter(str, ",".join(limits.DEFAULT_FIELDS)),
            "sort": Parameter(str, "id"),
            "offset": Parameter(int, 0, least=0),
            "limit": Parameter(int, limits.DEFAULT_JOBS, least=0),
            "after": Parameter(int, least=0),
            "counts": Parameter(bool, default=False),
        },
    ),
    _view(
        "progress",
        _progress,
        models.ProgressView,
        "Get the progress of a workflow by stage and group, its throughput, and an estimate of its end.",
        lifetime_s=PASSING_S,
    ),
    _view(
        "graph",
        _graph,
        models.GraphView,
        "Get the graph of a workflow's groups of jobs, of the members of a group, or of the neighbours of a job.",
        query={
            "kind": Parameter(str, limits.JOBS_KIND),
            "open": Parameter(str),
            "around": Parameter(int, least=1),
            "depth": Parameter(int, 1),
            "offset": Parameter(int, 0, least=0),
            "limit": Parameter(int, limits.DEFAULT_NODES, least=1),
        },
    ),
    _view(
        "timeline",
        _timeline,
        models.TimelineView,
        "Get the attempts of a workflow in a window of time, as bars in lanes of runners or hosts.",
        lifetime_s=PASSING_S,
        query={
            "from": Parameter(float),
            "to": Parameter(float),
            "width": Parameter(int, limits.DEFAULT_WIDTH, least=1),
            "by": Parameter(str, "runner"),
            "offset": Parameter(int, 0, least=0),
            "limit": Parameter(int, limits.DEFAULT_LANES, least=1),
        },
    ),
    _view(
        "failures",
        _failures,
        models.FailuresView,
        "Get the failed jobs of a workflow, grouped by the way in which they ended.",
        query={
            "by": Parameter(str, ",".join(limits.DEFAULT_KEYS)),
            "limit": Parameter(int, limits.DEFAULT_GROUPS, least=1),
        },
    ),
    _view(
        "waiting",
        _waiting,
        models.WaitingView,
        "Get the jobs of a workflow that do not run yet, grouped by reason.",
        lifetime_s=PASSING_S,
        query={"limit": Parameter(int, limits.DEFAULT_GROUPS, least=1)},
    ),
    _view(
        "sweep",
        _sweep,
        models.SweepView,
        "Get the jobs of a workflow by the values of two parameters, with statuses, run times and peak memory.",
        query={
            "family": Parameter(str),
            "x": Parameter(str),
            "y": Parameter(str),
            "limit": Parameter(int, limits.DEFAULT_VALUES, least=1),
        },
    ),
)
"""All endpoints of views."""
