"""The launcher of one host: passes attempts to its link in the event loop, and events back to the runner."""

import os
import secrets
import signal
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from queue import Empty, SimpleQueue
from typing import Any, ClassVar

from torc_framework.api import (
    Adoption,
    Attempt,
    AttemptKey,
    Capabilities,
    ConfigError,
    Launcher,
    LauncherEvent,
    LaunchError,
    LaunchSite,
    Resources,
    RunnerContext,
    TorcError,
    UserError,
)
from torc_ssh.addresses import HostAddress, parse_address, parse_addresses, read_worker_file
from torc_ssh.connection import loop_thread
from torc_ssh.executor.attempt_records import STATE_DIR, AttemptRecords, remove_records
from torc_ssh.executor.endings import EXECUTOR
from torc_ssh.executor.host_link import HostLink
from torc_ssh.executor.host_sizes import check_named_hosts, size_of
from torc_ssh.executor.job_files import client_of, workflow_files
from torc_ssh.executor.link_plan import LinkPlan
from torc_ssh.executor.options import SshOptions


class SshLauncher(Launcher):
    """Runs attempts on one host, over one connection.

    Without a site it has no host, starts nothing, and only adopts attempts of dead runners on any host.
    """

    name: ClassVar[str] = EXECUTOR
    description: ClassVar[str] = "Processes of machines that are reached over SSH"
    capabilities: Capabilities = Capabilities(can_launch=True, survives_runner=True, queues=True)
    Options: ClassVar[type[Any]] = SshOptions
    sites_option: ClassVar[str | None] = "hosts"

    def __init__(self, options: SshOptions, context: RunnerContext) -> None:
        super().__init__(options, context)
        self.address = parse_address(context.site) if context.site else None
        self._events: SimpleQueue[list[LauncherEvent]] = SimpleQueue()
        self._wake_fd = os.eventfd(0, os.EFD_NONBLOCK | os.EFD_CLOEXEC)
        self._name = f"wf{context.workflow_id}_r{context.run_id}_p{os.getpid()}_{secrets.token_hex(4)}"
        self._records = AttemptRecords(self._state_dir / f"ssh_{self._name}.attempts")
        self._own_link = None if self.address is None else self._make_link(self.address)
        self._other_links: dict[str, HostLink] = {}
        """Links to other hosts, on which dead runners of other sites had attempts."""
        try:
            if self._own_link is not None:
                loop_thread.run(self._own_link.open())
        except BaseException:
            os.close(self._wake_fd)
            raise

    @property
    def _state_dir(self) -> Path:
        return Path(self.context.output_dir) / STATE_DIR

    @property
    def _link(self) -> HostLink:
        """The link to the host of the site."""
        if self._own_link is None:
            raise LaunchError("executor ssh starts nothing here: the runner serves none of its hosts")
        return self._own_link

    def _make_link(self, address: HostAddress) -> HostLink:
        plan = LinkPlan(
            address,
            self._name,
            self.options,
            self.context,
            workflow_files(self.context),
            self._records,
            self._report,
        )
        return loop_thread.run(_made(plan))

    @classmethod
    def sites(cls, options: SshOptions, context: RunnerContext) -> Sequence[str]:
        """Return the addresses of the hosts."""
        addresses = _addresses(options, context)
        check_named_hosts(options.sizes(), addresses)
        return [str(address) for address in addresses]

    def launch_site(self) -> LaunchSite | None:
        """Return what the host offers: what was said of it, else what was found there; None without a host."""
        if self.address is None:
            return None
        facts, said = self._link.facts, size_of(self.options.sizes(), self.address)
        assert facts is not None, "the constructor connects"
        gpus = _gpu_names(facts.gpus, said.gpus)
        return LaunchSite(
            Resources(
                num_cpus=said.cpus or facts.cpus,
                memory_bytes=said.memory_bytes or facts.memory_bytes,
                num_gpus=len(gpus),
            ),
            gpu_names=gpus,
            kind=EXECUTOR,
            facts={"ssh_host": str(self.address), "python": facts.version},
            hostname=str(self.address),
        )

    # --- commands --------------------------------------------------------------------------------

    def start(self, attempts: Sequence[Attempt]) -> None:
        """Start these attempts; queued ones among them start at once."""
        link = self._link
        loop_thread.post(lambda: link.begin(attempts, is_queued=False))

    def queue(self, attempts: Sequence[Attempt]) -> None:
        """Start each of these attempts when a running one of its lane ends."""
        link = self._link
        loop_thread.post(lambda: link.begin(attempts, is_queued=True))

    def stop(self, keys: Iterable[AttemptKey], *, force: bool) -> None:
        """Send SIGTERM, or SIGKILL with ``force``, to the processes of these attempts."""
        wanted, number = list(keys), int(signal.SIGKILL if force else signal.SIGTERM)
        for link in self._links():
            loop_thread.post(link.stop, wanted, number)

    def withdraw(self, keys: Iterable[AttemptKey]) -> None:
        """Withdraw those of these attempts that are queued."""
        loop_thread.post(self._link.withdraw, list(keys))

    def _links(self) -> list[HostLink]:
        own = () if self._own_link is None else (self._own_link,)
        return [*own, *self._other_links.values()]

    # --- events ----------------------------------------------------------------------------------

    def _report(self, events: list[LauncherEvent]) -> None:
        """Take events in the event loop."""
        self._events.put(events)
        with suppress(OSError):  # the launcher was closed meanwhile
            os.eventfd_write(self._wake_fd, 1)

    def wait_fd(self) -> int:
        """Return a descriptor that is readable when there are events."""
        return self._wake_fd

    def poll(self) -> list[LauncherEvent]:
        """Return the events since the last call."""
        with suppress(BlockingIOError):
            os.eventfd_read(self._wake_fd)
        if self._own_link is not None:
            self.accepts_attempts = self._own_link.hindrances.is_accepting
            self.round_trip_s = self._own_link.connection.round_trip_s
        texts = (link.hindrance() for link in self._links())
        self.hindrance = "; ".join(text for text in texts if text) or None
        events: list[LauncherEvent] = []
        with suppress(Empty):
            while True:
                events += self._events.get_nowait()
        return events

    # --- after a crash ---------------------------------------------------------------------------

    def state(self) -> dict[str, Any]:
        """Return the host, and what it and this machine keep of the attempts."""
        if self._own_link is None:
            return {}  # the records of the dead runners name what was adopted
        return {"host": str(self.address), "journal": dict(self._own_link.journal), "records": str(self._records.path)}

    def adopt(self, state: Mapping[str, Any], keys: Sequence[AttemptKey]) -> Adoption:
        """Take over the attempts of a dead runner, on this host or on another one."""
        host, journal = state.get("host"), state.get("journal")
        if not (isinstance(host, str) and isinstance(journal, Mapping)):
            return Adoption(unknown=tuple(keys))
        link = self._link_to(host)
        return loop_thread.run(link.adopt(journal, Path(str(state.get("records"))), keys))

    def _link_to(self, host: str) -> HostLink:
        """Return the link to a host; a new one connects in the background if the host does not answer now."""
        if self._own_link is not None and host == str(self.address):
            return self._own_link
        if host not in self._other_links:
            link = self._make_link(parse_address(host))
            try:
                loop_thread.run(link.open())
            except LaunchError:
                loop_thread.run(_followed(link))
            self._other_links[host] = link
        return self._other_links[host]

    def forget(self, state: Mapping[str, Any]) -> None:
        """Remove what a dead runner's launcher left on the host and on this machine."""
        host, journal = state.get("host"), state.get("journal")
        link = self._own_link if host == str(self.address) else self._other_links.get(str(host))
        if link is not None and isinstance(journal, Mapping):
            loop_thread.run(link.forget(journal))
        if state.get("records"):
            remove_records(Path(str(state["records"])))

    def close(self) -> None:
        """End the connections, and remove what was kept for a later runner."""
        self._end(is_finished=True)
        self._records.remove()

    def abandon(self) -> None:
        """End the connections; the hosts keep the attempts and their ends."""
        self._end(is_finished=False)

    def _end(self, *, is_finished: bool) -> None:
        for link in self._links():
            loop_thread.run(link.close(is_finished=is_finished))
        os.close(self._wake_fd)


