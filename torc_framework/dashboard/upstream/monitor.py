"""The look at the server from time to time: whether it answers, its version, and whether it requires a log-in."""

import asyncio

import httpx2
import msgspec

from torc_framework.dashboard.http.limits import PROBE_AWAY_S, PROBE_S
from torc_framework.dashboard.upstream.http_client import HttpClients
from torc_framework.monitoring.identity import LIVE, Identity, UpstreamServer

_TIMEOUT_S = 4.0


class ServerMonitor:
    """Keeps the state of the server up to date.

    Args:
        process: The identity of this process.
    """

    def __init__(self, upstream: UpstreamServer, clients: HttpClients, process: Identity) -> None:
        self._upstream, self._clients, self._process = upstream, clients, process
        self._wake = asyncio.Event()

    def look_now(self) -> None:
        """Look at the server soon, such as after a request that failed."""
        self._wake.set()

    async def run(self) -> None:
        """Look at the server for ever."""
        while True:
            await self.look()
            self._wake.clear()
            pause = PROBE_S if self._upstream.state.state == LIVE else PROBE_AWAY_S
            try:
                await asyncio.wait_for(self._wake.wait(), pause)
                await asyncio.sleep(PROBE_AWAY_S / 4)
            except TimeoutError:
                continue

    async def look(self) -> None:
        """Ask the server for its version."""
        state, base = self._upstream.state, self._upstream.base
        if base is None:
            state.did_not_answer("it is stopped")
            return
        try:
            answer = await self._clients.of(self._upstream).get(
                f"{base}/version", headers=self._process.headers, timeout=_TIMEOUT_S
            )
        except httpx2.HTTPError as error:
            state.did_not_answer(f"{type(error).__name__}: {error}" if str(error) else type(error).__name__)
            return
        if answer.status_code in (401, 403):
            state.answered(None, requires_login=True)
        elif answer.status_code == 200:
            state.answered(_version(answer.content), requires_login=False)
        else:
            state.did_not_answer(f"it answered with status {answer.status_code}")


def _version(content: bytes) -> str | None:
    try:
        return msgspec.json.decode(content, type=str)[:100]
    except msgspec.DecodeError:
        return None
