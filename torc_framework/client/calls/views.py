"""Client methods for the views of a workflow, from which pages and screens draw."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, TypeVar

from torc_framework.client.calls.base import ClientBase

if TYPE_CHECKING:
    from torc_framework.models.workflow_views import (
        FailuresView,
        GraphView,
        JobTable,
        ProgressView,
        SweepView,
        TimelineView,
        WaitingView,
    )

_T = TypeVar("_T")


class ViewCalls(ClientBase):
    """Methods that return views; `torc_framework.models.workflow_views` describes them."""

    def _view(self, name: str, kind: type[_T], workflow_id: int, query: dict[str, Any] | None = None) -> _T:
        return self._call(kind, "GET", f"/workflows/{workflow_id}/views/{name}", query=query)

    def progress_view(self, workflow_id: int) -> "ProgressView":
        """Return the progress of a workflow by stage and group, its throughput, and an estimate of its end."""
        from torc_framework.models.workflow_views import ProgressView

        return self._view("progress", ProgressView, workflow_id)

    def graph_view(
        self,
        workflow_id: int,
        *,
        kind: str = "jobs",
        group: str | None = None,
        around: int | None = None,
        depth: int = 1,
        offset: int = 0,
        limit: int | None = None,
    ) -> "GraphView":
        """Return a graph that is small enough to be drawn.

        Args:
            workflow_id: Id of the workflow.
            kind: ``jobs``, ``files`` for jobs with files, or ``user_data`` for jobs with user data.
            group: Id of a node: its members instead of all groups.
            around: Id of a job: it and its neighbours instead of all groups.
            depth: Most dependencies between that job and a neighbour.
            offset: Members of the group to skip.
            limit: Most nodes, members or neighbours; None is the server's default.
        """
        from torc_framework.models.workflow_views import GraphView

        query = {"kind": kind, "open": group, "around": around, "depth": depth, "offset": offset, "limit": limit}
        return self._view("graph", GraphView, workflow_id, query)

    def timeline_view(
        self,
        workflow_id: int,
        *,
        from_s: float | None = None,
        to_s: float | None = None,
        width: int | None = None,
        by_host: bool = False,
        offset: int = 0,
        limit: int | None = None,
    ) -> "TimelineView":
        """Return the attempts of a workflow in a window of time, as bars in lanes.

        Args:
            workflow_id: Id of the workflow.
            from_s: Begin of the window, seconds since the epoch; None is the first attempt's.
            to_s: Its end; None is the last attempt's.
            width: Width of the drawing in pixels: narrower attempts are merged.
            by_host: A lane for each host instead of each runner.
            offset: Lanes to skip.
            limit: Most lanes; None is the server's default.
        """
        from torc_framework.models.workflow_views import TimelineView

        by = "host" if by_host else "runner"
        query = {"from": from_s, "to": to_s, "width": width, "by": by, "offset": offset, "limit": limit}
        return self._view("timeline", TimelineView, workflow_id, query)

    def failures_view(
        self, workflow_id: int, *, by: Sequence[str] | None = None, limit: int | None = None
    ) -> "FailuresView":
        """Return the failed jobs of a workflow, grouped by the way in which they ended.

        Args:
            workflow_id: Id of the workflow.
            by: What separates groups, such as ``["class", "node"]``; None is the server's default.
            limit: Most groups.
        """
        from torc_framework.models.workflow_views import FailuresView

        query = {"by": None if by is None else ",".join(by), "limit": limit}
        return self._view("failures", FailuresView, workflow_id, query)

    def waiting_view(self, workflow_id: int, *, limit: int | None = None) -> "WaitingView":
        """Return the jobs of a workflow that do not run yet, grouped by reason, in at most ``limit`` groups."""
        from torc_framework.models.workflow_views import WaitingView

        return self._view("waiting", WaitingView, workflow_id, {"limit": limit})

    def sweep_view(
        self,
        workflow_id: int,
        *,
        family: str | None = None,
        x: str | None = None,
        y: str | None = None,
        limit: int | None = None,
    ) -> "SweepView":
        """Return the jobs of a workflow by the values of two parameters.

        Args:
            workflow_id: Id of the workflow.
            family: Label of the jobs' family; None is that with most jobs.
            x: Parameter across; None is the first that fits in.
            y: Parameter down.
            limit: Most values of each.
        """
        from torc_framework.models.workflow_views import SweepView

        return self._view("sweep", SweepView, workflow_id, {"family": family, "x": x, "y": y, "limit": limit})

    def job_columns(
        self,
        workflow_id: int,
        fields: Sequence[str] | None = None,
        *,
        filter_text: str = "",
        sort: str = "id",
        offset: int = 0,
        limit: int | None = None,
        after_id: int | None = None,
        counts: bool = False,
    ) -> "JobTable":
        """Return a part of a filtered and sorted list of jobs, as columns.

        Args:
            workflow_id: Id of the workflow.
            fields: Names of the fields; None is the server's default. ``dependencies`` has the fields of
                `JobDependencies` as its values.
            filter_text: Text of the filter language, such as ``status:failed peak_mem>48g``.
            sort: A field; with ``-`` before it in reverse order.
            offset: Jobs to skip; any number takes the same time.
            limit: Most jobs; None is the server's default.
            after_id: Begin after the job of this id instead.
            counts: Count all jobs of the list by status, too.
        """
        from torc_framework.models.workflow_views import JobTable

        query = {
            "q": filter_text or None,
            "fields": None if fields is None else ",".join(fields),
            "sort": sort,
            "offset": offset,
            "limit": limit,
            "after": after_id,
            "counts": counts,
        }
        return self._view("jobs", JobTable, workflow_id, query)
