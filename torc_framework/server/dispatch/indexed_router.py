"""A router that looks at a few routes for each request.

Starlette's router tries the regular expressions of all routes in order, and this server has more than 150.
"""

from collections import defaultdict
from collections.abc import Iterable
from typing import Final

from starlette.routing import BaseRoute, Match, Route, Router
from starlette.types import Receive, Scope, Send

_Key = tuple[int, str, str | None]
"""Number of a path's segments, the first of them below the API's prefix, and the last one, None for a parameter."""
_FIRST: Final = 3
"""Index of the first segment below ``/torc-service/v1``."""


class IndexedRouter(Router):
    """Finds the route that Starlette's router would find.

    Args:
        router: The router whose routes, in their order, and whose events at start and end this one has.
    """

    def __init__(self, router: Router) -> None:
        super().__init__(router.routes)
        self.lifespan_context = router.lifespan_context
        self._routes: Final = _indexed(router.routes)

    async def app(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one request; one that no route takes, or not with its method, gets Starlette's answer."""
        if scope["type"] == "http":
            for route in self._candidates(scope["path"]):
                match, found = route.matches(scope)
                if match is Match.FULL:
                    scope.update(found)
                    await route.handle(scope, receive, send)
                    return
        await super().app(scope, receive, send)

    def _candidates(self, path: str) -> Iterable[Route]:
        """Return the routes that may take a path, in their order."""
        segments = path.split("/")
        size = len(segments)
        first = segments[_FIRST] if size > _FIRST else ""
        ending_so = self._routes.get((size, first, segments[-1]))
        return ending_so or self._routes.get((size, first, None), [])


def _indexed(routes: Iterable[BaseRoute]) -> dict[_Key, list[Route]]:
    """Return the routes by the keys of the paths that they take.

    A route whose last segment is a parameter is also among those with its shape whose last segment is a word.
    """
    plain = [route for route in routes if isinstance(route, Route)]
    assert not any(":path}" in route.path for route in plain), "a parameter of several segments has no key"
    keys = {route.path: _key(route.path) for route in plain}
    found: dict[_Key, list[Route]] = defaultdict(list)
    for size, first, last in dict.fromkeys(keys.values()):
        found[size, first, last] += (
            route for route in plain if keys[route.path] in {(size, first, last), (size, first, None)}
        )
    return dict(found)


def _key(path: str) -> _Key:
    segments = path.split("/")
    first = segments[_FIRST] if len(segments) > _FIRST else ""
    last = segments[-1]
    return len(segments), first, None if last.startswith("{") else last
