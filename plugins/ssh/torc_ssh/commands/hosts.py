"""What the commands that connect to a workflow's remote workers share: options, the workers, a line for each host."""

import asyncio
import sys
from collections.abc import Awaitable, Callable, Coroutine, Mapping, Sequence
from types import MappingProxyType
from typing import Annotated, Any, Final, TypeVar

import typer
from attrs import define, field

from torc_framework.api import TorcError, UserError
from torc_framework.api.commands import Session, StopSignals, print_json
from torc_ssh.addresses import HostAddress, parse_address
from torc_ssh.connection import SshSettings, loop_thread
from torc_ssh.remote_runners.host_pool import ANSWER_TIMEOUT_S, Host, HostPool
from torc_ssh.remote_runners.runner_process import DEFAULT_OUTPUT_DIR

_T = TypeVar("_T")
MaxParallelSsh = Annotated[
    int, typer.Option("--max-parallel-ssh", metavar="COUNT", min=1, help="Most SSH connections at the same time.")
]
SshCommand = Annotated[
    str,
    typer.Option(
        "--ssh-command",
        metavar="COMMAND",
        help="Connect by the system's ssh and its control socket, as in 'ssh -F site.cfg'.",
    ),
]
OutputDirOnHosts = Annotated[
    str,
    typer.Option("--output-dir", metavar="PATH", help="Output directory of the runners; that of 'torc remote run'."),
]
RemoteOutputDir = Annotated[
    str,
    typer.Option(
        "--remote-output-dir", metavar="PATH", help="Output directory of the runners; that of 'torc remote run'."
    ),
]
DEFAULT_PARALLEL: Final = 10
EMPTY: Final[Mapping[str, Any]] = MappingProxyType({})
OUTPUT_DIR: Final = DEFAULT_OUTPUT_DIR
CLEANUP_PATIENCE_S: Final = 10.0
"""Most time after Ctrl-C for connections to be closed."""


def workers_of(session: Session, workflow_id: int) -> list[HostAddress]:
    """Return the addresses of a workflow's remote workers.

    Raises:
        UserError: it has none, or one that is no address.
    """
    workers = [each.worker for each in session.client.remote_workers(workflow_id)]
    if not workers:
        raise UserError(
            f"No workers configured for workflow {workflow_id}. Use 'torc remote add-workers' or '--workers' flag."
        )
    return [parse_address(worker) for worker in workers]


@define
class HostLines:
    """Prints a line for each host when its result is known; as JSON, one document at the end.

    Args:
        session: The session of the call.
        workflow_id: The workflow.
    """

    _session: Session
    workflow_id: int
    rows: dict[str, dict[str, Any]] = field(factory=dict, init=False)
    has_failed: bool = field(default=False, init=False)

    def add(
        self,
        address: HostAddress,
        state: str,
        text: str,
        *,
        below: Sequence[str] = (),
        failed: bool = False,
        values: Mapping[str, Any] = EMPTY,
    ) -> None:
        """Print the result of a host: ``[STATE] address: text``.

        Args:
            address: The host.
            state: One word.
            text: A clause.
            below: Lines of a log, which are indented.
            failed: The command did not do there what it was asked for.
            values: More values for the JSON document.
        """
        self.has_failed |= failed
        self.rows[str(address)] = {"worker": str(address), "state": state, "message": text, **values}
        if below:
            self.rows[str(address)]["log_tail"] = list(below)
        self.say(f"[{state.upper()}] {address}: {text}", *(f"    {line}" for line in below))

    def fail(self, address: HostAddress, error: TorcError) -> None:
        """Print why nothing could be done on a host."""
        self.add(address, "failed", str(error), failed=True)

    def say(self, *lines: str) -> None:
        """Print lines, unless the output is JSON."""
        if not self._session.wants_json:
            print(*lines, sep="\n", flush=True)

    def warn(self, line: str) -> None:
        """Print a warning on standard error."""
        print(f"Warning: {line}", file=sys.stderr, flush=True)

    def finish(self, **document: Any) -> None:
        """Print the JSON document if that is the output.

        Raises:
            Exit: with code 1 if a host failed.
        """
        if self._session.wants_json:
            rows = [self.rows[name] for name in sorted(self.rows)]
            print_json({"workflow_id": self.workflow_id, **document, "workers": rows})
        if self.has_failed:
            raise typer.Exit(1)


def on_all_hosts(
    addresses: Sequence[HostAddress],
    work: Callable[[Host], Awaitable[_T]],
    report: Callable[[HostAddress, _T | TorcError], None],
    *,
    ssh_command: str,
    limit: int,
    timeout_s: float | None = ANSWER_TIMEOUT_S,
    retries: int = 0,
) -> None:
    """Do the work on all hosts, `limit` at once; report each result or failure. See `HostPool.for_each`."""

    async def do() -> None:
        async with HostPool(SshSettings(ssh_command=ssh_command), limit, len(addresses)) as pool:
            await pool.for_each(addresses, work, report, timeout_s=timeout_s, retries=retries)

    run_in_loop(do())


def run_in_loop(coroutine: Coroutine[Any, Any, _T]) -> _T:
    """Run a coroutine in the event loop; Ctrl-C and SIGTERM cancel it and wait until it has ended."""
    ended = asyncio.Event()

    async def do() -> _T:
        try:
            return await coroutine
        finally:
            ended.set()

    with StopSignals():
        try:
            return loop_thread.run(do())
        except KeyboardInterrupt:
            loop_thread.run(_wait(ended))
            raise


async def _wait(ended: asyncio.Event) -> None:
    try:
        async with asyncio.timeout(CLEANUP_PATIENCE_S):
            await ended.wait()
    except TimeoutError:
        return
