"""``GET /metrics``: counts of jobs, workflows, requests and waiting calls as OpenMetrics or Prometheus text.

prometheus-client is imported by the first request, because its import takes longer than the start of a small server.
"""

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING

from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from torc_framework import __version__
from torc_framework.models.statuses import TRANSITIONS, JobStatus
from torc_framework.server.async_routes.waiting_calls import WaitingCalls
from torc_framework.server.http.endpoint_calls import caller_of
from torc_framework.server.http.request_metrics import BUCKETS_S, RequestMetrics
from torc_framework.server.settings import API_PREFIX
from torc_framework.store.access.checks import check_admin
from torc_framework.store.database.base import Database
from torc_framework.store.runs.counts import WORKFLOW_STATES, DatabaseCounts, count_database

if TYPE_CHECKING:
    from prometheus_client import CollectorRegistry
    from prometheus_client.metrics_core import Metric


class MetricsRoutes:
    """The route of metrics, and the collector that reads them."""

    def __init__(
        self, database: Database, waiting_calls: WaitingCalls, request_metrics: RequestMetrics, *, is_open: bool
    ) -> None:
        self._database = database
        self._waiting_calls = waiting_calls
        self._request_metrics = request_metrics
        self._is_open = is_open
        self._registry: CollectorRegistry | None = None
        self._counts = DatabaseCounts()

    def routes(self) -> list[Route]:
        """Return the routes: ``/metrics``, the scrapers' default, and the same below the API's prefix."""
        return [Route(path, self.metrics, methods=["GET"]) for path in ("/metrics", f"{API_PREFIX}/metrics")]

    async def metrics(self, request: Request) -> Response:
        """Answer in the format that the caller prefers; with access control, only administrators are allowed."""
        if not self._is_open:
            check_admin(caller_of(request))
        from prometheus_client.exposition import choose_encoder

        counts = await run_in_threadpool(self._count)
        encode, content_type = choose_encoder(request.headers.get("accept", ""))
        self._counts = counts  # read by `collect` in the event loop, as all other counts are
        return Response(encode(self._own_registry()), headers={"Content-Type": content_type})

    def _count(self) -> DatabaseCounts:
        with self._database.read() as tx:
            return count_database(tx)

    def _own_registry(self) -> "CollectorRegistry":
        """Return the registry of this server; servers in one process do not share one."""
        if self._registry is None:
            from prometheus_client import CollectorRegistry, ProcessCollector

            self._registry = CollectorRegistry(auto_describe=False)
            ProcessCollector(registry=self._registry)
            self._registry.register(self)
        return self._registry

    def collect(self) -> "Iterator[Metric]":
        """Yield every metric; called by the registry."""
        from prometheus_client.core import InfoMetricFamily

        yield InfoMetricFamily("torc", "The server.", value={"version": __version__})
        counts, waiting = self._counts, self._waiting_calls
        labels = [status.label for status in JobStatus]
        yield _gauge("torc_jobs", "Jobs in the database.", "status", ((name, counts.jobs[name]) for name in labels))
        yield _gauge(
            "torc_workflows",
            "Workflows in the database.",
            "state",
            ((name, counts.workflows[name]) for name in WORKFLOW_STATES),
        )
        yield _gauge(
            "torc_compute_nodes_active", "Runners that have joined and not left.", None, [("", counts.runners)]
        )
        yield _gauge(
            "torc_waiting_runners", "Runners that wait at this server for jobs.", None, [("", waiting.exchange_count)]
        )
        yield _gauge("torc_event_streams", "Event streams open at this server.", None, [("", waiting.stream_count)])
        yield self._transitions()
        yield self._requests()
        yield self._seconds()

    def _transitions(self) -> "Metric":
        from prometheus_client.core import CounterMetricFamily

        family = CounterMetricFamily(
            "torc_job_transitions",
            "Changes of jobs' statuses through this server, by transition.",
            labels=["transition"],
        )
        for name in TRANSITIONS:
            family.add_metric([name], self._database.transition_counts[name])
        return family

    def _requests(self) -> "Metric":
        from prometheus_client.core import CounterMetricFamily

        family = CounterMetricFamily("torc_http_requests", "Requests answered.", labels=["method", "route", "status"])
        for (method, path, status), count in self._request_metrics.responses.items():
            family.add_metric([method, path, str(status)], count)
        return family

    def _seconds(self) -> "Metric":
        from prometheus_client.core import HistogramMetricFamily

        family = HistogramMetricFamily(
            "torc_http_request_seconds",
            "Seconds until the response began; includes calls that wait for jobs.",
            labels=["method", "route"],
        )
        for (method, path), times in self._request_metrics.times.items():
            total, buckets = 0, []
            for bound, count in zip((*map(str, BUCKETS_S), "+Inf"), times.buckets, strict=True):
                total += count
                buckets.append((bound, float(total)))
            family.add_metric([method, path], buckets, times.total_s)
        return family


def _gauge(name: str, text: str, label: str | None, values: Iterable[tuple[str, int]]) -> "Metric":
    from prometheus_client.core import GaugeMetricFamily

    family = GaugeMetricFamily(name, text, labels=[label] if label else [])
    for key, value in values:
        family.add_metric([key] if label else [], value)
    return family
