"""The HTTP client of this process, which keeps its connections to the server open."""

import httpx2

from torc_framework.dashboard.http.limits import API_REQUESTS, STREAMS
from torc_framework.monitoring.identity import UpstreamServer


class HttpClients:
    """Has one client, and another one when the server's scheme changes. It keeps no cookies of the server."""

    def __init__(self) -> None:
        self._client: httpx2.AsyncClient | None = None
        self._is_secure: bool | None = None

    def of(self, upstream: UpstreamServer) -> httpx2.AsyncClient:
        """Return the client for the server's present URL."""
        is_secure = upstream.address is not None and upstream.address.secure
        if self._client is None or is_secure != self._is_secure:
            self._is_secure = is_secure
            self._client = httpx2.AsyncClient(
                verify=upstream.tls() if is_secure else True,
                trust_env=False,
                follow_redirects=False,
                timeout=httpx2.Timeout(300.0, connect=10.0),
                limits=httpx2.Limits(max_connections=API_REQUESTS + STREAMS, max_keepalive_connections=20),
            )
        return self._client

    async def close(self) -> None:
        """Close all connections."""
        if self._client is not None:
            await self._client.aclose()
            self._client = None
