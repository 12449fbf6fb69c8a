"""Counts and response times of requests, by method and route."""

from bisect import bisect_left
from collections import Counter
from collections.abc import Iterable, MutableMapping
from typing import Any, Final

from attrs import Factory, define
from starlette.routing import BaseRoute, Route

BUCKETS_S: Final = (0.001, 0.005, 0.025, 0.1, 0.5, 2.5, 10.0, 60.0)
"""Upper bounds of the buckets that times of answers are sorted into."""
UNKNOWN: Final = "unknown"
"""Stands for every path that is none of ours."""


@define
class _ResponseTimes:
    """How long the answers of one endpoint took to begin."""

    buckets: list[int] = Factory(lambda: [0] * (len(BUCKETS_S) + 1))
    total_s: float = 0.0


class RequestMetrics:
    """Requests so far, by method and route; used in the event loop only."""

    def __init__(self) -> None:
        self.answers: Counter[tuple[str, str, int]] = Counter()
        self.times: dict[tuple[str, str], _ResponseTimes] = {}
        self._paths: dict[Any, str] = {}

    def know(self, routes: Iterable[BaseRoute]) -> None:
        """Call requests by the paths of these routes, whatever ids are in them."""
        for route in routes:
            if isinstance(route, Route):
                self._paths[route.endpoint] = route.path_format

    def note(self, scope: MutableMapping[str, Any], status: int, seconds: float) -> None:
        """Note an answer that begins."""
        path = self._paths.get(scope.get("endpoint"), UNKNOWN)
        method = scope["method"]
        self.answers[method, path, status] += 1
        times = self.times.get((method, path))
        if times is None:
            times = self.times[method, path] = _ResponseTimes()
        times.buckets[bisect_left(BUCKETS_S, seconds)] += 1
        times.total_s += seconds
