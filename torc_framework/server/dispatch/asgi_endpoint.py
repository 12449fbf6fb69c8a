"""A request handler as an ASGI application, without the functions that Starlette puts around one.

For a function, Starlette adds a layer that turns exceptions into responses. One of its middlewares does that for the
whole application already, so that each request would pay for it twice.
"""

from collections.abc import Awaitable, Callable

from starlette.requests import Request
from starlette.responses import Response
from starlette.types import Receive, Scope, Send

from torc_framework.server.http.answer_room import AnswerRoom


class AsgiEndpoint:
    """Serves the requests of a route.

    Args:
        handle: Returns the response to a request.
    """

    def __init__(self, handle: Callable[[Request], Awaitable[Response]]) -> None:
        self._handle = handle

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one request."""
        response = await self._handle(Request(scope, receive, send))
        room: AnswerRoom = scope["app"].state.answer_room
        await room.send(response, scope, receive, send)
