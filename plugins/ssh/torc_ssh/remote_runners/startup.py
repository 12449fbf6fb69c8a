"""The start of a workflow's runners on hosts: all are checked first, then each gets a runner unless it has one."""

import asyncio
import posixpath
from collections.abc import Mapping, Sequence
from typing import Final

from attrs import define, field, frozen

from torc_ssh.addresses import HostAddress
from torc_ssh.remote_runners.host_pool import Host
from torc_ssh.remote_runners.program import UnfitTorcError, find_torc, local_version, torc_version
from torc_ssh.remote_runners.runner_process import RunnerFiles, RunnerState, log_tail, runner_state, start_runner
from torc_ssh.remote_runners.runner_records import RunnerRecords
from torc_ssh.remote_runners.server_access import TLS_CA, ServerAccess
from torc_ssh.remote_runners.tunnel import Tunnel
from torc_ssh.session import HostSession

REGISTRATION_PATIENCE_S: Final = 30.0
"""Most time after its start for a runner to register with the server, before it is taken for slow."""
_POLL_S: Final = 0.5


@frozen
class RunnerOrder:
    """What is to be started.

    Attributes:
        files: The files of the runner on each host.
        options: Options of ``torc run``.
        access: How the server is reached.
        uses_tunnel: Runners reach the server through the SSH connection.
        torc: Path of ``torc`` on the hosts; empty if it is looked for.
        checks_version: The version on the hosts has to be that of this program.
    """

    files: RunnerFiles
    options: Sequence[str]
    access: ServerAccess
    uses_tunnel: bool
    torc: str
    checks_version: bool


@frozen
class StartedRunner:
    """A runner on a host after `Startup.start`.

    Attributes:
        state: ``started``, ``running`` if it ran before, or ``ended`` if it ended at once.
        runner: Its process.
        port: Port of its tunnel on the host; None without one.
        is_registered: The server has its record.
        tail: Last lines of its log if it has ended.
        output_dir: Its output directory, if that is not the one that was asked for.
    """

    state: str
    runner: RunnerState
    port: int | None = None
    is_registered: bool = False
    tail: Sequence[str] = ()
    output_dir: str | None = None

    @property
    def has_died(self) -> bool:
        """Whether it ended at once, and not because there was nothing to do."""
        return self.state == "ended" and self.runner.exit_code != 0


@define
class Startup:
    """Checks hosts and starts a runner on each.

    Args:
        order: What is to be started.
        records: The server's records of runners.
    """

    order: RunnerOrder
    _records: RunnerRecords
    _programs: dict[HostAddress, str] = field(factory=dict, init=False)
    _newest_before: dict[str, int] = field(factory=dict, init=False)
    """The newest record on the server before a host's runner was started, by the name of the host."""
    _refreshed_at: float = field(default=-1.0, init=False)
    _refreshing: asyncio.Lock = field(factory=asyncio.Lock, init=False)

    async def check(self, host: Host) -> str:
        """Find ``torc`` on a host, and return its version.

        Raises:
            UnfitTorcError: there is none, or it has another version.
        """
        torc = self.order.torc or await find_torc(host.session)
        if torc.startswith("~/"):
            torc = posixpath.join(host.session.facts.home, torc[2:])
        self._programs[host.address] = torc
        if not self.order.checks_version:
            return ""
        found, local = await torc_version(host.session, torc), local_version()
        if found != local:
            raise UnfitTorcError(f"Version mismatch: local={local}, {host.address}={found}")
        return found

    async def start(self, host: Host) -> StartedRunner:
        """Start a runner on a host that was checked, unless it has one for the workflow; wait until it registered."""
        session, files = host.session, self.order.files
        if (found := await self._running(session)) is not None:
            running, folder = found
            port = None if folder else await self._reopen_tunnel(host, running)
            return StartedRunner("running", running, port, output_dir=folder)
        tunnel = Tunnel(files, self.order.access)
        port = await tunnel.open(host) if self.order.uses_tunnel else None
        began = await start_runner(session, files, self._command(host.address), await self._environment(session, port))
        if began is None:  # another process like this one was faster
            running = await runner_state(session, files)
            return StartedRunner("running", running, await self._reopen_tunnel(host, running))
        if port is not None:
            await tunnel.remember(host, port)
        return await self._observe(session, port)

    async def _running(self, session: HostSession) -> tuple[RunnerState, str | None] | None:
        """Return the runner that works on the host for the workflow, and its output directory if that is another."""
        state = await runner_state(session, self.order.files)
        if state.is_running:
            return state, None
        await self._refresh()
        self._newest_before[session.facts.hostname] = self._records.newest_id
        home = session.facts.home
        for folder in self._records.active_on(session.facts.hostname):
            if folder != self.order.files.absolute_dir(home):
                state = await runner_state(session, RunnerFiles(folder, self.order.files.workflow_id))
                if state.is_running:
                    return state, folder
        return None

    async def _reopen_tunnel(self, host: Host, runner: RunnerState) -> int | None:
        """Open the tunnel of a runner that runs already, if it was started with one."""
        tunnel = Tunnel(self.order.files, self.order.access)
        port = await tunnel.port_of_runner(host.session, runner.pid or 0) if self.order.uses_tunnel else None
        if port is not None:
            await tunnel.open(host, port)
            await tunnel.remember(host, port)
        return port

    def _command(self, address: HostAddress) -> list[str]:
        files = self.order.files
        command = [self._programs[address], "run", str(files.workflow_id), "--worker", "--output-dir", files.output_dir]
        return [*command, *self.order.options]

    async def _environment(self, session: HostSession, port: int | None) -> Mapping[str, str]:
        """Return the runner's environment; copy certificates that it has to trust to the host."""
        access, files = self.order.access, self.order.files
        environment = dict(access.environment if port is None else access.through_port(port))
        if access.tls_ca is not None:
            path = posixpath.join(files.absolute_dir(session.facts.home), f"torc_worker_{files.workflow_id}.ca.pem")
            await session.put_file(access.tls_ca, path)
            environment[TLS_CA] = path
        return environment

    async def _observe(self, session: HostSession, port: int | None) -> StartedRunner:
        """Wait until a runner has registered with the server, or has ended."""
        clock = asyncio.get_running_loop()
        deadline = clock.time() + REGISTRATION_PATIENCE_S
        while True:
            runner = await runner_state(session, self.order.files)
            is_registered = await self._is_registered(session, runner)
            if not runner.is_running:
                tail = await log_tail(session, self.order.files)
                return StartedRunner("ended", runner, port, is_registered, tail)
            if is_registered or clock.time() > deadline:
                return StartedRunner("started", runner, port, is_registered)
            await asyncio.sleep(_POLL_S)

    async def _is_registered(self, session: HostSession, runner: RunnerState) -> bool:
        await self._refresh()
        folder = self.order.files.absolute_dir(session.facts.home)
        return any(
            (node.id or 0) > self._newest_before.get(session.facts.hostname, 0)
            for node in self._records.of_runner(runner, session.facts.hostname, folder)
        )

    async def _refresh(self) -> None:
        """Ask the server for the records, unless another host's start did just now."""
        clock = asyncio.get_running_loop()
        async with self._refreshing:
            if clock.time() - self._refreshed_at >= _POLL_S / 2:
                await asyncio.to_thread(self._records.refresh)
                self._refreshed_at = clock.time()
