"""Keeps the tunnels of runners open until the runners have ended; one that is lost is opened again."""

import asyncio
import random
from collections.abc import Callable, Mapping
from typing import Final

from attrs import frozen

from torc_framework.api import TorcError
from torc_ssh.addresses import HostAddress
from torc_ssh.connection import ConnectError
from torc_ssh.remote_runners.host_pool import Host, HostPool
from torc_ssh.remote_runners.runner_process import RunnerState, runner_state
from torc_ssh.remote_runners.startup import RunnerOrder
from torc_ssh.remote_runners.tunnel import TakenPortError, Tunnel
from torc_ssh.session import SessionLost

POLL_S: Final = 2.0
"""Time between two looks at a runner."""
SHORTEST_PAUSE_S: Final = 1.0
LONGEST_PAUSE_S: Final = 30.0
"""Pauses between two attempts to reach a host: they double from the shortest to the longest."""


@frozen
class TunnelKeeper:
    """Keeps the tunnels of a workflow's runners.

    Args:
        pool: The connections.
        order: What was started.
        say: Called with one line when a tunnel is lost, and when it is open again.
    """

    _pool: HostPool
    _order: RunnerOrder
    _say: Callable[[str], None]

    async def keep(
        self, ports: Mapping[HostAddress, int], report: Callable[[HostAddress, RunnerState | TorcError], None]
    ) -> None:
        """Keep tunnels until their runners have ended; report each end as soon as it is known.

        Args:
            ports: The port of each host's tunnel.
            report: Called with each host and how its runner ended, or why its tunnel cannot be kept.
        """

        async def keep_one(address: HostAddress) -> None:
            try:
                report(address, await self._keep_one(address, ports[address]))
            except TorcError as error:
                report(address, error)

        async with asyncio.TaskGroup() as tasks:
            for address in ports:
                tasks.create_task(keep_one(address))

    async def _keep_one(self, address: HostAddress, port: int) -> RunnerState:
        """Return how the runner ended.

        Raises:
            TakenPortError: another program has taken the port of the tunnel.
        """
        host: Host | None = self._pool.kept(address)
        pause = SHORTEST_PAUSE_S
        while True:
            try:
                if host is None:
                    host = await self._pool.reopen(address)
                    tunnel = Tunnel(self._order.files, self._order.access)
                    await tunnel.open(host, port)
                    await tunnel.remember(host, port)
                    self._say(f"{address}: the tunnel is open again")
                    pause = SHORTEST_PAUSE_S
                return await self._wait_for_end(host)
            except TakenPortError:
                raise
            except (ConnectError, SessionLost, TorcError, OSError) as error:
                if host is not None:
                    self._say(f"{address}: the tunnel is closed: {error}; it is opened again")
                    host = None
            await asyncio.sleep(pause * random.uniform(0.75, 1.25))
            pause = min(2 * pause, LONGEST_PAUSE_S)

    async def _wait_for_end(self, host: Host) -> RunnerState:
        while (state := await runner_state(host.session, self._order.files)).is_running:
            await asyncio.wait([host.session.lost], timeout=POLL_S)
        return state
