"""What ``torc remote run`` prints while runners are started, and the tunnels that it keeps."""

from collections.abc import Sequence
from typing import Any

from attrs import define, field

from torc_framework.api import TorcError, UserError, redact, secret_values
from torc_framework.api.commands import Session, begin_run, seconds_text
from torc_ssh.addresses import HostAddress
from torc_ssh.commands.hosts import HostLines, run_in_loop
from torc_ssh.connection import SshSettings
from torc_ssh.remote_runners.host_pool import Host, HostConnectionError, HostPool
from torc_ssh.remote_runners.runner_process import RunnerState
from torc_ssh.remote_runners.runner_records import RunnerRecords
from torc_ssh.remote_runners.startup import RunnerOrder, StartedRunner, Startup
from torc_ssh.remote_runners.tunnel_keeper import TunnelKeeper


class UnfitHostsError(TorcError):
    """Hosts cannot be reached, or have another version of torc: nothing was started."""


def start_on_workers(
    session: Session, order: RunnerOrder, addresses: Sequence[HostAddress], *, ssh_command: str, limit: int
) -> None:
    """Start a runner on each host; with a tunnel stay until they have ended.

    Raises:
        UnfitHostsError: a host cannot be reached, or has another version of torc: nothing was started.
        UserError: there are more hosts than connections, and each tunnel is a connection.
        Exit: with code 1 if a runner was not started, or ended at once.
    """
    if order.uses_tunnel and len(addresses) > limit:
        raise UserError(
            f"--tunnel keeps a connection to each of {len(addresses)} workers; --max-parallel-ssh {len(addresses)} "
            "allows that many"
        )
    start = _Start(session, order, addresses, HostPool(SshSettings(ssh_command=ssh_command), limit, len(addresses)))
    try:
        run_in_loop(start.carry_out())
    except KeyboardInterrupt:
        start.say_what_was_started()
        raise
    start.lines.finish(tunnel=order.uses_tunnel)


@define
class _Start:
    """One call of the command."""

    _session: Session
    _order: RunnerOrder
    _addresses: Sequence[HostAddress]
    _pool: HostPool
    lines: HostLines = field(init=False)
    _ports: dict[HostAddress, int] = field(factory=dict, init=False)
    _begun: list[HostAddress] = field(factory=list, init=False)

    def __attrs_post_init__(self) -> None:
        self.lines = HostLines(self._session, self._order.files.workflow_id)

    async def carry_out(self) -> None:
        """Check all hosts, start the runners, keep the tunnels."""
        client, workflow_id = self._session.client, self._order.files.workflow_id
        startup = Startup(self._order, RunnerRecords(client, workflow_id))
        async with self._pool as pool:
            self.lines.say(f"Checking {len(self._addresses)} worker(s)")
            await self._check(pool, startup)
            if self._order.access.is_loopback and not self._order.uses_tunnel:
                self.lines.warn(
                    f"{self._order.access.url} leads each machine to itself; --tunnel lets runners on other machines "
                    "reach the server"
                )
            if client.is_uninitialized(workflow_id):
                begin_run(client, workflow_id, force=True)  # input files may be on the hosts alone: a warning

            async def start(host: Host) -> StartedRunner:
                self._begun.append(host.address)
                return await startup.start(host)

            await pool.for_each(self._addresses, start, self._report_start)
            if self._ports:
                await self._keep_tunnels(pool)

    async def _check(self, pool: HostPool, startup: Startup) -> None:
        failures: dict[HostAddress, TorcError] = {}

        def note(address: HostAddress, result: str | TorcError) -> None:
            if isinstance(result, TorcError):
                failures[address] = result

        await pool.for_each(self._addresses, startup.check, note)
        if failures:
            in_order = {address: failures[address] for address in self._addresses if address in failures}
            raise UnfitHostsError("\n".join(_failure_lines(in_order)))

    def _report_start(self, address: HostAddress, result: StartedRunner | TorcError) -> None:
        if isinstance(result, TorcError):
            self.lines.fail(address, result)
            return
        runner = result.runner
        values: dict[str, Any] = {"pid": runner.pid, "tunnel_port": result.port}
        if result.state != "running":  # one that ran before was not waited for
            values["registered"] = result.is_registered
        if result.has_died:
            secrets = secret_values(self._order.access.environment)
            tail = [redact(line, secrets) for line in result.tail]
            text = "Process died immediately. Last log:" if tail else "Process died immediately. Its log is empty."
            self.lines.add(
                address, "failed", text, below=tail, failed=True, values={**values, "exit_code": runner.exit_code}
            )
        elif result.state == "ended":
            self.lines.add(address, "ended", "nothing was left to do", values={**values, "exit_code": 0})
        else:
            self.lines.add(address, result.state, _start_text(result, self._order), values=values)
            if result.port is not None:
                self._ports[address] = result.port

    async def _keep_tunnels(self, pool: HostPool) -> None:
        self.lines.say(
            f"The tunnels of {len(self._ports)} worker(s) are open, and this command stays until their runners have "
            "ended. After Ctrl-C the runners go on and wait for the server; the same command opens the tunnels again."
        )
        keeper = TunnelKeeper(pool, self._order, self.lines.warn)

        def report(address: HostAddress, result: RunnerState | TorcError) -> None:
            if isinstance(result, TorcError):
                self.lines.fail(address, result)
            else:
                code = result.exit_code
                self.lines.add(
                    address, "ended", result.exit_text, failed=code != 0, values={"pid": result.pid, "exit_code": code}
                )

        await keeper.keep(self._ports, report)

    def say_what_was_started(self) -> None:
        """Say after Ctrl-C which runners were started, and of which that is not known."""
        unknown = [str(address) for address in self._begun if str(address) not in self.lines.rows]
        done = [name for name, row in self.lines.rows.items() if row["state"] in ("started", "running")]
        workflow_id = self._order.files.workflow_id
        self.lines.warn(f"interrupted; runners work on: {', '.join(done) or 'no machine'}")
        if unknown:
            self.lines.warn(
                f"whether one was started is not known of: {', '.join(unknown)}; 'torc remote status {workflow_id}' "
                "shows it"
            )


def _start_text(result: StartedRunner, order: RunnerOrder) -> str:
    text = f"runner with PID {result.runner.pid}"
    if result.state == "running":
        age = seconds_text(result.runner.age_s)
        text = f"a runner works here already, with PID {result.runner.pid}" + (f", for {age}" if age else "")
        if result.output_dir:
            text += f"; its output directory is {result.output_dir}"
    elif not result.is_registered:
        text += f"; it has not registered with the server yet, its log is {order.files.log}"
    return text


def _failure_lines(failures: dict[HostAddress, TorcError]) -> list[str]:
    """Return the message about hosts that failed the checks: those without a connection, then the others."""
    lines = []
    unreached = {address: error for address, error in failures.items() if isinstance(error, HostConnectionError)}
    if unreached:
        lines += [f"SSH connectivity check failed for {len(unreached)} worker(s):"]
        lines += [f"  {address}: {error}" for address, error in unreached.items()]
    if len(unreached) < len(failures):
        lines += [f"Version check failed on {len(failures) - len(unreached)} worker(s):"]
        lines += [f"  {address}: {error}" for address, error in failures.items() if address not in unreached]
    return lines
