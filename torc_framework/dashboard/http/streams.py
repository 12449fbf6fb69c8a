"""Answers that are streams, with what has to be done at their end, also if it comes before their beginning."""

from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Mapping

import anyio
from starlette.responses import StreamingResponse
from starlette.types import Receive, Scope, Send


class EndingStream(StreamingResponse):
    """A stream that calls a function when it is over, or its reader has gone, or has gone before it began.

    Args:
        content: The parts of the body.
        at_end: The function.
    """

    def __init__(
        self,
        content: AsyncIterator[bytes] | Iterator[bytes],
        at_end: Callable[[], Awaitable[None]],
        *,
        status: int = 200,
        headers: Mapping[str, str],
        media_type: str | None = None,
    ) -> None:
        super().__init__(content, status, headers, media_type)
        self._at_end = at_end

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Send the stream as fast as the reader reads."""
        try:
            await super().__call__(scope, receive, send)
        finally:
            with anyio.CancelScope(shield=True):
                await self._at_end()