async def _made(plan: LinkPlan) -> HostLink:
    """Make a link in the event loop, to which its parts belong."""
    return HostLink(plan)


async def _followed(link: HostLink) -> None:
    link.connection.follow("not connected yet")


def _addresses(options: SshOptions, context: RunnerContext) -> list[HostAddress]:
    """Return the hosts that the options name, else the workflow's remote workers.

    Raises:
        ConfigError: there is none, or one is no address.
        LaunchError: the server does not answer.
    """
    try:
        if options.hosts:
            addresses = parse_addresses(word for part in options.hosts.split(",") if (word := part.strip()))
        elif options.hosts_file:
            addresses = read_worker_file(Path(options.hosts_file).expanduser())
        else:
            with client_of(context, patience_s=2.0) as client:
                addresses = parse_addresses(each.worker for each in client.remote_workers(context.workflow_id))
    except UserError as error:
        raise ConfigError(f"hosts of executor ssh: {error}") from None
    except TorcError as error:
        raise LaunchError(f"the remote workers of workflow {context.workflow_id} cannot be read: {error}") from None
    if not addresses:
        raise ConfigError(
            "executor ssh needs hosts: name them by --hosts a,b,c or --hosts-file FILE (or in [executor.ssh]), or add "
            f"remote workers to the workflow: torc remote add-workers {context.workflow_id} a b c"
        )
    return addresses


def _gpu_names(found: Sequence[str], said: int | None) -> tuple[str, ...]:
    """Return the names of GPUs as CUDA_VISIBLE_DEVICES has them."""
    if said is None:
        return tuple(found)
    return tuple(found[:said]) if said <= len(found) else tuple(map(str, range(said)))
