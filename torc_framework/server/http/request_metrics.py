"""Counts and response times of requests, by method and route."""

from bisect import bisect_left
from collections import Counter
from collections.abc import Iterable, MutableMapping
from typing import Any, Final

from attrs import Factory, define
from starlette.routing import BaseRoute, Route

BUCKETS_S: Final = (0.001, 0.005, 0.025, 0.1, 0.5, 2.5, 10.0, 60.0)
"""Upper bounds of the buckets of the histogram of response times, seconds."""
UNKNOWN: Final = "unknown"
"""Label of all requests to paths without a route."""


@define
class _ResponseTimes:
    """Histogram of the times until the responses of one route began."""

    buckets: list[int] = Factory(lambda: [0] * (len(BUCKETS_S) + 1))
    total_s: float = 0.0


class RequestMetrics:
    """Counts and response times of all requests so far; used in the event loop only."""

    def __init__(self) -> None:
        self.responses: Counter[tuple[str, str, int]] = Counter()
        self.times: dict[tuple[str, str], _ResponseTimes] = {}
        self._paths: dict[Any, str] = {}

    def add_routes(self, routes: Iterable[BaseRoute]) -> None:
        """Label the requests to these routes by the routes' paths, which hold no ids."""
        for route in routes:
            if isinstance(route, Route):
                self._paths[route.endpoint] = route.path_format

    def record(self, scope: MutableMapping[str, Any], status: int, seconds: float) -> None:
        """Record a response that begins."""
        path = self._paths.get(scope.get("endpoint"), UNKNOWN)
        method = scope["method"]
        self.responses[method, path, status] += 1
        times = self.times.get((method, path))
        if times is None:
            times = self.times[method, path] = _ResponseTimes()
        times.buckets[bisect_left(BUCKETS_S, seconds)] += 1
        times.total_s += seconds
